"""What passes over a shared segment, and whose it is.

Nothing counts bytes on a segment itself: its load is what its members say that they moved. Of PCIe
switches and root complexes that is an upper bound of what crosses to and from the host:

- A GPU counts whatever passes over its own slot, so what it exchanges with another GPU below the
  same segment is in the load although it stays below. Only the part that the caller knows to go to
  such peers is taken off.
- What adapters move by Ethernet comes from the memory of the host and goes there: what leaves the
  node crosses the segment towards the devices, what arrives crosses it away from them.
- What they move by RDMA is most likely GPUDirect, and then it is among the bytes of the GPUs. Only
  what exceeds that, seen over half a minute, crosses like Ethernet. Here the load is too low where
  RDMA ends in the memory of the host and as much passes between that and the GPUs below.
- Disks are not counted.

Bytes, means, peaks and busy time are of this bound. Contention is judged more carefully, for below
a switch most of the bound may never cross: what adapters below the same segment move by RDMA is
taken off the GPUs that they are nearest to, as GPUDirect that stays below. What is left is too low
where that RDMA ends in the memory of the host while those GPUs exchange other bytes with it.

An NVLink domain carries what leaves its GPUs, or what reaches them. The memory of a GPU carries
its activity times its capacity. An adapter carries what it moves, by any protocol.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import NamedTuple

from seedance_obs.bandwidth.grid import Block, Key

UNALLOCATED, UNOBSERVED = "unallocated", "unobserved"
NOBODY = frozenset((UNALLOCATED, UNOBSERVED))  # no tenants, though bytes are booked on them
VIA = ("rdma", "ethernet")
DIRECT_SECONDS = 30.0
MARGIN = 2  # cells by which two loops may see the same bytes apart
WHOLE = 1 - 1e-9
_OPPOSITE = {"transmit": "receive", "receive": "transmit"}

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SharedSegment:
    """A part of the host that several send through.

    Attributes:
        kind: One of `reading.SEGMENT_KINDS`.
        name: As in `reading.SegmentName`.
        gpus: The GPUs below it by UUID.
        nics: The network adapters below it by canonical PCI address.
        capacity: Bytes per second one way; of `hbm` both ways together.
    """

    kind: str
    name: str
    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    capacity: float


@dataclass(frozen=True, slots=True)
class Holders:
    """Whose the GPUs are at a time.

    Attributes:
        shares: By GPU, then tenant: the part (0 to 1) that is the tenant's of what the GPU moves.
            What they leave is nobody's; more than the whole is taken in proportion.
        nearest: The GPUs nearest to each network adapter, whose tenants its bytes are.
        peers: By GPU, then other GPU: the part (0 to 1) of its PCIe bytes that it is known to
            exchange with that one.
    """

    shares: Mapping[str, Shares] = field(default_factory=dict)
    nearest: Mapping[str, Sequence[str]] = field(default_factory=dict)
    peers: Mapping[str, Shares] = field(default_factory=dict)

    def of(self, gpu: str) -> Shares:
        """The tenants' shares of a GPU and nobody's; they add up to 1."""
        shares = self.shares.get(gpu, {})
        total = sum(shares.values())
        if total > WHOLE:
            return {tenant: share / total for tenant, share in shares.items()}
        return {**shares, UNALLOCATED: 1 - total + shares.get(UNALLOCATED, 0.0)}

    def tenants_of(self, gpus: Iterable[str]) -> set[str]:
        """Who holds any of some GPUs."""
        return {tenant for gpu in gpus for tenant in self.shares.get(gpu, ())} - NOBODY

    def outgoing(self, gpu: str, inside: Iterable[str]) -> float:
        """The part of a GPU's PCIe bytes that is not known to stay among some GPUs."""
        peers = self.peers.get(gpu)
        if not peers:
            return 1.0
        return max(0.0, 1 - sum(peers.get(other, 0.0) for other in inside if other != gpu))


class Part(NamedTuple):
    """A part of a load: bytes by cell, and whose they are in parts that add up to 1.

    `crossing` is what of it contention is judged by; None for all of it.
    """

    cells: list[float]
    owners: Shares
    crossing: list[float] | None = None


class GpuLoad:
    """The load of what only GPUs use: `factor` bytes for each unit of their amounts."""

    def __init__(self, gpus: Iterable[str], medium: str, direction: str, factor: float) -> None:
        self._keys = [Key(gpu, medium, direction) for gpu in gpus]
        self._factor = factor

    def keys(self, _holders: Holders) -> Iterable[Key]:
        """What it is made from."""
        return self._keys

    def parts(self, block: Block, holders: Holders) -> list[Part]:
        """A part for each GPU."""
        return [
            Part(_times(block.needed(key), self._factor), holders.of(key.device))
            for key in self._keys
        ]


class NicLoad:
    """The load of a network adapter."""

    def __init__(self, nic: str, direction: str) -> None:
        self._nic = _NicSide(nic, direction)

    def keys(self, holders: Holders) -> Iterable[Key]:
        """Its protocols, and the GPUs that tell whose its bytes are."""
        return self._nic.keys(holders)

    def parts(self, block: Block, holders: Holders) -> list[Part]:
        """A part for each protocol; a block in which it never told of any does not count."""
        told = [cells for key in self._nic.told if (cells := block.told(key)) is not None]
        if not told:
            block.holes.update(range(block.count))
            return []
        owners = self._nic.owners(block, holders)
        return [Part(cells, owners) for cells in told]


class PcieLoad:
    """The load of a switch's uplink or a root complex; `direction` as the GPUs see it."""

    def __init__(self, gpus: Sequence[str], nics: Sequence[str], direction: str) -> None:
        away = _OPPOSITE[direction]
        self._gpus = gpus
        self._keys = [Key(gpu, "pcie", direction) for gpu in gpus]
        self._nics = [_NicSide(nic, away) for nic in nics]
        self._beside = [Key(nic, "network", direction, "rdma") for nic in nics]
        self._direct = [Key(gpu, "pcie", away) for gpu in gpus]  # what RDMA may be among
        self._moved_by_gpus = self._moved_by_nics = 0.0  # lately

    def keys(self, holders: Holders) -> Iterable[Key]:
        """The GPUs, the adapters below, and the GPUs that their bytes are compared with."""
        if not self._nics:
            return self._keys
        nics = (key for nic in self._nics for key in nic.keys(holders))
        return (*self._keys, *self._direct, *nics, *self._beside)

    def parts(self, block: Block, holders: Holders) -> list[Part]:
        """A part for each GPU, and for each adapter what it exchanges with the host."""
        crossing = self._crossing(block, holders)
        parts = [
            Part(
                _times(block.needed(key), holders.outgoing(key.device, self._gpus)),
                holders.of(key.device),
                crossing.get(key.device),
            )
            for key in self._keys
        ]
        rdma = []
        for nic in self._nics:
            by_rdma, by_ethernet = (block.told(key) for key in nic.told)
            owners = nic.owners(block, holders)
            if by_ethernet is not None:
                parts.append(Part(by_ethernet, owners))
            if by_rdma is not None:
                rdma.append(Part(by_rdma, owners))
        if rdma:
            through_host = self._through_host(rdma, block, holders)
            parts += [Part(_times(each.cells, through_host), each.owners) for each in rdma]
        return parts

    def _crossing(self, block: Block, holders: Holders) -> Mapping[str, list[float]]:
        """What the GPUs moved without what adapters below did by RDMA; empty if those rested."""
        holes: set[int] = set()
        moved = {key.device: block.around(key, MARGIN, holes) for key in self._beside}
        if not any(map(any, moved.values())):
            return {}
        left = {
            key.device: _times(
                block.around(key, MARGIN, holes), holders.outgoing(key.device, self._gpus)
            )
            for key in self._keys
        }
        for nic, amounts in moved.items():
            near = [left[gpu] for gpu in holders.nearest.get(nic, ()) if gpu in left]
            _take_off(near, amounts, holes)
        return {gpu: cells[MARGIN:-MARGIN] for gpu, cells in left.items()}

    def _through_host(self, rdma: list[Part], block: Block, holders: Holders) -> float:
        """The part of the adapters' RDMA bytes that no GPU below can have moved.

        It is taken over half a minute, in which the phases of loops and the length of slow sources
        matter little.
        """
        fade = exp(-block.seconds / DIRECT_SECONDS)
        moved = sum(
            block.amount(key) * holders.outgoing(key.device, self._gpus) for key in self._direct
        )
        self._moved_by_gpus = self._moved_by_gpus * fade + moved
        self._moved_by_nics = self._moved_by_nics * fade + sum(sum(part.cells) for part in rdma)
        if self._moved_by_nics <= self._moved_by_gpus:
            return 0.0
        return 1 - self._moved_by_gpus / self._moved_by_nics


class _NicSide:
    """One direction of an adapter."""

    def __init__(self, nic: str, direction: str) -> None:
        self.told = [Key(nic, "network", direction, via) for via in VIA]
        self._nic = nic
        self._direction = direction

    def keys(self, holders: Holders) -> Iterable[Key]:
        return (*self.told, *self._near(holders))

    def owners(self, block: Block, holders: Holders) -> Shares:
        """By what the nearest GPUs moved in the same direction; nobody's where they moved nothing.

        The parts add up to 1.
        """
        weights: dict[str, float] = {}
        for key in self._near(holders):
            moved = block.amount(key)
            for tenant, share in holders.of(key.device).items() if moved else ():
                weights[tenant] = weights.get(tenant, 0.0) + moved * share
        total = sum(weights.values())
        if not total:
            return {UNALLOCATED: 1.0}
        return {tenant: weight / total for tenant, weight in weights.items()}

    def _near(self, holders: Holders) -> list[Key]:
        gpus = holders.nearest.get(self._nic, ())
        return [Key(gpu, "pcie", self._direction) for gpu in gpus]


Load = GpuLoad | NicLoad | PcieLoad


def load_of(segment: SharedSegment, direction: str) -> Load:
    """What passes over a segment in one direction, `transmit` away from the GPUs."""
    if segment.kind == "hbm":
        return GpuLoad(segment.gpus, "hbm", "", segment.capacity)
    if segment.kind == "nvlink_domain":
        return GpuLoad(segment.gpus, "nvlink", direction, 1.0)
    if segment.kind == "nic":
        return NicLoad(segment.name, direction)
    return PcieLoad(segment.gpus, segment.nics, direction)


def _take_off(gpus: Sequence[list[float]], amounts: list[float], holes: set[int]) -> None:
    """Take the amounts of an adapter off the cells of its GPUs, in proportion.

    What a cell does not hold the other cells do, for loops differ in phase and some windows are
    longer than a cell.
    """
    excess = 0.0
    for place, amount in enumerate(amounts):
        there = sum(cells[place] for cells in gpus) if amount else 0.0
        kept = max(0.0, 1 - amount / there) if there else 1.0
        for cells in gpus if kept < 1 else ():
            cells[place] *= kept
        if amount > there and place not in holes:
            excess += amount - there
    inside = sum(sum(cells[MARGIN:-MARGIN]) for cells in gpus)
    kept = max(0.0, 1 - excess / inside) if inside else 1.0
    for cells in gpus if kept < 1 else ():
        cells[:] = [amount * kept for amount in cells]


def _times(cells: list[float], factor: float) -> list[float]:
    return cells if factor == 1.0 else [amount * factor for amount in cells]
