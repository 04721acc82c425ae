"""The fleet overview: what the GPUs' time and watts go to, and which nodes need somebody.

Over the fleet only recorded sums are asked for over time, so that a thousand nodes cost no more
than ten.
"""

from seedance_obs.dashboards.queries.scope import ALERT, BY_NODE, FIRING, FLEET, RECORDED, SAME_NODE
from seedance_obs.dashboards.queries.shape import columns

SEEN = f"seedance_gpus_seen{{{FLEET}}}"
EXPECTED = f"seedance_gpus_expected{{{FLEET}}}"
GPU_SECONDS = f"tenant:seedance_gpu_seconds:rate5m{{{RECORDED}}}"
GPU_WATTS = f"tenant:seedance_gpu_power_watts:rate5m{{{RECORDED}}}"
HOST_WATTS = f"tenant:seedance_host_power_watts:rate5m{{{RECORDED}}}"
WASTED = f"cluster:seedance_gpus_wasted:rate5m{{{RECORDED}}}"
HELD = f"cluster:seedance_gpus_held:rate5m{{{RECORDED}}}"
CONTENTION = f"segment:seedance_segment_contention_seconds:rate5m{{{FLEET}}}"

FLEET_SEEN = f"sum({SEEN})"
FLEET_EXPECTED = f"sum({EXPECTED})"
FLEET_MISSING = f"sum(clamp_min({EXPECTED} - {SEEN}, 0))"
ACTIVE = f'tenant:seedance_gpu_seconds:rate5m{{{RECORDED},state="active"}}'
ACTIVE_SHARE = f"sum({ACTIVE}) / (sum({GPU_SECONDS}) > 0)"
WASTED_GPUS = f"sum({WASTED})"
FLEET_POWER = f"sum({GPU_WATTS}) + (sum({HOST_WATTS}) or vector(0))"
CRITICAL_COUNT = f'count(ALERTS{{{ALERT},alertstate="firing",severity="critical"}}) or vector(0)'
WARNING_COUNT = f'count(ALERTS{{{ALERT},alertstate="firing",severity="warning"}}) or vector(0)'

GPUS_BY_STATE = f"sum by (state) ({GPU_SECONDS})"
WATTS_BY_COMPONENT = f"sum by (component) ({GPU_WATTS})"
WATTS_OF_HOSTS = f"sum({HOST_WATTS})"
WASTED_BY_TENANT = (
    f"topk(10, sum by (tenant) (tenant:seedance_gpus_wasted:rate5m{{{RECORDED}}}) > 0)"
)

STRANDED = f"cluster:seedance_gpu_fragmentation_stranded:ratio{{{RECORDED}}}"
FGD = f"cluster:seedance_gpu_fragmentation_fgd:ratio{{{RECORDED}}}"
UNUSABLE = f"cluster:seedance_gpu_fragmentation_unusable:ratio{{{RECORDED}}}"
GANG_OF_EIGHT = f'cluster:seedance_gpu_fragmentation_gang:ratio{{{RECORDED},gpus="8"}}'
ISLAND = f"cluster:seedance_gpu_fragmentation_island:ratio{{{RECORDED}}}"
FREE_BY_JOB_SIZE = f"sum by (gpus) (seedance_node_gang_free_gpus{{{FLEET}}})"

CONTENDED_BY_KIND = f"max by (segment_kind) ({CONTENTION})"
CONTENDED_SEGMENTS = columns(
    contended=f"topk(20, sum by (cluster, instance, segment_kind, segment) ({CONTENTION}) > 0.01)"
)

OF_ALERT = "by (cluster, instance, tenant, alertname, severity, topic)"
# When it began, in milliseconds, of those that fire by now.
FIRING_ALERTS = columns(
    since=f"1000 * min {OF_ALERT} (ALERTS_FOR_STATE{{{ALERT}}})\nand max {OF_ALERT} ({FIRING})",
)


def _worst(expr: str) -> str:
    return f"{expr}\nand {SAME_NODE} {WORST}"


ALERTS_OF_NODE = f"(sum {BY_NODE} ({FIRING}) or 0 * sum {BY_NODE} ({EXPECTED}))"
HELD_OF_NODE = f"sum {BY_NODE} (node:seedance_gpus_held:rate5m{{{FLEET}}})"
ACTIVE_OF_NODE = f"sum {BY_NODE} (node:seedance_gpus_active:rate5m{{{FLEET}}})"
WASTED_OF_NODE = f"({HELD_OF_NODE} - {ACTIVE_OF_NODE})"
# Alerts first, and among nodes with as many, GPUs that are held and not used.
WORST = f"topk(50, 1000 * {ALERTS_OF_NODE} + ({WASTED_OF_NODE} or 0 * {ALERTS_OF_NODE}))"
NODES = columns(
    alerts=_worst(ALERTS_OF_NODE),
    missing=_worst(f"sum {BY_NODE} (clamp_min({EXPECTED} - {SEEN}, 0))"),
    expected=_worst(f"sum {BY_NODE} ({EXPECTED})"),
    held=_worst(HELD_OF_NODE),
    wasted=_worst(WASTED_OF_NODE),
    free=_worst(f"sum {BY_NODE} (seedance_node_free_gpus{{{FLEET}}})"),
    stranded=_worst(f"sum {BY_NODE} (seedance_node_stranded_free_gpus{{{FLEET}}})"),
    contended=_worst(f"max {BY_NODE} ({CONTENTION})"),
)
