"""The Topology View: the fleet, its nodes, and the GPUs of those that are chosen."""

from seedance_obs.dashboards.queries import gpu_time
from seedance_obs.dashboards.queries.fleet import EXPECTED, SEEN
from seedance_obs.dashboards.queries.scope import BY_NODE, CHOSEN, FIRING, FLEET, SAME_GPU
from seedance_obs.dashboards.queries.shape import band, columns, with_label

FLEET_UTILIZATION = f"avg(seedance_gpu_utilization_ratio{{{FLEET}}})"
FLEET_POWER = f"sum(seedance_gpu_power_watts{{{FLEET}}})"
FIRING_COUNT = f"count({FIRING}) or vector(0)"
OLDEST_READING = f"max(seedance_source_age_seconds{{{FLEET}}})"
UTILIZATION_BY_GPU_PERCENT = 'avg by (instance, gpu_uuid) (dcgm_gpu_utilization{job="gpu"})'
NODES = columns(
    seen=f"sum {BY_NODE} ({SEEN})",
    expected=f"sum {BY_NODE} ({EXPECTED})",
    missing=f"sum {BY_NODE} (clamp_min({EXPECTED} - {SEEN}, 0))",
    alerts=f"sum {BY_NODE} ({FIRING} or 0 * {EXPECTED})",
    utilization=f"avg {BY_NODE} (seedance_gpu_utilization_ratio{{{FLEET}}})",
    power=f"sum {BY_NODE} (seedance_gpu_power_watts{{{FLEET}}})",
)

UTILIZATION = f"seedance_gpu_utilization_ratio{{{CHOSEN}}}"
MIG_BOARDS = f"(seedance_gpu_mig_enabled{{{CHOSEN}}} == 1)"
WORKED = gpu_time.seconds(CHOSEN, "active")
BUSY_SLICES = f"clamp_max({MIG_BOARDS} * {SAME_GPU} group_left () {WORKED}, 1)"
UTILIZATION_BANDS = band(with_label(f"({UTILIZATION}\nor {BUSY_SLICES})", "__name__", ""))
POWER = f"seedance_gpu_power_watts{{{CHOSEN}}}"
MEMORY_USED = (
    f"seedance_gpu_memory_used_bytes{{{CHOSEN}}} / seedance_gpu_memory_total_bytes{{{CHOSEN}}}"
)
# Dashboards that people have call the node so.
GPUS = with_label(
    columns(
        known=f'(seedance_topology_device_info{{{CHOSEN},kind="gpu",gpu_uuid!=""}}'
        f" or seedance_gpu_info{{{CHOSEN}}})",
        utilization=UTILIZATION,
        memory=MEMORY_USED,
        power=POWER,
    ),
    "node_name",
    "$1",
    "instance",
    "(.+)",
)
