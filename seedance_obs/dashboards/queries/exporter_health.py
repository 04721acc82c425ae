"""The exporters' own health: whether what all other dashboards show can be believed."""

from seedance_obs.dashboards.queries.scope import BY_NODE, CHOSEN
from seedance_obs.dashboards.queries.shape import columns

UP = f"up{{{CHOSEN}}}"
SOURCE_UP = f"seedance_source_up{{{CHOSEN}}}"
AGE = f"seedance_source_age_seconds{{{CHOSEN}}}"
DROPPED = f"seedance_readings_dropped_total{{{CHOSEN}}}"
LATE = f"seedance_fast_loop_late_seconds_total{{{CHOSEN}}}"
DISAGREEMENT = f"seedance_gpu_source_disagreement_ratio{{{CHOSEN}}}"

TARGETS_UP = f"sum({UP})"
TARGETS = f"count({UP})"
SOURCES_DOWN = f"count({SOURCE_UP} == 0) or vector(0)"
OLDEST = f"max({AGE})"
BROKEN_COLLECTORS = f"count(seedance_collector_success{{{CHOSEN}}} == 0) or vector(0)"
HIDDEN = (
    f'(sum(seedance_workloads{{{CHOSEN},state="hidden"}}) or vector(0))'
    f" + (sum(seedance_leak_suspects_hidden{{{CHOSEN}}}) or vector(0))"
)

NODES = columns(
    up=f"max {BY_NODE} ({UP})",
    sources_down=f"count {BY_NODE} ({SOURCE_UP} == 0)",
    oldest=f"max {BY_NODE} ({AGE})",
    scrape=f"max {BY_NODE} (scrape_duration_seconds{{{CHOSEN}}})",
    samples=f"max {BY_NODE} (scrape_samples_scraped{{{CHOSEN}}})",
    collectors_broken=f"count {BY_NODE} (seedance_collector_success{{{CHOSEN}}} == 0)",
    probe_age=f"max {BY_NODE} (seedance_leak_probe_age_seconds{{{CHOSEN}}})",
    version=f"max by (cluster, instance, version) (seedance_exporter_info{{{CHOSEN}}})",
)
SOURCES_UP = f'label_join({SOURCE_UP}, "band", " ", "instance", "source")'
AGES = f"max by (instance, source) ({AGE})"
READ_SECONDS = f"max by (instance, source) (seedance_source_read_seconds{{{CHOSEN}}})"
DROPPED_RATE = f"sum by (source, reason) (rate({DROPPED}[$__rate_interval])) > 0"
LATE_SHARE = f"max by (instance, loop) (rate({LATE}[$__rate_interval]))"
COLLECTOR_SECONDS = (
    f"topk(10, max by (collector) (seedance_collector_duration_seconds{{{CHOSEN}}}))"
)
DISAGREEMENTS = columns(
    apart=f"topk(30, max by (cluster, instance, gpu, quantity) ({DISAGREEMENT}))"
)
WON = columns(gpus=f"sum by (quantity, source) (seedance_gpu_source_gpus{{{CHOSEN}}})")
