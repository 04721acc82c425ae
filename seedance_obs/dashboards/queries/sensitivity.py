"""Topology sensitivity: who is slowed down where, and what distance between GPUs costs."""

from seedance_obs.dashboards.queries.scope import FLEET, RECORDED, RECORDED_TENANT, TENANT
from seedance_obs.dashboards.queries.shape import columns, with_label

MOST_ROWS = 100
MOST_TENANTS = 50
MOST_LINES = 20

SEGMENT = "cluster, instance, segment, segment_kind"
TENANT_SEGMENT = f"{SEGMENT}, direction, tenant"
WORKLOAD = "cluster, instance, tenant, workload"

VERDICTS = f"seedance_tenant_sensitivity_info{{{TENANT}}}"
SIGNIFICANT = f'seedance_tenant_sensitivity_info{{{TENANT},verdict="significant"}}'
SCORES = f"max by ({TENANT_SEGMENT}) (seedance_tenant_sensitivity_ratio{{{TENANT}}})"
SURE_SCORES = f"({SCORES} and on ({TENANT_SEGMENT}) {SIGNIFICANT})"
TENANTS_SLOWED = f"count(count by (cluster, tenant) ({SIGNIFICANT})) or 0 * count({VERDICTS})"

CONTENTION = f"segment:seedance_segment_contention_seconds:rate5m{{{RECORDED}}}"
CONTENTION_LIMIT = f'scalar(max(seedance:threshold{{of="contention_share",{RECORDED}}}))'
SEGMENTS_CONTENDED = f"count({CONTENTION} > {CONTENTION_LIMIT}) or 0 * count({CONTENTION})"
OF_TENANTS = f"tenant:seedance_segment_contention_seconds:rate5m{{{RECORDED_TENANT}}}"
# The same lines at every moment: those with most contention over the whole time.
CONTENTION_BY_TENANT = f"""sum by (tenant, segment_kind) ({OF_TENANTS}) > 0
and on (tenant, segment_kind)
topk({MOST_LINES}, sum by (tenant, segment_kind) (avg_over_time({OF_TENANTS}[$__range] @ end())))"""

REGRET = f"max by ({WORKLOAD}) (seedance_workload_placement_regret_ratio{{{TENANT}}})"
WORKLOADS_APART = f"count({REGRET} > 0.1) or 0 * count({REGRET})"

LOSS = f"tenant:seedance_next_link_class_gpu_seconds:hourly_rate5m{{{RECORDED_TENANT}}}"
LOST_IN_ALL = f"topk({MOST_TENANTS}, sum by (tenant) ({LOSS}))"


def _slowed() -> str:
    """Scores that hold against chance, by tenant and kind of segment, the worst besides."""
    top = f"topk({MOST_TENANTS}, max by (tenant) ({SURE_SCORES}))"
    by_kind = f"max by (tenant, segment_kind) ({SURE_SCORES}) and on (tenant) {top}"
    return columns(score=f"({by_kind}) or {with_label(top, 'segment_kind', 'worst')}")


def _evidence() -> str:
    """Scores with what they rest on; those that hold against chance are not crowded out."""
    top = f"(topk({MOST_ROWS}, {SURE_SCORES}) or topk({MOST_ROWS}, {SCORES}))"
    windows = f"seedance_tenant_sensitivity_windows{{{TENANT},load="
    found = columns(
        score=SCORES,
        p_value=f"max by ({TENANT_SEGMENT}) (seedance_tenant_sensitivity_p_value{{{TENANT}}})",
        quiet=f'max by ({TENANT_SEGMENT}) ({windows}"low"}})',
        loaded=f'max by ({TENANT_SEGMENT}) ({windows}"high"}})',
        told=f"max by ({TENANT_SEGMENT}, verdict, proxy) ({VERDICTS})",
    )
    return f"{found}\nand on ({TENANT_SEGMENT}) {top}"


def _segments() -> str:
    """The most loaded segments, in their worse direction."""
    peak = f"seedance_segment_peak_bytes_per_second{{{FLEET}}}"
    capacity = f"seedance_segment_capacity_bytes_per_second{{{FLEET}}}"
    load = f"max by ({SEGMENT}) ({peak} / {capacity})"
    senders = f"max by ({SEGMENT}, tenant) (seedance_tenant_segment_share_ratio{{{FLEET}}}) > 0"
    found = columns(
        load=load,
        capacity=f"max by ({SEGMENT}) ({capacity})",
        contended=f"max by ({SEGMENT}) ({CONTENTION})",
        tenants=f"count by ({SEGMENT}) ({senders})",
    )
    return f"{found}\nand on ({SEGMENT}) topk({MOST_ROWS}, {load})"


def _lost() -> str:
    """What tenants would lose one class further, by the class that they have, and in all."""
    total = with_label(LOST_IN_ALL, "link_class", "total")
    by_class = f"sum by (tenant, link_class) ({LOSS}) and on (tenant) {LOST_IN_ALL}"
    return columns(lost=f"({by_class}) or {total}")


def _apart() -> str:
    """Workloads whose GPUs could be better linked; their start in milliseconds."""
    bandwidth = f"seedance_workload_placement_bandwidth_bytes_per_second{{{TENANT},of="
    start = f"seedance_workload_start_time_seconds{{{TENANT}}}"
    found = columns(
        regret=REGRET,
        actual=f'max by ({WORKLOAD}) ({bandwidth}"actual"}})',
        best=f'max by ({WORKLOAD}) ({bandwidth}"best"}})',
        gpus=f"max by ({WORKLOAD}) (workload:seedance_gpus:count{{{RECORDED_TENANT}}})",
        start=f"1000 * max by ({WORKLOAD}) ({start})",
    )
    return f"{found}\nand on ({WORKLOAD}) (topk({MOST_ROWS}, {REGRET}) > 0)"


TENANTS_BY_SEGMENT_KIND = _slowed()
EVIDENCE = _evidence()
SEGMENTS = _segments()
LOST_BY_CLASS = _lost()
PLACEMENTS = _apart()
