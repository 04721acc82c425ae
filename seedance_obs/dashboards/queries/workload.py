"""One workload on all of its nodes: what it is, what it does with its GPUs, who is in its way.

It may share nodes and GPUs with others, and others may have its name elsewhere; whatever is asked
for beside its own series is asked for on its nodes only.
"""

from seedance_obs.dashboards.queries.scope import (
    OF_WORKLOAD,
    ON_ITS_NODES,
    ONE_WORKLOAD,
    RECORDED,
    SAME_GPU,
)
from seedance_obs.dashboards.queries.shape import columns, gpu_name, joined, with_label

GPU = "cluster, instance, gpu_uuid"
BY_GPU = f"by ({GPU})"
PLACE = "cluster, instance, tenant, workload"
BY_PLACE = f"by ({PLACE})"
SEGMENT = "cluster, instance, segment"
SECONDS = f"seedance_workload_gpu_seconds_total{{{OF_WORKLOAD}}}"
ACTIVE_SECONDS = f'seedance_workload_gpu_seconds_total{{{OF_WORKLOAD},state="active"}}'
JOULES = f"seedance_workload_gpu_energy_joules_total{{{OF_WORKLOAD}}}"
HOST_JOULES = f"seedance_workload_host_energy_joules_total{{{OF_WORKLOAD}}}"
BYTES = f"seedance_workload_link_bytes_total{{{OF_WORKLOAD}}}"
MEMORY = f"seedance_workload_gpu_memory_used_bytes{{{OF_WORKLOAD}}}"
INFO = f"seedance_workload_info{{{OF_WORKLOAD}}}"
START = f"seedance_workload_start_time_seconds{{{OF_WORKLOAD}}}"
RECORDED_WORKLOAD = f"{RECORDED},{ONE_WORKLOAD}"
SEEN = f"workload:seedance_seen_time_seconds:max{{{RECORDED_WORKLOAD}}}"
QUOTA = "cluster, instance, gpu_uuid, source"

# By its wiring, where that is known: a lost GPU keeps its number there.
WIRED = f'seedance_topology_device_info{{{ON_ITS_NODES},kind="gpu",gpu_uuid!=""}}'
NUMBERS = f"""topk {BY_GPU} (1, max by ({GPU}, gpu) ({WIRED})
or max by ({GPU}, gpu) (seedance_gpu_info{{{ON_ITS_NODES}}}))"""


def _rate(counter: str) -> str:
    return f"rate({counter}[$__rate_interval])"


def _numbered(expr: str) -> str:
    """By GPU, with its number."""
    return f"({expr})\n* {SAME_GPU} group_left (gpu) {NUMBERS}"


def _increase(counter: str) -> str:
    return f"increase({counter}[$__range])"


def _share(active: str, of: str, by: str) -> str:
    return f"(sum {by} ({active}) or 0 * sum {by} ({of})) / (sum {by} ({of}) > 0)"


RUNS_FOR = f"max(max_over_time({SEEN}[$__range])) - min(max_over_time({START}[$__range]))"
GPUS_HELD = f"sum({_rate(SECONDS)})"
GPU_HOURS = f"sum({_increase(SECONDS)}) / 3600"
USED = _share(_increase(ACTIVE_SECONDS), _increase(SECONDS), "")
ENERGY_KWH = f"(sum({_increase(JOULES)}) + (sum({_increase(HOST_JOULES)}) or vector(0))) / 3.6e6"
SUSPECTS = (
    f"count(count by (cluster, instance, suspect) (seedance_leak_suspect_info{{{OF_WORKLOAD}}}))"
    f" or 0 * count({INFO})"
)

FACTS = columns(
    known=f"max_over_time({INFO}[$__range])",
    start=f"1000 * max {BY_PLACE} (max_over_time({START}[$__range]))",
    seen=f"1000 * max {BY_PLACE} (max_over_time({SEEN}[$__range]))",
)

HELD_BY_STATE = f"sum by (state) ({_rate(SECONDS)})"
USE_BY_GPU = joined(
    gpu_name(
        _numbered(_share(_rate(ACTIVE_SECONDS), _rate(SECONDS), BY_GPU)),
        "band",
    ),
    "band",
    " ",
    "instance",
    "band",
)
HELD = f"sum {BY_GPU} ({_rate(SECONDS)}) > 0"
SM_ACTIVE = (
    f"max by ({GPU}, gpu) (seedance_gpu_sm_active_ratio{{{ON_ITS_NODES}}}) and {SAME_GPU} {HELD}"
)
MEMORY_BY_GPU = _numbered(f"sum {BY_GPU} ({MEMORY})")
WATTS_BY_COMPONENT = f"sum by (component) ({_rate(JOULES)})"
WATTS_OF_HOSTS = f"sum({_rate(HOST_JOULES)})"
BYTES_BY_CLASS = f"sum by (link_class) ({_rate(BYTES)})"


def _gpus() -> str:
    """Each GPU that it had in the time range, with what it did there and where it sits."""
    wiring = (
        f"max by ({GPU}, gpu, gpu_model, numa_node, nvlink_domain, pcie_switch)"
        f" (seedance_gpu_info{{{ON_ITS_NODES}}})"
    )
    hours = f"sum {BY_GPU} ({_increase(SECONDS)}) / 3600"
    found = columns(
        known=wiring,
        gpu_hours=hours,
        used=_share(_increase(ACTIVE_SECONDS), _increase(SECONDS), BY_GPU),
        energy=f"sum {BY_GPU} ({_increase(JOULES)}) / 3.6e6",
        memory=f"sum {BY_GPU} ({MEMORY})",
    )
    return f"{found}\nand {SAME_GPU} ({hours} > 0)"


def _placement() -> str:
    """What its GPUs on each node have in common, and what the node could have given instead."""
    bandwidth = f"seedance_workload_placement_bandwidth_bytes_per_second{{{OF_WORKLOAD},of="
    return columns(
        gpus=f"max {BY_PLACE} (workload:seedance_gpus:count{{{RECORDED_WORKLOAD}}})",
        in_one_domain=(
            f"max {BY_PLACE} (workload:seedance_gpus_in_nvlink_domain:max{{{RECORDED_WORKLOAD}}})"
        ),
        numa_nodes=f"max {BY_PLACE} (workload:seedance_numa_nodes:count{{{RECORDED_WORKLOAD}}})",
        actual=f'max {BY_PLACE} ({bandwidth}"actual"}})',
        best=f'max {BY_PLACE} ({bandwidth}"best"}})',
        regret=(f"max {BY_PLACE} (seedance_workload_placement_regret_ratio{{{OF_WORKLOAD}}})"),
    )


def _its_segments() -> str:
    """The shared segments that its GPUs are on: switch, root, NVLink domain and own memory."""
    info = f"seedance_gpu_info{{{ON_ITS_NODES}}} and {SAME_GPU} {HELD_LATELY}"
    ways = (
        with_label(info, "segment", "$1", source, "(.+)")
        for source in ("pcie_switch", "pcie_root", "nvlink_domain", "gpu_uuid")
    )
    return "\nor\n".join(f"max by ({SEGMENT}) ({way})" for way in ways)


def _neighbours() -> str:
    """Tenants other than its own on its segments, with their share of what passed there."""
    of_others = (
        f"max by ({SEGMENT}, segment_kind, tenant)"
        f" (seedance_tenant_segment_share_ratio{{{ON_ITS_NODES}}} > 0"
        f"\nunless on (cluster, instance, tenant) {INFO})"
    )
    shared = f"({of_others} and on ({SEGMENT}) ({_its_segments()}))"
    contended = (
        f"max by ({SEGMENT}, segment_kind)"
        f" (segment:seedance_segment_contention_seconds:rate5m{{{RECORDED}}})"
    )
    in_the_way = f"{shared} * 0 + on ({SEGMENT}, segment_kind) group_left () {contended}"
    return columns(share=shared, contended=in_the_way)


def _suspects() -> str:
    """When its suspects were first seen to be some, in milliseconds."""
    facts = "cluster, instance, kind, suspect, comm, pid, gpu_uuid"
    since = f"seedance_leak_suspect_start_time_seconds{{{ON_ITS_NODES}}}"
    return (
        f"1000 * max by ({facts}) (seedance_leak_suspect_info{{{OF_WORKLOAD}}})"
        f"\n* on (cluster, instance, kind, suspect) group_left ()"
        f" max by (cluster, instance, kind, suspect) ({since})"
    )


def _quotas() -> str:
    """Limits of each GPU by where they come from, and how long it stood at them."""
    at_limit = f"seedance_workload_quota_at_limit_seconds_total{{{OF_WORKLOAD},limit="
    return columns(
        memory_limit=f"max by ({QUOTA}) (seedance_workload_quota_memory_bytes{{{OF_WORKLOAD}}})",
        sm_limit=f"max by ({QUOTA}) (seedance_workload_quota_sm_ratio{{{OF_WORKLOAD}}})",
        at_memory_limit=f'max by ({QUOTA}) (increase({at_limit}"memory"}}[$__range]))',
        at_sm_limit=f'max by ({QUOTA}) (increase({at_limit}"sm"}}[$__range]))',
    )


ITS_SUSPECTS = columns(since=_suspects())
HELD_LATELY = f"(sum {BY_GPU} ({_increase(SECONDS)}) > 0)"
GPUS = _gpus()
PLACEMENT = _placement()
NEIGHBOURS = _neighbours()
QUOTAS = _quotas()
