"""The parts of a host that several GPUs or tenants send through, and what each carries one way.

Which of them are told:

- PCIe switches and root complexes with a GPU below. One GPU alone counts as well: tenants may share
  it, and then its link is theirs together. Of those that carry the same devices only the narrowest
  is told, the lowest of equally wide ones: they stand in a row, and the traffic is one.
- NVLink domains of two or more GPUs of this host.
- The memory of every GPU but those in MIG mode, whose instances have slices of it to themselves.
- Network adapters, as far as the caller knows what they carry.

A lost GPU is no member: it sends nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from seedance_obs.topology.bandwidth import pcie_bytes_per_second, port_rate
from seedance_obs.topology.model import (
    UNKNOWN,
    Absent,
    Device,
    Kind,
    PcieLink,
    Topology,
    all_known,
)
from seedance_obs.topology.products import product

_SHARED_PCIE = {Kind.PCIE_SWITCH: "pcie_switch", Kind.PCIE_ROOT: "pcie_root"}

_Children = Mapping[str, tuple[str, ...]]  # what hangs right below each device
_Members = tuple[tuple[str, ...], tuple[str, ...]]  # GPUs and network adapters


@dataclass(frozen=True, slots=True)
class Segment:
    """A shared part of a host.

    Attributes:
        kind: `pcie_switch`, `pcie_root`, `nvlink_domain`, `hbm` or `nic`.
        name: A switch's upstream port, a root complex, an NVLink domain, a GPU's UUID, or a network
            adapter's device name.
        gpus: The GPUs below it by UUID, or by device name where that is not known.
        nics: The network adapters below it by device name, on a live host their PCI address.
        capacity: Bytes per second one way; of memory those of reads and writes together.
    """

    kind: str
    name: str
    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    capacity: float | Absent


def segments(
    topology: Topology, *, nic_capacities: Mapping[str, float] | None = None
) -> tuple[Segment, ...]:
    """The shared segments of a host, those of PCIe first.

    Args:
        topology: The host; without pcie edges none of its switches and root complexes are told.
        nic_capacities: What each network adapter carries one way in bytes per second.
    """
    rates = nic_capacities or {}
    nics = (Segment("nic", name, (), (name,), rate) for name, rate in rates.items())
    return (*_pcie(topology), *_nvlink(topology), *_memories(topology), *nics)


def _pcie(topology: Topology) -> Iterator[Segment]:
    below = _children(topology)
    trees = {each.name: _tree(below, each.name) for each in topology.of_kind(*_SHARED_PCIE)}
    narrowest: dict[_Members, Segment] = {}
    for name in sorted(trees, key=lambda name: len(trees[name])):  # the lowest first
        members, device = _members(topology, trees[name]), topology.by_name[name]
        if not members[0]:
            continue
        capacity = _pcie_capacity(topology, below, device)
        found = Segment(_SHARED_PCIE[device.kind], name, *members, capacity)
        if _is_narrower(capacity, narrowest.setdefault(members, found).capacity):
            narrowest[members] = found
    named = {segment.name: segment for segment in narrowest.values()}
    return (named[name] for name in trees if name in named)


def _is_narrower(capacity: float | Absent, than: float | Absent) -> bool:
    if isinstance(capacity, Absent):
        return False
    return isinstance(than, Absent) or capacity < than


def _children(topology: Topology) -> _Children:
    below: dict[str, tuple[str, ...]] = {}
    for edge in topology.edges:
        if edge.kind == "pcie":
            below[edge.source] = (*below.get(edge.source, ()), edge.target)
    return below


def _tree(below: _Children, name: str) -> frozenset[str]:
    """A device and everything below it."""
    found, left = {name}, [name]
    while left:
        new = set(below.get(left.pop(), ())) - found
        found |= new
        left.extend(new)
    return frozenset(found)


def _members(topology: Topology, tree: frozenset[str]) -> _Members:
    """The GPUs and the network adapters in a tree, in the order of the topology's devices."""
    ends = topology.of_kind(Kind.GPU, Kind.NIC)
    inside = [device for device in ends if device.name in tree and device.present]
    gpus = tuple(_uuid(device) for device in inside if device.kind is Kind.GPU)
    return gpus, tuple(device.name for device in inside if device.kind is Kind.NIC)


def _uuid(gpu: Device) -> str:
    return gpu.name if isinstance(gpu.uuid, Absent) else gpu.uuid


def _pcie_capacity(topology: Topology, below: _Children, device: Device) -> float | Absent:
    """Of a switch what its uplink carries; of a root complex what the links on it do together.

    Only links that lead to a GPU or a network adapter count, whose traffic is known; the functions
    of one card have one link.
    """
    if device.kind is Kind.PCIE_SWITCH:
        return _link_rate(device.pcie)
    cards: dict[str, float | Absent] = {}
    for name in below.get(device.name, ()):
        if any(_members(topology, _tree(below, name))):
            cards.setdefault(name.rpartition(".")[0] or name, _rate_of(topology, name))
    rates = all_known(cards.values())
    return rates if isinstance(rates, Absent) else sum(rates)


def _rate_of(topology: Topology, name: str) -> float | Absent:
    return _link_rate(topology.by_name[name].pcie) if name in topology.by_name else UNKNOWN


def _link_rate(link: PcieLink) -> float | Absent:
    """At the best generation, since an idle link sleeps at a lower one.

    The width is the one that the link has, which sleep does not change: a port of sixteen lanes
    may be wired to a slot of eight.
    """
    generation = _first(link.generation_max, link.generation)
    width = _first(link.width, link.width_max)
    if isinstance(generation, Absent) or isinstance(width, Absent):
        return UNKNOWN
    return pcie_bytes_per_second(generation, width)


def _first(*values: int | Absent) -> int | Absent:
    return next((value for value in values if not isinstance(value, Absent)), UNKNOWN)


def _nvlink(topology: Topology) -> Iterator[Segment]:
    members: dict[str, list[Device]] = {}
    for gpu in topology.gpus:
        if gpu.present and gpu.name in topology.domains:
            members.setdefault(topology.domains[gpu.name], []).append(gpu)
    for domain, gpus in members.items():
        if len(gpus) > 1:
            yield Segment("nvlink_domain", domain, tuple(map(_uuid, gpus)), (), _nvlink_rate(gpus))


def _nvlink_rate(gpus: Iterable[Device]) -> float | Absent:
    """What all the links of some GPUs that are not down carry one way together."""
    rates = all_known(_rate_of_links(gpu) for gpu in gpus)
    return rates if isinstance(rates, Absent) else sum(rates)


def _rate_of_links(gpu: Device) -> float | Absent:
    if isinstance(gpu.nvlinks, Absent):
        return UNKNOWN
    each = port_rate(gpu)
    up = [port.mb_per_second for port in gpu.nvlinks if port.active is not False]
    rates = all_known(each if isinstance(rate, Absent) else rate * 1e6 for rate in up)
    return rates if isinstance(rates, Absent) else sum(rates)


def _memories(topology: Topology) -> Iterator[Segment]:
    for gpu in topology.gpus:
        if gpu.present and gpu.mig is not True:
            yield Segment("hbm", _uuid(gpu), (_uuid(gpu),), (), _memory_rate(gpu))


def _memory_rate(gpu: Device) -> float | Absent:
    board = None if isinstance(gpu.model, Absent) else product(gpu.model)
    return UNKNOWN if board is None or board.memory_gbps is None else board.memory_gbps * 1e9
