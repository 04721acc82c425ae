"""The Topology View: the fleet, its nodes, and the wiring of those that are chosen."""

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.queries.scope import BY_NODE, CHOSEN, FIRING, FLEET, SAME_GPU
from seedance_obs.dashboards.queries.shape import columns, joined, with_label

SEEN = f"seedance_gpus_seen{{{FLEET}}}"
EXPECTED = f"seedance_gpus_expected{{{FLEET}}}"
FLEET_SEEN = f"sum({SEEN})"
FLEET_EXPECTED = f"sum({EXPECTED})"
FLEET_MISSING = f"sum(clamp_min({EXPECTED} - {SEEN}, 0))"
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
# Prometheus sorts series by their labels, so band, the first, decides their order.
UTILIZATION_BANDS = f'label_join({UTILIZATION}, "band", " GPU ", "instance", "gpu")'
POWER = f"seedance_gpu_power_watts{{{CHOSEN}}}"
MEMORY_USED = (
    f"seedance_gpu_memory_used_bytes{{{CHOSEN}}} / seedance_gpu_memory_total_bytes{{{CHOSEN}}}"
)
GPUS = columns(
    known=f'(seedance_topology_device_info{{{CHOSEN},kind="gpu",gpu_uuid!=""}}'
    f" or seedance_gpu_info{{{CHOSEN}}})",
    utilization=UTILIZATION,
    memory=MEMORY_USED,
    power=POWER,
)

# Disks stay out of the picture: they crowd it, and say nothing of where a GPU's work runs.
PRESENT = f'seedance_topology_device_info{{{CHOSEN},state="present",kind!="nvme"}}'
LOST = f'seedance_topology_device_info{{{CHOSEN},state="missing"}}'
NVLINKS = f'seedance_topology_edge_links{{{CHOSEN},kind=~"nvlink|c2c"}}'
PCIE = f'seedance_topology_edge_links{{{CHOSEN},kind="pcie",target_kind!="nvme"}}'
# Label, text, and where: another label and its pattern. A later row wins.
DEVICE_TEXTS = (
    ("title", "$1", "title", "host;(.*)"),
    ("title", "$1", "title", "(.*);.*"),
    ("title", "PCIe switch", "kind", "pcie_switch"),
    ("title", "NVSwitch", "kind", "nvswitch"),
    ("title", "NVLink fabric", "kind", "nvlink_fabric"),
    ("title", "$1", "label", "(.+)"),
    ("title", "GPU $1", "gpu", "(.+)"),
    ("subtitle", "NUMA $1", "numa_node", "(.+)"),
    ("subtitle", "$1", "device", "(.+:.+[.].+)"),
    ("subtitle", "missing", "state", "missing"),
    ("icon", "exclamation-triangle", "state", "missing"),
)
LINK_TEXTS = (
    ("color", theme.NVLINK, "kind", "nvlink|c2c"),
    ("color", theme.PCIE, "kind", "pcie"),
    ("strokedasharray", "6 4", "kind", "pcie"),
)


def _devices() -> str:
    """The node frame of a graph: utilisation in per cent, watts, and arcs that add up to 1."""
    expr = columns(
        mainstat=f"100 * {PRESENT} * {SAME_GPU} group_left () {UTILIZATION}",
        secondarystat=f"{PRESENT} * {SAME_GPU} group_left () {POWER}",
        arc__busy=f"{PRESENT} * {SAME_GPU} group_left () {UTILIZATION}",
        arc__idle=f"{PRESENT} - {SAME_GPU} group_left () {UTILIZATION}",
        arc__unknown=f"{PRESENT} unless {SAME_GPU} {UTILIZATION}",
        arc__missing=LOST,
    )
    expr = joined(expr, "id", "/", "instance", "device")
    expr = joined(expr, "title", ";", "device", "instance")
    for texts in DEVICE_TEXTS:
        expr = with_label(expr, *texts)
    return expr


def _links() -> str:
    """The edge frame of a graph: NVLinks by their number, the PCIe tree without one."""
    expr = columns(mainstat=NVLINKS, thickness=f"(1 + {NVLINKS} / 2 or {PCIE})")
    for end in ("source", "target"):
        expr = joined(expr, end, "/", "instance", end)
    expr = joined(expr, "id", "~", "source", "target")
    for texts in LINK_TEXTS:
        expr = with_label(expr, *texts)
    return expr


DEVICES = _devices()
LINKS = _links()
