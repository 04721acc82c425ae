"""The wiring of a node as a graph: what its devices do, and what passes between them.

What passes a PCIe link is known by the device at its far end: a GPU, a network adapter, or what is
below a switch or a root complex. What passes NVLinks is known by GPU, for all its links together,
so of two GPUs at the ends of one the less loaded bounds what it carries.
"""

from collections.abc import Sequence

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.queries import gpu_time, node_graph
from seedance_obs.dashboards.queries.scope import CHOSEN, SAME_GPU
from seedance_obs.dashboards.queries.shape import columns, joined, with_label

# From left to right, as traffic goes from the host.
COLUMNS = {
    "host": -640,
    "pcie_root": -480,
    "pcie_switch": -320,
    "nic": -60,
    "unknown": 20,
    "npu": 140,
    "gpu": 220,
    "nvswitch": 600,
    "nvlink_fabric": 600,
}
ASIDE = 100  # for a switch below a switch, and for every other one of more GPUs than this
MANY_GPUS = 8
GPU_RADIUS, RADIUS = 30, 20
SAME_DEVICE = "on (cluster, instance, device)"
EDGE = "cluster, instance, source, target, kind"

UTILIZATION = f"seedance_gpu_utilization_ratio{{{CHOSEN}}}"
POWER = f"seedance_gpu_power_watts{{{CHOSEN}}}"
# Disks stay out of the picture: they crowd it, and say nothing of where a GPU's work runs.
DEVICE = f'seedance_topology_device_info{{{CHOSEN},kind!="nvme"'
GPU = f'{DEVICE},kind="gpu",state="present"}}'
OTHER = f'{DEVICE},kind!="gpu"}}'
LOST = f'{DEVICE},state="missing"}}'
LINKS = f'seedance_topology_edge_links{{{CHOSEN},target_kind!="nvme"'
BANDWIDTH = f'seedance_topology_edge_bandwidth_bytes_per_second{{{CHOSEN},target_kind!="nvme"'
GPU_LINK = "seedance_gpu_link_{}_bytes_per_second{{" + CHOSEN + "}}"
NIC = "seedance_nic_{}_bytes_per_second{{" + CHOSEN + "}}"
SEGMENT = f'{CHOSEN},segment_kind=~"pcie_.+"'

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
STATES = ('"current"', '"nominal"')
CLASSES = {"nvlink": theme.NVLINK, "c2c": theme.C2C, "pcie": theme.PCIE}


def _loads() -> str:
    """Load of what leads to each device, a ratio, the busier way; `kind` is that of edges."""
    gpus = (
        f"{GPU_LINK.format('mean')}\n"
        "/ on (cluster, instance, gpu_uuid, pci_bus_id, medium) group_left ()\n"
        f"({GPU_LINK.format('capacity')} > 0)"
    )
    gpus = with_label(with_label(gpus, "kind", "$1", "medium", "(.+)"), *_from("pci_bus_id"))
    nics = (
        f"{NIC.format('mean')} / ignoring (direction) group_left () ({NIC.format('capacity')} > 0)"
    )
    bytes_per_second = f"rate(seedance_segment_bytes_total{{{SEGMENT}}}[$__rate_interval])"
    capacity = f"seedance_segment_capacity_bytes_per_second{{{SEGMENT}}}"
    segments = f"{bytes_per_second} / ({capacity} > 0)"
    others = (
        f"{with_label(nics, *_from('pci_bus_id'))}\nor {with_label(segments, *_from('segment'))}"
    )
    return (
        "max by (cluster, instance, device, kind) (\n"
        f"{gpus}\nor {with_label(others, 'kind', 'pcie')})"
    )


def _from(label: str) -> tuple[str, str, str, str]:
    return ("device", "$1", label, "(.+)")


def _load_of_edges() -> str:
    by_target = with_label(f"{LINKS}}}", *_from("target"))
    by_source = with_label(f'{LINKS},kind="nvlink"}}', *_from("source"))
    ends = f"({by_target}\nor {by_source})"
    same = "on (cluster, instance, device, kind)"
    return f"min by ({EDGE}) (\n0 * {ends}\n+ {same} group_left () {_loads()})"


def _wrong_edges() -> str:
    """NVLinks that are down, and PCIe links that are slower than they should be under load."""
    now, best = (f"max by ({EDGE}) ({BANDWIDTH},state={state}}})" for state in STATES)
    slow = f"seedance_gpu_pcie_link_degraded{{{CHOSEN}}} == 1"
    slow = with_label(with_label(slow, "target", "$1", "pci_bus_id", "(.+)"), "kind", "pcie")
    of_gpus = f"max by ({EDGE}) ({LINKS}}}) and on (cluster, instance, target, kind) {slow}"
    loaded = f"{_load_of_edges()} >= 0.05"
    idle_is_slow = f'max by ({EDGE}) ({LINKS},kind="pcie"}}) unless {loaded}'
    return f"(({now} < {best}) unless ({idle_is_slow})) or ({of_gpus})"


def _nodes(kinds: Sequence[str]) -> str:
    return f'{DEVICE},kind=~"{"|".join(kinds)}"}}'


def _places() -> dict[str, str]:
    """Of many GPUs every other one is drawn aside, and so is a switch below another."""
    cells = node_graph.places(COLUMNS, _nodes)
    odd = f'{DEVICE},kind="gpu",gpu=~".*[13579]"}}'
    many = f"scalar(count({_nodes(['gpu'])}) > bool {MANY_GPUS})"
    lower = f'{LINKS},target_kind="pcie_switch",source!~"pci.+"}}'
    below = f"{_nodes(['pcie_switch'])} and {SAME_DEVICE} {with_label(lower, *_from('target'))}"
    aside = (
        f"0 * {odd} + {COLUMNS['gpu']} + {ASIDE} * {many}\n"
        f"or 0 * ({below}) + {COLUMNS['pcie_switch'] + ASIDE}"
    )
    return {**cells, "fixedx": f"{aside}\nor {cells['fixedx']}"}


def _of_gpus(states: str) -> str:
    return f"{GPU} * {SAME_GPU} group_left () ({gpu_time.share(CHOSEN, states)})"


def _devices() -> str:
    """The node frame: per cent, watts, and arcs that add up to 1."""
    counted = f"{SAME_GPU} ({gpu_time.counted(CHOSEN)} > 0)"
    unknown = f"{_of_gpus('unobserved')}\nor ({GPU} unless {counted})"
    load = f"{OTHER} * {SAME_DEVICE} group_left () max by (cluster, instance, device) ({_loads()})"
    expr = columns(
        mainstat=f"100 * {GPU} * {SAME_GPU} group_left () {UTILIZATION}\nor 100 * {load}",
        secondarystat=f"{GPU} * {SAME_GPU} group_left () {POWER}",
        **gpu_time.ring(_of_gpus, unknown),
        arc__missing=LOST,
        arc__load=f"clamp_max({load}, 1)",
        arc__plain=f"1 - clamp_max({load}, 1) or 0 * {OTHER} + 1",
        noderadius=f"0 * {_nodes(['gpu', 'host'])} + {GPU_RADIUS} or 0 * {OTHER} + {RADIUS}",
        **_places(),
    )
    expr = joined(expr, "id", "/", "cluster", "instance", "device")
    expr = joined(expr, "title", ";", "device", "instance")
    for texts in DEVICE_TEXTS:
        expr = with_label(expr, *texts)
    return expr


def _edges() -> str:
    """The edge frame: load in per cent where it is known, and links where there are several."""
    edges, load = f"max by ({EDGE}) ({LINKS}}})", _load_of_edges()
    colors = node_graph.colored(edges, EDGE, load=load, wrong=_wrong_edges(), classes=CLASSES)
    best = f'max by ({EDGE}) ({BANDWIDTH},state="nominal"}})'
    wide = f"({node_graph.thickness(best)} or 0 * {edges} + 1)"
    expr = columns(
        thickness=f"{wide}\n* on ({EDGE}) group_left (color) {colors}",
        mainstat=f"round(100 * {load})",
        secondarystat=f'max by ({EDGE}) ({LINKS},kind=~"nvlink|c2c"}})',
    )
    for end in ("source", "target"):
        expr = joined(expr, end, "/", "cluster", "instance", end)
    expr = joined(expr, "id", "~", "source", "kind", "target")
    return with_label(expr, "strokedasharray", "6 4", "kind", "pcie")


DEVICES = _devices()
EDGES = _edges()
