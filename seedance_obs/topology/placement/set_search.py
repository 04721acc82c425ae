"""The best and the worst set of a size among some GPUs.

Sets are compared by what a collective feels: the slowest pair first, then the mean, then the NUMA
nodes needed, then the lowest positions. Only sets with the fewest pairs of unknown bandwidth are
compared at all, so one with an unknown pair is neither called best nor worst while there is one
that is known throughout.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

from seedance_obs.topology.placement.pair_matrix import NO_LIMIT, PairMatrix, Rank

EXHAUSTIVE_SETS = 12_870  # all halves of 16 GPUs, the most that any size has there
STARTS = 16

Places = tuple[int, ...]
Worth = Callable[[Places], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Found:
    """The best and the worst set by position.

    `bottlenecks` counts the compared sets by their slowest pair; empty where not all were looked
    at (`exact` is then False).
    """

    best: Places
    worst: Places
    exact: bool
    bottlenecks: Mapping[int, int] = field(default_factory=dict)


def search(matrix: PairMatrix, places: Sequence[int], size: int) -> Found:
    """The best and the worst set of a size from 1 to the number of places.

    Every set is looked at where there are at most 12,870, so always for 16 GPUs. Beyond that sets
    are grown and mended (`grow`), and what comes out is only the best and worst of those met.
    """
    inside = sorted(places)
    if exhaustible(len(inside), size):
        return _Walk(matrix, inside, size).found()
    return Found(
        best=grow(inside, size, lambda members: best_first(matrix.rank(members))),
        worst=grow(inside, size, lambda members: worst_first(matrix.rank(members))),
        exact=False,
    )


def exhaustible(count: int, size: int) -> bool:
    """Whether all sets of a size among so many GPUs are looked at."""
    return comb(count, size) <= EXHAUSTIVE_SETS


def best_first(rank: Rank) -> Rank:
    """A rank so that the greatest is the best."""
    unknown, low, total, spread = rank
    return -unknown, low, total, -spread


def worst_first(rank: Rank) -> Rank:
    """A rank so that the greatest is the worst."""
    unknown, low, total, spread = rank
    return -unknown, -low, -total, spread


def widest(matrix: PairMatrix, places: Sequence[int], size: int) -> Places:
    """The set whose pairs carry the most together, after those with fewer unknown pairs.

    Exact where all sets are looked at, as `search` does.
    """

    def worth(members: Places) -> tuple[int]:
        return (sum(matrix.sums[one][other] for one, other in combinations(members, 2)),)

    find = every if exhaustible(len(places), size) else grow
    return find(places, size, worth)


def every(places: Sequence[int], size: int, worth: Worth) -> Places:
    """The set of greatest worth among all; the lowest positions among equals."""
    return max(combinations(sorted(places), size), key=worth)


def grow(places: Sequence[int], size: int, worth: Worth) -> Places:
    """A set of great worth: from up to 16 starts, add what helps most, then swap while it helps.

    Greedy growth with pairwise exchange. Deterministic, and no proof that nothing is better.
    """
    inside = sorted(places)
    starts = inside[:: -(-len(inside) // STARTS)]
    return max(
        (_mended(inside, _grown(inside, start, size, worth), worth) for start in starts),
        key=lambda members: (worth(members), [-place for place in members]),
    )


def _grown(inside: Sequence[int], start: int, size: int, worth: Worth) -> Places:
    members: Places = (start,)
    while len(members) < size:
        options = (tuple(sorted((*members, place))) for place in inside if place not in members)
        members = max(options, key=worth)
    return members


def _mended(inside: Sequence[int], members: Places, worth: Worth) -> Places:
    while True:
        swaps = (
            tuple(sorted({*members, new} - {old}))
            for old in members
            for new in inside
            if new not in members
        )
        better = max(swaps, key=worth, default=members)
        if worth(better) <= worth(members):
            return members
        members = better


class _Walk:
    """All sets of a size, each made from one with a GPU less.

    For every place that may still be added, the walk carries the slowest pair and the sum of the
    pairs that it would bring along, so that a last member costs two steps however large the set.
    """

    def __init__(self, matrix: PairMatrix, inside: Sequence[int], size: int) -> None:
        self.matrix = matrix
        self.inside = inside
        self.lows = [[matrix.lows[one][other] for other in inside] for one in inside]
        self.sums = [[matrix.sums[one][other] for other in inside] for one in inside]
        self.near = [matrix.near[place] for place in inside]
        self.size = size
        self.fewest: int | None = None
        self.best: tuple[Rank, Places] | None = None
        self.worst: tuple[Rank, Places] | None = None
        self.bottlenecks: Counter[int] = Counter()

    def found(self) -> Found:
        """Walk, and tell what was met."""
        count = len(self.inside)
        self._visit((), NO_LIMIT, 0, 0, [NO_LIMIT] * count, [0] * count)
        assert self.best is not None
        assert self.worst is not None
        return Found(self.best[1], self.worst[1], exact=True, bottlenecks=dict(self.bottlenecks))

    def _visit(
        self,
        members: Places,
        low: int,
        total: int,
        near: int,
        lows: list[int],
        sums: list[int],
    ) -> None:
        """Add every place behind the last member; `lows` and `sums` begin at the first of them."""
        first = len(self.inside) - len(lows)
        missing = self.size - len(members)
        for offset in range(len(lows) - missing + 1):
            place = first + offset
            now = lows[offset] if lows[offset] < low else low
            summed = total + sums[offset]
            close = near | self.near[place]
            if missing == 1:
                self._meet((*members, place), now, summed, close)
                continue
            own_lows, own_sums = self.lows[place], self.sums[place]
            self._visit(
                (*members, place),
                now,
                summed,
                close,
                [
                    one if one < other else other
                    for one, other in zip(lows[offset + 1 :], own_lows[place + 1 :], strict=True)
                ],
                [
                    one + other
                    for one, other in zip(sums[offset + 1 :], own_sums[place + 1 :], strict=True)
                ],
            )

    def _meet(self, members: Places, low: int, total: int, near: int) -> None:
        rank = self.matrix.as_rank(low, total, near)
        if self.fewest is None or rank[0] < self.fewest:
            self.fewest = rank[0]
            self.best = self.worst = None
            self.bottlenecks.clear()
        elif rank[0] > self.fewest:
            return
        self.bottlenecks[low] += 1
        if self.best is None or best_first(rank) > best_first(self.best[0]):
            self.best = rank, self._named(members)
        if self.worst is None or worst_first(rank) > worst_first(self.worst[0]):
            self.worst = rank, self._named(members)

    def _named(self, members: Places) -> Places:
        return tuple(self.inside[member] for member in members)
