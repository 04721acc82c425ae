"""Leaks and idleness: who is suspected of what, what that costs, and who could see it.

Over time only recorded sums of whole clusters are asked for; suspects are asked for one by one, for
the chosen nodes and tenants.
"""

from seedance_obs.dashboards.queries.scope import CHOSEN, RECORDED, RECORDED_TENANT, SAME_GPU
from seedance_obs.dashboards.queries.shape import columns, largest
from seedance_obs.dashboards.queries.tenants import BY_WORKLOAD, MOST_LINES, MOST_ROWS, WORKLOAD
from seedance_obs.dashboards.queries.tenants import named as named_workload

CHOSEN_TENANT = f'{CHOSEN},tenant=~"$tenant"'
SUSPECT = "cluster, instance, kind, suspect"
BY_SUSPECT = f"by ({SUSPECT})"
OF_THE_HOST = "fd_growth|fd_near_limit|anonymous_growth|sparse_residency"

SUSPECTS = f"cluster:seedance_leak_suspects:sum{{{RECORDED}}}"
TAKEN_GPUS = f"cluster:seedance_leak_gpu_seconds:rate5m{{{RECORDED}}}"
TAKEN_WATTS = f"cluster:seedance_leak_gpu_power_watts:rate5m{{{RECORDED}}}"
COST = f"cluster:seedance_leak_cost_per_hour:sum{{{RECORDED}}}"
HELD_MEMORY = f"cluster:seedance_gpu_memory_held_bytes:rate5m{{{RECORDED}}}"
WASTED = f"tenant:seedance_gpus_wasted:rate5m{{{RECORDED}}}"

SUSPECTS_NOW = f"sum({SUSPECTS})"
TAKEN_GPUS_NOW = f"sum({TAKEN_GPUS})"
TAKEN_WATTS_NOW = f"sum({TAKEN_WATTS})"
COST_NOW = f"sum by (currency) ({COST})"
WASTED_NOW = f"sum({WASTED})"
WASTED_WATTS_NOW = f'sum(tenant:seedance_gpu_power_watts:rate5m{{{RECORDED},component!="active"}})'

SUSPECTS_BY_KIND = f"sum by (kind) ({SUSPECTS}) > 0"
TAKEN_GPUS_BY_KIND = f"sum by (kind) ({TAKEN_GPUS}) > 0"
COST_BY_KIND = f"sum by (kind, currency) ({COST}) > 0"
WASTED_BY_TENANT = (
    f"sum by (tenant) ({WASTED}) > 0 and on (tenant) {largest(WASTED, 'tenant', MOST_LINES)}"
)
WASTED_WATTS = (
    f'sum by (component) (tenant:seedance_gpu_power_watts:rate5m{{{RECORDED},component!="active"}})'
)
HELD_MEMORY_BY_STATE = f"sum by (state) ({HELD_MEMORY})"

IDLE_NODES = f"sum(seedance_node_idle_window_open{{{CHOSEN}}})"
PROBE_AGE = (
    f"topk({MOST_LINES}, max by (cluster, instance) (seedance_leak_probe_age_seconds{{{CHOSEN}}}))"
)
PROBES_SKIPPED = f"seedance_leak_probe_skipped_total{{{CHOSEN}}}"
SKIPPED = f"sort_desc(count by (reason) (increase({PROBES_SKIPPED}[$__rate_interval]) > 0))"
HIDDEN = f"sum(seedance_leak_suspects_hidden{{{CHOSEN}}}) or 0 * {SUSPECTS_NOW}"


def _info(kinds: str) -> str:
    return f"seedance_leak_suspect_info{{{CHOSEN_TENANT},{kinds}}}"


def _numbered(info: str) -> str:
    """The facts, with the number of the GPU where a driver knows it."""
    numbers = f"max by (cluster, instance, gpu_uuid, gpu) (seedance_gpu_info{{{CHOSEN}}})"
    with_gpu = f"{info} * {SAME_GPU} group_left (gpu) {numbers}"
    return f"({with_gpu} or ({info} unless {SAME_GPU} {numbers}))"


def _of(metric: str) -> str:
    return f"max {BY_SUSPECT} (seedance_leak_{metric}{{{CHOSEN}}})"


def _suspects(kinds: str, rank: str, **cells: str) -> str:
    """Suspects of some kinds, those first that rank highest; `since` in milliseconds."""
    info = _info(kinds)
    found = columns(
        known=_numbered(info),
        since=f"1000 * {_of('suspect_start_time_seconds')}",
        **cells,
    )
    worst = f"topk({MOST_ROWS}, {rank} and on ({SUSPECT}) {info} or 0 * max {BY_SUSPECT} ({info}))"
    return f"{found}\nand on ({SUSPECT}) {worst}"


def _idle_workloads() -> str:
    """Workloads that have done nothing for so long that their idle window is open."""
    open_ = f"max {BY_WORKLOAD} (seedance_workload_idle_window_open{{{CHOSEN_TENANT}}}) == 1"
    on_nodes = f'{RECORDED_TENANT},instance=~"$node"'
    gpus = f"sum {BY_WORKLOAD} (workload:seedance_gpu_seconds:rate5m{{{on_nodes}}})"
    info = f"seedance_workload_info{{{CHOSEN_TENANT}}}"
    idle = f"seedance_workload_idle_window_seconds_total{{{CHOSEN_TENANT}}}"
    memory = f"seedance_workload_gpu_memory_used_bytes{{{CHOSEN_TENANT}}}"
    start = f"seedance_workload_start_time_seconds{{{CHOSEN_TENANT}}}"
    found = columns(
        known=f"max by ({WORKLOAD}, kind, name) ({named_workload(info)})",
        gpus=gpus,
        idle=f"max {BY_WORKLOAD} ({idle})",
        power=f"sum {BY_WORKLOAD} (workload:seedance_gpu_power_watts:rate5m{{{on_nodes}}})",
        memory=f"sum {BY_WORKLOAD} ({memory})",
        start=f"1000 * max {BY_WORKLOAD} ({start})",
    )
    return f"{found}\nand on ({WORKLOAD}) topk({MOST_ROWS}, {gpus} and on ({WORKLOAD}) {open_})"


GPU_SUSPECTS = _suspects(
    f'kind!~"{OF_THE_HOST}"',
    _of("gpu_power_watts"),
    power=_of("gpu_power_watts"),
    gpu_memory=_of("gpu_memory_bytes"),
)
FILES_TAKEN = f"({_of('open_fds')} / ({_of('fd_limit')} > 0))"
HOST_SUSPECTS = _suspects(
    f'kind=~"{OF_THE_HOST}"',
    FILES_TAKEN,
    files_taken=FILES_TAKEN,
    open_files=_of("open_fds"),
    limit=_of("fd_limit"),
    file_growth=_of("fd_growth_per_second"),
    full_in=_of("exhaustion_seconds"),
    memory=_of("anonymous_memory_bytes"),
    memory_growth=_of("anonymous_memory_growth_bytes_per_second"),
)
IDLE_WORKLOADS = _idle_workloads()
