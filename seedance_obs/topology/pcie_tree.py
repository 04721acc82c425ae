"""Everything above the end devices: the host, root complexes, switches, and the wires down."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from seedance_obs.topology.distance import combined_paths
from seedance_obs.topology.domains import domains
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Absent, Device, Edge, Kind, Topology
from seedance_obs.topology.pci import switches

HOST = "host"
_ON_PCIE = (Kind.GPU, Kind.NIC, Kind.NVME, Kind.NVSWITCH, Kind.UNKNOWN)

Chain = Sequence[tuple[str, Kind]]
"""What a device hangs on, from the top down: a root complex, switches."""


def nearest_switch(ports: tuple[str, ...] | Absent) -> str | Absent:
    """The upstream port of the switch that a device hangs on; UNSUPPORTED where it is none."""
    if isinstance(ports, Absent):
        return UNKNOWN
    crossed = switches(ports)
    return crossed[-1] if crossed else UNSUPPORTED


def chain_of(device: Device) -> Chain:
    """The root complex and the switches above a device, as far as it tells."""
    root = [] if isinstance(device.pcie_root, Absent) else [(device.pcie_root, Kind.PCIE_ROOT)]
    crossed = () if isinstance(device.ports, Absent) else switches(device.ports)
    return [*root, *((port, Kind.PCIE_SWITCH) for port in crossed)]


def pcie_tree(
    devices: Iterable[Device], chain: Callable[[Device], Chain] = chain_of
) -> tuple[tuple[Device, ...], tuple[Edge, ...]]:
    """The devices above these and the pcie edges from the host down to each of them.

    A device whose root complex or switches are not known hangs on the next thing above that is.
    What stands above has the NUMA nodes of what hangs below, where all that is known agrees.
    """
    kinds = {HOST: Kind.HOST}
    nodes: dict[str, set[frozenset[int]]] = {}
    edges: dict[tuple[str, str], Edge] = {}
    for device in devices:
        if device.kind not in _ON_PCIE:
            continue
        above = HOST
        for name, kind in chain(device):
            kinds.setdefault(name, kind)
            if isinstance(device.numa, frozenset):
                nodes.setdefault(name, set()).add(device.numa)
            edges.setdefault((above, name), Edge(above, name, "pcie"))
            above = name
        edges.setdefault((above, device.name), Edge(above, device.name, "pcie"))
    return tuple(_above(kinds, nodes)), tuple(edges.values())


def assembled(
    devices: Iterable[Device],
    links: Iterable[Edge] = (),
    *,
    chain: Callable[[Device], Chain] = chain_of,
    complete: Container[str] | None = None,
    host: str = "",
) -> Topology:
    """A topology of end devices and NVLink or C2C edges, with all that follows from them.

    `complete` names the GPUs all of whose NVLinks are among the edges: see `nvlinks.nvlinks`.
    """
    devices = tuple(devices)
    above, wires = pcie_tree(devices, chain)
    everything, edges = (*above, *devices), (*wires, *links)
    paths = combined_paths(everything, edges, complete=complete)
    return Topology(everything, paths, edges, domains(everything, edges), host)


def _above(kinds: dict[str, Kind], nodes: dict[str, set[frozenset[int]]]) -> Iterator[Device]:
    for name, kind in kinds.items():
        told = nodes.get(name, set())
        yield Device(name, kind, numa=next(iter(told)) if len(told) == 1 else UNKNOWN)
