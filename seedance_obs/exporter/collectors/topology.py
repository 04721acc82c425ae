"""How the node is wired: its devices, the wires between neighbours, the path of every pair."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView
from seedance_obs.topology.model import Absent, Device, Edge, Kind, Path, Topology, known
from seedance_obs.topology.naming import number_list

EDGE_LABELS = ("source", "target", "kind", "target_kind")


@register("topology", "the node's devices, the PCIe and NVLink edges between them, and their paths")
class TopologyCollector:
    """The graph of the node, lost GPUs included."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        topology = view.topology if view.gpus or view.missing else Topology()
        yield _devices(topology)
        yield from _edges(topology)
        yield _paths(topology)


def _devices(topology: Topology) -> Metric:
    info = InfoMetricFamily(
        "seedance_topology_device",
        "A device of this node by PCI address. Kinds: host, pcie_root, pcie_switch, gpu, nic, "
        "nvme, nvswitch, nvlink_fabric (switches the host cannot see), npu, unknown. Label is "
        "what Linux calls it. State missing: a GPU that was seen before and does not answer now.",
    )
    for device in topology.devices:
        info.add_metric([], _device_labels(device))
    return info


def _device_labels(device: Device) -> dict[str, str]:
    return {
        "device": device.name,
        "kind": device.kind,
        "label": device.label,
        "gpu": "" if device.index is None else str(device.index),
        "gpu_uuid": known(device.uuid) or "",
        "numa_node": number_list(device.numa) or "",
        "state": "present" if device.present else "missing",
    }


def _edges(topology: Topology) -> Iterator[Metric]:
    links = GaugeMetricFamily(
        "seedance_topology_edge_links",
        "Links from one device of this node to its neighbour: NVLinks or NVLink-C2C links that "
        "are up, or 1 for PCIe. An edge between two GPUs is shown once.",
        labels=EDGE_LABELS,
    )
    bandwidth = GaugeMetricFamily(
        "seedance_topology_edge_bandwidth_bytes_per_second",
        "What an edge can carry one way. Nominal: all the links it has had, at their best; "
        "current: the links that are up, as fast as they are now (PCIe slows down when idle).",
        labels=(*EDGE_LABELS, "state"),
    )
    for edge in topology.edges:
        labels = _edge_labels(topology, edge)
        links.add_metric(labels, edge.links)
        for state, value in (("nominal", edge.nominal), ("current", edge.current)):
            if not isinstance(value, Absent):
                bandwidth.add_metric([*labels, state], value)
    yield from (links, bandwidth)


def _edge_labels(topology: Topology, edge: Edge) -> list[str]:
    return [edge.source, edge.target, edge.kind, topology.by_name[edge.target].kind]


def _paths(topology: Topology) -> Metric:
    info = InfoMetricFamily(
        "seedance_topology_path",
        "How a GPU reaches another GPU, an adapter or a disk of this node; each pair once. "
        "Link_class: NV<links>, C2C, PIX, PXB, PHB, NODE, SYS; pcie_class: the same without "
        "NVLink; nvlink_kind: direct, switch, hidden; p2p: ok or why not. Empty: not known.",
    )
    for path in topology.paths:
        ends = (topology.by_name[path.source], topology.by_name[path.target])
        if any(end.kind is Kind.GPU for end in ends) and (
            path.pcie_class or path.link_class or path.p2p
        ):
            info.add_metric([], _path_labels(ends, path))
    return info


def _path_labels(ends: tuple[Device, Device], path: Path) -> dict[str, str]:
    source, target = sorted(ends, key=lambda end: end.kind is not Kind.GPU)
    return {
        "source": source.name,
        "target": target.name,
        "target_kind": target.kind,
        "link_class": path.link_class or "",
        "pcie_class": path.pcie_class or "",
        "nvlink_kind": known(path.nvlink_kind) or "",
        "p2p": _p2p(path),
    }


def _p2p(path: Path) -> str:
    """`ok` where memory can be read and written, else the reason why not."""
    told = [path.p2p[way] for way in ("read", "write") if way in path.p2p]
    return next((status for status in told if status != "ok"), "ok" if told else "")
