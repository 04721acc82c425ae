"""How the node is wired: its devices and the links between them, one series each."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, LocatedGpu, NodeView
from seedance_obs.sources.readings import NvLink
from seedance_obs.topology.domains import HIDDEN_SWITCH
from seedance_obs.topology.wiring import Device, WiredGpu, wiring


@register("topology", "the node's devices and the PCIe and NVLink edges between them")
class TopologyCollector:
    """The graph of the node, lost GPUs included."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        devices, edges = wiring(_wired(view)) if view.gpus or view.missing else ([], [])
        info = InfoMetricFamily(
            "seedance_topology_device",
            "A device of this node by PCI address. Kinds: host, pcie_root, pcie_switch, gpu, "
            "nvswitch, nvlink_fabric (switches the host cannot see), npu, unknown. State missing: "
            "a GPU that was seen before and does not answer now.",
        )
        indices = {gpu.labels[1]: gpu.labels[0] for gpu in view.gpus}
        indices.update({labels[1]: labels[0] for labels in view.missing})
        for device in devices:
            info.add_metric([], _labels(device, indices.get(device.gpu_uuid, "")))
        links = GaugeMetricFamily(
            "seedance_topology_edge_links",
            "Links from one device of this node to another: active NVLinks, or 1 for PCIe. An "
            "edge between two GPUs is shown once.",
            labels=["source", "target", "kind"],
        )
        for edge in edges:
            links.add_metric([edge.source, edge.target, edge.kind], edge.links)
        yield from (info, links)


def _labels(device: Device, index: str) -> dict[str, str]:
    return {
        "device": device.name,
        "kind": device.kind,
        "gpu": index,
        "gpu_uuid": device.gpu_uuid,
        "numa_node": device.numa_node,
        "state": "present" if device.present else "missing",
    }


def _wired(view: NodeView) -> Iterator[WiredGpu]:
    here = {gpu.merged.pci_bus_id for gpu in view.gpus}
    for gpu in view.gpus:
        yield _wire(gpu.labels, present=True, nvlinks=_peers(gpu, here))
    for labels in view.missing:
        yield _wire(labels, present=False, nvlinks=Counter())


def _wire(labels: tuple[str, ...], *, present: bool, nvlinks: Counter[tuple[str, str]]) -> WiredGpu:
    place = dict(zip(GPU_LABELS, labels, strict=True))
    return WiredGpu(
        pci_bus_id=place["pci_bus_id"] or place["gpu_uuid"],
        uuid=place["gpu_uuid"],
        numa_node=place["numa_node"],
        pcie_root=place["pcie_root"],
        pcie_switch=place["pcie_switch"],
        nvlinks=nvlinks,
        present=present,
    )


def _peers(gpu: LocatedGpu, here: set[str | None]) -> Counter[tuple[str, str]]:
    return Counter(_peer(link, here) for link in gpu.merged.nvlinks or () if link.active)


def _peer(link: NvLink, here: set[str | None]) -> tuple[str, str]:
    if link.remote_bus_id is None:
        return HIDDEN_SWITCH, "switch"
    return link.remote_bus_id, "gpu" if link.remote_bus_id in here else link.remote_kind
