"""How far apart devices are: PCIe levels from where they hang, and the paths between all of them.

A switch is known by its upstream port. Two levels of a Broadcom switch count as one where the
source tells models of ports (see `pci.same_switch`); `lspci -tv` does not, so there the inner
level counts as a switch of its own, as it does for nvidia-smi.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, takewhile

from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Edge,
    Kind,
    NvLinkKind,
    Path,
    PcieLevel,
)
from seedance_obs.topology.nvlinks import Links, links_between, nvlinks
from seedance_obs.topology.pci import switches

_PCIE_CLASSES = ("PIX", "PXB", "PHB", "NODE", "SYS")
_END_DEVICES = (Kind.GPU, Kind.NIC, Kind.NVME)


def pcie_level(one: Device, other: Device) -> PcieLevel | Absent:
    """How far apart two devices are on PCIe; the same from either side.

    Functions of one card are PIX, and so is what meets in a single switch or below a single
    port; several switches are PXB, a root complex PHB, another one of the same NUMA nodes NODE,
    of other nodes SYS. UNKNOWN where a fact that decides is missing: a switch, a root complex,
    or NUMA nodes that neither agree nor differ (one set overlaps the other).
    """
    if _same_card(one, other) or _same_place(one.pcie_switch, other.pcie_switch):
        return PcieLevel.PIX
    if isinstance(one.ports, tuple) and isinstance(other.ports, tuple):
        shared = _shared(one.ports, other.ports)
        if shared:
            crossed = _switches_crossed(one.ports, other.ports, shared)
            return PcieLevel.PIX if crossed < 2 else PcieLevel.PXB
        if _same_place(one.pcie_root, other.pcie_root):
            return PcieLevel.PHB
    if _same_place(one.pcie_root, other.pcie_root):
        return UNKNOWN
    return _across_root_complexes(one, other)


def combined_paths(
    devices: Iterable[Device], edges: Sequence[Edge] = (), *, complete: Container[str] | None = None
) -> tuple[Path, ...]:
    """The paths from every GPU to every GPU, NIC and NVMe drive, and between NICs.

    Also from a GPU to a CPU or NPU that it has NVLink or C2C to. PCIe levels come from the
    devices, or from the tree of pcie edges where the devices do not tell. NVLinks come from the
    devices' ports, or from nvlink edges (`complete`: see `nvlinks.nvlinks`); a direct link goes
    before a way through switches.
    """
    devices = tuple(devices)
    ends = [device for device in devices if device.kind in _END_DEVICES]
    links = nvlinks(devices, edges, complete)
    above = _switch_above(devices, edges)
    pairs = (_path(one, other, links, above) for one, other in combinations(ends, 2))
    return (*(path for path in pairs if path), *_to_processors(devices, edges, links))


def worst_class(classes: Iterable[str | Absent]) -> str | Absent:
    """The slowest of some link classes; UNKNOWN if any is, UNSUPPORTED for none at all."""
    found = list(classes)
    told = [name for name in found if not isinstance(name, Absent)]
    if len(told) < len(found):
        return UNKNOWN
    return max(told, key=_distance) if told else UNSUPPORTED


def nearest_first(classes: Iterable[str]) -> list[str]:
    """Link classes in order: most NVLinks first, SYS last."""
    return sorted(classes, key=_distance)


def _same_card(one: Device, other: Device) -> bool:
    if isinstance(one.bus_id, Absent) or isinstance(other.bus_id, Absent):
        return False
    return one.bus_id.rpartition(".")[0] == other.bus_id.rpartition(".")[0]


def _same_place(one: str | Absent, other: str | Absent) -> bool:
    return one == other and isinstance(one, str)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)


def _switches_crossed(one: Sequence[str], other: Sequence[str], shared: int) -> int:
    """The switches on the way; what parts ways below an upstream port crosses that switch too."""
    apart = sum(
        1
        for ports in (one, other)
        for place, _ in enumerate(switches(ports))
        if 2 * place + 1 >= shared
    )
    return apart + (shared % 2 == 0)


def _across_root_complexes(one: Device, other: Device) -> PcieLevel | Absent:
    if isinstance(one.numa, Absent) or isinstance(other.numa, Absent):
        return UNKNOWN
    if not one.numa or not other.numa:
        return UNKNOWN
    if one.numa.isdisjoint(other.numa):
        return PcieLevel.SYS
    known = isinstance(one.pcie_root, str) and isinstance(other.pcie_root, str)
    return PcieLevel.NODE if known and one.numa == other.numa else UNKNOWN


def _path(
    one: Device,
    other: Device,
    links: Mapping[str, Links],
    above: Mapping[str, str],
) -> Path | None:
    kinds = {one.kind, other.kind}
    if Kind.GPU not in kinds and kinds != {Kind.NIC}:
        return None
    level = pcie_level(one, other)
    if level is UNKNOWN:
        level = _level_by_tree(one.name, other.name, above)
    count, kind = links_between(one, other, links)
    return Path(one.name, other.name, level, count, kind)


def _switch_above(devices: Iterable[Device], edges: Iterable[Edge]) -> Mapping[str, str]:
    """The switch right above each device that hangs on one."""
    named = {device.name for device in devices if device.kind is Kind.PCIE_SWITCH}
    return {e.target: e.source for e in edges if e.kind == "pcie" and e.source in named}


def _level_by_tree(one: str, other: str, above: Mapping[str, str]) -> PcieLevel | Absent:
    chains = [list(_chain(name, above)) for name in (one, other)]
    if not set(chains[0]) & set(chains[1]):
        return UNKNOWN
    return PcieLevel.PIX if chains[0][0] == chains[1][0] else PcieLevel.PXB


def _chain(name: str, above: Mapping[str, str]) -> Iterator[str]:
    seen: set[str] = set()
    while name in above and name not in seen:
        seen.add(name)
        name = above[name]
        yield name


def _to_processors(
    devices: Iterable[Device], edges: Iterable[Edge], links: Mapping[str, Links]
) -> Iterator[Path]:
    devices = tuple(devices)
    here = {device.name for device in devices}
    processors = {device.name for device in devices if device.kind in (Kind.CPU, Kind.NPU)}
    for gpu, its in links.items():
        for peer in sorted(its.peers.keys() & processors):
            yield Path(gpu, peer, nvlinks=its.peers[peer], nvlink_kind=NvLinkKind.DIRECT)
    for edge in edges:
        if edge.kind == "c2c" and {edge.source, edge.target} <= here:
            yield Path(edge.source, edge.target, nvlinks=edge.links, nvlink_kind=NvLinkKind.C2C)


def _distance(link_class: str) -> int:
    """NVLinks are nearest, the more the nearer; then chip to chip, then PCIe's levels."""
    if link_class.startswith("NV"):
        return -int(link_class[2:])
    return _PCIE_CLASSES.index(link_class) + 1 if link_class in _PCIE_CLASSES else 0
