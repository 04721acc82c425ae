"""The GPUs of a host pair by pair, prepared so that sets of them can be compared fast.

GPUs stand in the order of their index, then of their name, whatever the topology's order was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import fsum

from seedance_obs.topology.bandwidth import Basis, LinkRate, PathModel, port_rate
from seedance_obs.topology.distance import worst_class
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Absent, Device, Topology
from seedance_obs.topology.naming import in_order

# In sums, what a pair of unknown bandwidth takes off; more than any sum of known ones.
UNKNOWN_PAIR = 1 << 60
NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class Pair:
    """Two GPUs by name, and what runs between them one way."""

    one: str
    other: str
    bytes_per_second: float | Absent
    basis: Basis | Absent
    link_class: str | Absent


@dataclass(frozen=True, slots=True)
class Placement:
    """A set of GPUs and what a collective on it feels.

    `bottleneck` and `mean` are the slowest and the mean pair, one way in bytes per second: UNKNOWN
    when that of any pair is, UNSUPPORTED for a single GPU, which has no pairs. The same holds for
    `worst_class`. `numa_spread` is the number of NUMA nodes that the set needs, so that every GPU
    has a near one; UNKNOWN when one GPU's nodes are.
    """

    gpus: tuple[str, ...]
    bottleneck: float | Absent
    mean: float | Absent
    worst_class: str | Absent
    numa_spread: int | Absent
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """All that placement reads of a topology; hosts that are wired alike have equal facts."""

    gpus: tuple[str, ...]
    numa: tuple[frozenset[int] | Absent, ...]
    pairs: tuple[Pair, ...]  # of GPUs i < j, in order


# Unknown pairs (fewer is better), slowest known pair, sum of the known pairs, NUMA spread.
Rank = tuple[int, int, int, int]


def host_facts(topology: Topology, link_rate: LinkRate = port_rate) -> HostFacts:
    """The facts of the GPUs that are there, in order."""
    gpus = in_order(gpu for gpu in topology.gpus if gpu.present)
    model = PathModel(topology, link_rate)

    def pair(one: Device, other: Device) -> Pair:
        path = topology.path(one.name, other.name)
        found = model.bandwidth(path)
        link_class = path.link_class or UNKNOWN
        if isinstance(found, Absent):
            return Pair(one.name, other.name, found, found, link_class)
        return Pair(one.name, other.name, found.bytes_per_second, found.basis, link_class)

    return HostFacts(
        tuple(gpu.name for gpu in gpus),
        tuple(gpu.numa or UNKNOWN for gpu in gpus),
        tuple(pair(one, other) for one, other in combinations(gpus, 2)),
    )


class PairMatrix:
    """Pair bandwidths as whole bytes per second, by position.

    `lows` holds `NO_LIMIT` and `sums` minus `UNKNOWN_PAIR` where a bandwidth is unknown. Integers
    add up to the same in any order, so a set's rank does not depend on the order of its GPUs.
    """

    def __init__(self, facts: HostFacts) -> None:
        self.facts = facts
        self.count = len(facts.gpus)
        self.position = {name: place for place, name in enumerate(facts.gpus)}
        self.lows = [[NO_LIMIT] * self.count for _ in facts.gpus]
        self.sums = [[0] * self.count for _ in facts.gpus]
        self._pairs: dict[tuple[int, int], Pair] = {}
        for (one, other), pair in zip(combinations(range(self.count), 2), facts.pairs, strict=True):
            self._pairs[one, other] = pair
            if isinstance(pair.bytes_per_second, Absent):
                self.sums[one][other] = self.sums[other][one] = -UNKNOWN_PAIR
            else:
                value = round(pair.bytes_per_second)
                self.lows[one][other] = self.lows[other][one] = value
                self.sums[one][other] = self.sums[other][one] = value
        kinds = sorted({numa for numa in facts.numa if not isinstance(numa, Absent)}, key=sorted)
        self._kinds = kinds
        # Bit 0 is a GPU whose NUMA nodes are unknown, every other bit a distinct set of nodes.
        self.near = [
            1 if isinstance(numa, Absent) else 2 << kinds.index(numa) for numa in facts.numa
        ]
        self.spread = lru_cache(maxsize=4096)(self._spread)

    def rank(self, places: Sequence[int]) -> Rank:
        """What sets of one size are compared by."""
        low, total, near = NO_LIMIT, 0, 0
        for one in places:
            near |= self.near[one]
        for one, other in combinations(places, 2):
            low = min(low, self.lows[one][other])
            total += self.sums[one][other]
        return self.as_rank(low, total, near)

    def as_rank(self, low: int, total: int, near: int) -> Rank:
        """A rank from a running minimum, a running sum and the NUMA bits of a set."""
        return -(total // UNKNOWN_PAIR), low, total % UNKNOWN_PAIR, self.spread(near)

    def placement(self, places: Iterable[int]) -> Placement:
        """The set at some positions, in the host's order."""
        inside = sorted(places)
        pairs = tuple(self._pairs[both] for both in combinations(inside, 2))
        rates = [
            pair.bytes_per_second for pair in pairs if not isinstance(pair.bytes_per_second, Absent)
        ]
        lost: Absent | None = UNSUPPORTED if not pairs else UNKNOWN
        if len(rates) == len(pairs) and pairs:
            lost = None
        near = 0
        for place in inside:
            near |= self.near[place]
        return Placement(
            gpus=tuple(self.facts.gpus[place] for place in inside),
            bottleneck=lost or min(rates),
            mean=lost or fsum(rates) / len(rates),
            worst_class=worst_class(pair.link_class for pair in pairs),
            numa_spread=UNKNOWN if near & 1 else self.spread(near),
            pairs=pairs,
        )

    def _spread(self, near: int) -> int:
        """How many nodes a set needs; an unknown one counts as more than any known."""
        if near & 1:
            return self.count + 1
        return fewest_nodes([kind for bit, kind in enumerate(self._kinds) if near >> bit & 2])


def fewest_nodes(near: Sequence[frozenset[int]]) -> int:
    """The least number of nodes so that each of the sets holds one of them."""
    if not near:
        return 0
    first, *others = sorted(near, key=len)
    return 1 + min(fewest_nodes([nodes for nodes in others if node not in nodes]) for node in first)
