"""The devices of a node as the nodes of a graph: where each is, and what it does."""

from collections.abc import Sequence

from seedance_obs.dashboards.queries import gpu_time, node_graph
from seedance_obs.dashboards.queries.scope import CHOSEN, SAME_GPU
from seedance_obs.dashboards.queries.shape import columns, joined, with_label
from seedance_obs.dashboards.queries.wiring_links import (
    BELOW_A_SWITCH,
    DIRECT,
    at_device,
    pcie_loads,
)

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
BENT = 250  # where GPUs are linked to each other: in one line their links would hide
GPU_RADIUS, RADIUS = 26, 20
SAME_DEVICE = "on (cluster, instance, device)"

UTILIZATION = f"seedance_gpu_utilization_ratio{{{CHOSEN}}}"
POWER = f"seedance_gpu_power_watts{{{CHOSEN}}}"
DEVICE = f"seedance_topology_device_info{{{CHOSEN}"
# Disks stay out of the picture: they crowd it, and say nothing of where a GPU's work runs.
DRAWN = f'{DEVICE},kind!="nvme"}}'
GPU = f'{DEVICE},kind="gpu",state="present"}}'
OTHER = f'{DEVICE},kind!~"gpu|nvme"}}'
LOST = f'{DEVICE},kind="gpu",state="missing"}}'

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


def _nodes(kinds: Sequence[str]) -> str:
    if len(kinds) == len(COLUMNS):
        return DRAWN
    return f'{DEVICE},kind=~"{"|".join(kinds)}"}}'


def _places() -> dict[str, str]:
    """Of many GPUs every other one is drawn aside, and so is a switch below another."""
    cells = node_graph.places(COLUMNS, _nodes)
    gpus, odd = _nodes(["gpu"]), f'{DEVICE},kind="gpu",gpu=~".*[13579]"}}'
    many = f"scalar(count({gpus}) > bool {MANY_GPUS})"
    lower = f"{_nodes(['pcie_switch'])} and {SAME_DEVICE} {at_device(BELOW_A_SWITCH, 'target')}"
    aside = (
        f"0 * {odd} + {COLUMNS['gpu']} + {ASIDE} * {many}\n"
        f"or 0 * ({lower}) + {COLUMNS['pcie_switch'] + ASIDE}"
    )
    bend = -BENT / (node_graph.HEIGHT / 2) ** 2
    bent = f"0 * ({gpus} and on (cluster, instance) {DIRECT}) + {bend}"
    return {
        **cells,
        "left": f"{aside}\nor {cells['left']}",
        "bend": f"{bent}\nor {cells['bend']}",
    }


def _devices() -> str:
    """The node frame: per cent, watts, and arcs that add up to 1."""
    seconds = gpu_time.seconds(CHOSEN)
    facts = "device, gpu, kind, numa_node"
    ring = f"({gpu_time.ring(seconds, gpu_time.GPU)}) * {SAME_GPU} group_left ({facts}) {GPU}"
    load = f"{OTHER} * {SAME_DEVICE} group_left () {pcie_loads()}"
    found = columns(
        mainstat=f"100 * {GPU} * {SAME_GPU} group_left () {UTILIZATION}\nor 100 * {load}",
        secondarystat=f"{GPU} * {SAME_GPU} group_left () {POWER}",
        arc__unknown=f"{GPU} unless {SAME_GPU} (sum by ({gpu_time.GPU}) ({seconds}) > 0)",
        arc__missing=LOST,
        arc__plain=OTHER,
        noderadius=f"{RADIUS} + 0 * {OTHER} or {GPU_RADIUS} + 0 * {GPU} or {GPU_RADIUS} * {LOST}",
        **_places(),
    )
    expr = joined(f"({ring}\nor {found})", "id", "/", "cluster", "instance", "device")
    expr = joined(expr, "title", ";", "device", "instance")
    for texts in DEVICE_TEXTS:
        expr = with_label(expr, *texts)
    return expr


DEVICES = _devices()
