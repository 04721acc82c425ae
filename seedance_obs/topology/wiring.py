"""The devices of a node and the links between them, as the graph a person would draw.

Host, PCI root complexes, PCIe switches, GPUs, NVSwitches: from the left to the right of a picture
and along every edge from source to target. Whatever an edge names is among the devices.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from seedance_obs.topology.domains import HIDDEN_SWITCH

HOST = "host"
KIND_OF_PEER = {"switch": "nvswitch", "ibm_npu": "npu"}


@dataclass(frozen=True, slots=True)
class WiredGpu:
    """A GPU by its PCI address, what it hangs on, and its NVLinks by (peer, kind of peer).

    A peer is a canonical PCI address, or `HIDDEN_SWITCH` where the host cannot see it.
    """

    pci_bus_id: str
    uuid: str
    numa_node: str = ""
    pcie_root: str = ""
    pcie_switch: str = ""
    nvlinks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    present: bool = True


@dataclass(frozen=True, slots=True)
class Device:
    """A vertex; `kind` is host, pcie_root, pcie_switch, gpu, nvswitch, nvlink_fabric or npu."""

    name: str
    kind: str
    numa_node: str = ""
    gpu_uuid: str = ""
    present: bool = True


@dataclass(frozen=True, slots=True)
class Edge:
    """Links between two devices: `kind` is pcie (one) or nvlink (as many as are active)."""

    source: str
    target: str
    kind: str
    links: int = 1


def wiring(gpus: Iterable[WiredGpu]) -> tuple[list[Device], list[Edge]]:
    """The devices and edges of a node; a link between two GPUs is one edge, not two.

    A GPU whose switch or root is not known hangs on the next device above that is.
    """
    devices = {HOST: Device(HOST, "host")}
    edges: dict[tuple[str, str, str], Edge] = {}
    for gpu in gpus:
        above = HOST
        for name, kind in ((gpu.pcie_root, "pcie_root"), (gpu.pcie_switch, "pcie_switch")):
            if name:
                devices.setdefault(name, Device(name, kind, numa_node=gpu.numa_node))
                _connect(edges, Edge(above, name, "pcie"))
                above = name
        devices[gpu.pci_bus_id] = Device(
            gpu.pci_bus_id, "gpu", gpu.numa_node, gpu.uuid, present=gpu.present
        )
        _connect(edges, Edge(above, gpu.pci_bus_id, "pcie"))
        for (peer, kind), links in gpu.nvlinks.items():
            _link(devices, edges, gpu.pci_bus_id, peer, kind, links)
    return list(devices.values()), list(edges.values())


def _link(
    devices: dict[str, Device],
    edges: dict[tuple[str, str, str], Edge],
    gpu: str,
    peer: str,
    kind: str,
    links: int,
) -> None:
    if kind == "gpu":
        source, target = sorted((gpu, peer))
        devices.setdefault(peer, Device(peer, "gpu", present=False))
        _connect(edges, Edge(source, target, "nvlink", links))
        return
    hidden = peer == HIDDEN_SWITCH
    shown = "nvlink_fabric" if hidden else KIND_OF_PEER.get(kind, "unknown")
    devices.setdefault(peer, Device(peer, shown))
    _connect(edges, Edge(gpu, peer, "nvlink", links))


def _connect(edges: dict[tuple[str, str, str], Edge], edge: Edge) -> None:
    edges.setdefault((edge.source, edge.target, edge.kind), edge)
