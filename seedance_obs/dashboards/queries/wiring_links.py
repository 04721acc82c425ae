"""The links of a node as the edges of a graph: what each carries, and how full it is.

What passes a PCIe link is known by the device at its far end: a GPU, a network adapter, or what is
below a switch or a root complex. What passes NVLinks is known by GPU, for all its links together,
so of the two GPUs at the ends of one the less loaded bounds what it carries.
"""

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.queries import node_graph
from seedance_obs.dashboards.queries.scope import CHOSEN
from seedance_obs.dashboards.queries.shape import columns, joined, with_label

EDGE = "cluster, instance, source, target, kind"
# Neither disks, which crowd the picture, nor the links by which NVSwitches are set up.
PCIE = f'{CHOSEN},kind="pcie",target_kind!~"nvme|nvswitch"'
NVLINK = f'{CHOSEN},kind=~"nvlink|c2c"'
CLASSES = {"nvlink": theme.NVLINK, "c2c": theme.C2C, "pcie": theme.PCIE}
SEGMENT = f'{CHOSEN},segment_kind=~"pcie_.+"'
LOADED = 0.05


def _links(scope: str) -> str:
    return f"seedance_topology_edge_links{{{scope}}}"


def _bandwidth(scope: str, state: str) -> str:
    bandwidth = "seedance_topology_edge_bandwidth_bytes_per_second"
    return f'max by ({EDGE}) ({bandwidth}{{{scope},state="{state}"}})'


def at_device(expr: str, label: str) -> str:
    """The query with the address of a device, which is in another label, in `device`."""
    return with_label(expr, "device", "$1", label, "(.+)")


def pcie_loads() -> str:
    """Load of network adapters, switches and roots: a ratio, of the busier direction."""
    mean, capacity = (f"seedance_nic_{each}_bytes_per_second" for each in ("mean", "capacity"))
    nics = f"{mean}{{{CHOSEN}}} / ignoring (direction) group_left () ({capacity}{{{CHOSEN}}} > 0)"
    passed = f"rate(seedance_segment_bytes_total{{{SEGMENT}}}[$__rate_interval])"
    segments = f"{passed} / (seedance_segment_capacity_bytes_per_second{{{SEGMENT}}} > 0)"
    loads = f"{at_device(nics, 'pci_bus_id')}\nor {at_device(segments, 'segment')}"
    return f"max by (cluster, instance, device) ({loads})"


def _gpu_loads() -> str:
    """Load of what leads to GPUs, by the kind of edge."""
    mean, capacity = (f"seedance_gpu_link_{each}_bytes_per_second" for each in ("mean", "capacity"))
    same = "on (cluster, instance, gpu_uuid, pci_bus_id, medium)"
    loads = f"{mean}{{{CHOSEN}}} / {same} group_left () ({capacity}{{{CHOSEN}}} > 0)"
    loads = with_label(at_device(loads, "pci_bus_id"), "kind", "$1", "medium", "(.+)")
    return f"max by (cluster, instance, device, kind) ({loads})"


def _load() -> str:
    """Load of every edge at whose ends it is known."""
    ends = [at_device(_links(scope), "target") for scope in (PCIE, NVLINK)]
    ends.append(at_device(_links(NVLINK), "source"))
    loads = f"({_gpu_loads()}\nor {with_label(pcie_loads(), 'kind', 'pcie')})"
    same = "on (cluster, instance, device, kind)"
    return f"min by ({EDGE}) (0 * ({' or '.join(ends)})\n+ {same} group_left () {loads})"


def _wrong() -> str:
    """NVLinks that are down, and PCIe links that are slower than they should be under load."""
    down, slow = (
        f"{_bandwidth(scope, 'current')} < {_bandwidth(scope, 'nominal')}"
        for scope in (NVLINK, PCIE)
    )
    told = f"seedance_gpu_pcie_link_degraded{{{CHOSEN}}} == 1"
    told = with_label(told, "target", "$1", "pci_bus_id", "(.+)")
    loaded = with_label(f"{pcie_loads()} >= {LOADED}", "target", "$1", "device", "(.+)")
    same = "on (cluster, instance, target)"
    told = f"max by ({EDGE}) ({_links(PCIE)}) and {same} {told}"
    return f"({down}) or (({slow}) and {same} {loaded}) or ({told})"


def _edges() -> str:
    """The edge frame: load in per cent where it is known, and links where there are several."""
    edges = f"max by ({EDGE}) ({_links(PCIE)} or {_links(NVLINK)})"
    best = " or ".join(_bandwidth(scope, "nominal") for scope in (PCIE, NVLINK))
    wide = f"({node_graph.thickness(best)} or 0 * {edges} + 1)"
    colors = node_graph.colored(edges, EDGE, load=_load(), wrong=_wrong(), classes=CLASSES)
    expr = columns(
        thickness=f"{wide}\n* on ({EDGE}) group_left (color) {colors}",
        mainstat=f"round(100 * {_load()})",
        secondarystat=f"max by ({EDGE}) ({_links(NVLINK)})",
    )
    for end in ("source", "target"):
        expr = joined(expr, end, "/", "cluster", "instance", end)
    expr = joined(expr, "id", "~", "source", "kind", "target")
    return with_label(expr, "strokedasharray", "6 4", "kind", "pcie")


EDGES = _edges()
DIRECT = f'seedance_topology_edge_links{{{CHOSEN},kind="nvlink",target_kind="gpu"}}'
BELOW_A_SWITCH = f'{_links(PCIE)[:-1]},target_kind="pcie_switch",source!~"pci.+"}}'
