"""Tenants and their workloads: what they hold, use and waste, and the watts that it takes.

Sums over the time range are of recorded rates, so they cost the same on ten nodes and a thousand;
what was not recorded is not in them. The ledger has the exact ones.
"""

from seedance_obs.dashboards.queries.scope import RECORDED_TENANT, TENANT
from seedance_obs.dashboards.queries.shape import (
    columns,
    largest,
    over_time_hours,
    with_label,
    with_others,
)

MOST_LINES = 12
MOST_ROWS = 100
BY_TENANT = "by (cluster, tenant)"
WORKLOAD = "cluster, instance, tenant, workload"
BY_WORKLOAD = f"by ({WORKLOAD})"
NOBODY = "unallocated|unobserved"  # states, and tenants by the same names


def _seconds(state: str = ".+") -> str:
    return f'tenant:seedance_gpu_seconds:rate5m{{{RECORDED_TENANT},state=~"{state}"}}'


HELD = f"tenant:seedance_gpus_held:rate5m{{{RECORDED_TENANT}}}"
WASTED = f"tenant:seedance_gpus_wasted:rate5m{{{RECORDED_TENANT}}}"
GPU_WATTS = f"tenant:seedance_gpu_power_watts:rate5m{{{RECORDED_TENANT}}}"
HOST_WATTS = f"tenant:seedance_host_power_watts:rate5m{{{RECORDED_TENANT}}}"
LINK_BYTES = f"tenant:seedance_link_bytes:rate5m{{{RECORDED_TENANT}}}"


def _kwh(watts: str) -> str:
    return f"{over_time_hours(watts)} / 1000"


HELD_NOW = f"sum({HELD})"
WASTED_NOW = f"sum({WASTED}) or 0 * sum({HELD})"
USED_SHARE = f"(sum({_seconds('active')}) or 0 * sum({HELD})) / (sum({HELD}) > 0)"
HELD_HOURS = f"sum({over_time_hours(HELD)})"
WASTED_HOURS = f"sum({over_time_hours(WASTED)}) or 0 * sum({over_time_hours(HELD)})"
ENERGY_KWH = f"sum({_kwh(GPU_WATTS)}) + (sum({_kwh(HOST_WATTS)}) or vector(0))"

GPUS_BY_TENANT = with_others(HELD, "tenant", MOST_LINES)
GPUS_OF_NOBODY = f"sum by (tenant) ({_seconds(NOBODY)})"
GPUS_BY_STATE = f"sum by (state) ({_seconds()})"
WASTED_BY_TENANT = (
    f"sum by (tenant) ({WASTED}) > 0 and on (tenant) {largest(WASTED, 'tenant', MOST_LINES)}"
)
WATTS_BY_COMPONENT = f"sum by (component) ({GPU_WATTS})"
WATTS_OF_HOSTS = f"sum({HOST_WATTS})"
BYTES_BY_CLASS = f"sum by (link_class) ({LINK_BYTES})"


def _use(by: str, active: str, held: str) -> str:
    """Share of what is held in the time range that is used; nothing used is zero."""
    all_of_it = f"sum {by} ({held})"
    return f"(sum {by} ({active}) or 0 * {all_of_it}) / ({all_of_it} > 0)"


# Who has less than a hundredth of a GPU on average is left out: a moment of it says nothing.
USE_BY_TENANT = f"""sort(bottomk({MOST_LINES},
{_use("by (tenant)", over_time_hours(_seconds("active")), over_time_hours(HELD))}
and on (tenant) sum by (tenant) (avg_over_time({HELD}[$__range])) > 0.01))"""


def _tenants() -> str:
    """Totals of the time range by tenant; what nobody had or saw has only what it cost."""
    hours = f"sum {BY_TENANT} ({over_time_hours(_seconds())})"
    found = columns(
        gpu_hours=hours,
        used=_use(BY_TENANT, over_time_hours(_seconds("active")), over_time_hours(HELD)),
        wasted=f"sum {BY_TENANT} ({over_time_hours(WASTED)})",
        gpu_energy=f"sum {BY_TENANT} ({_kwh(GPU_WATTS)})",
        host_energy=f"sum {BY_TENANT} ({_kwh(HOST_WATTS)})",
    )
    return f"{found}\nand on (cluster, tenant) topk({MOST_ROWS}, {hours})"


def named(info: str) -> str:
    """Facts of workloads with a label `name`, which people know them by."""
    for source, text in (
        ("workload", "$1"),
        ("container", "$1"),
        ("slurm_job", "job $1"),
        ("pod", "$1"),
    ):
        info = with_label(info, "name", text, source, "(.+)")
    return info


def _workloads() -> str:
    """Totals of the time range by workload and node, those that waste most; moments in ms.

    Each series is read once, and once more to find these: what follows from two is for Grafana.
    """
    seconds = f"workload:seedance_gpu_seconds:rate5m{{{RECORDED_TENANT}"
    active, reserved = (f'{seconds},state="{state}"}}' for state in ("active", "reserved"))
    watts = f"workload:seedance_gpu_power_watts:rate5m{{{RECORDED_TENANT}}}"
    link_bytes = f"workload:seedance_link_bytes:rate5m{{{RECORDED_TENANT}}}"
    start = f"workload:seedance_start_time_seconds:named{{{RECORDED_TENANT}}}"
    seen = f"workload:seedance_seen_time_seconds:max{{{RECORDED_TENANT}}}"
    facts = f"max by ({WORKLOAD}, kind, name) ({named(f'max_over_time({start}[$__range])')})"
    wasted = f"sum {BY_WORKLOAD} ({over_time_hours(reserved)})"
    used = f"sum {BY_WORKLOAD} ({over_time_hours(active)})"
    found = columns(
        start=f"1000 * topk {BY_WORKLOAD} (1, {facts})",
        state=f"count {BY_WORKLOAD} (seedance_workload_start_time_seconds{{{TENANT}}}) > bool 0",
        seen=f"1000 * max {BY_WORKLOAD} (max_over_time({seen}[$__range]))",
        gpus=f"sum {BY_WORKLOAD} ({seconds}}})",
        used_hours=used,
        wasted=wasted,
        energy=f"sum {BY_WORKLOAD} ({_kwh(watts)})",
        memory=f"sum {BY_WORKLOAD} (seedance_workload_gpu_memory_used_bytes{{{TENANT}}})",
        links=f"topk {BY_WORKLOAD} (1, sum by ({WORKLOAD}, link_class) ({link_bytes}) > 0)",
    )
    # Who held nothing has no share of it that was used.
    return f"{found}\nand on ({WORKLOAD}) topk({MOST_ROWS}, {wasted} > 0 or 0 * ({used} > 0))"


TENANTS = _tenants()
WORKLOADS = _workloads()
