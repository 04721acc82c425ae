"""How well a set of GPUs sits: against the best and the worst set of its size on the same host."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from weakref import ReferenceType, ref

from seedance_obs.errors import UsageError
from seedance_obs.topology.bandwidth import LinkRate, port_rate
from seedance_obs.topology.model import UNKNOWN, Absent, Topology
from seedance_obs.topology.placement.pair_matrix import PairMatrix, Placement, host_facts
from seedance_obs.topology.placement.set_search import (
    Found,
    best_first,
    search,
    widest,
    worst_first,
)

HOSTS_KEPT = 64
SEARCHES_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Extremes:
    """The best and the worst set of one size among `among`.

    `exact` says that every set was looked at; otherwise the two are the best and worst of those
    that a greedy search met.
    """

    size: int
    among: tuple[str, ...]
    best: Placement
    worst: Placement
    exact: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """A set between the best and the worst of its size, by bottleneck.

    `regret` is the share of the best set's bottleneck that this one lacks, 0 to 1; `percentile`
    the share of the sets of that size whose bottleneck is no better, so 1 for a best one. Both are
    UNKNOWN where a bandwidth is, the percentile also where not all sets were looked at, and both
    are UNSUPPORTED for a single GPU.
    """

    actual: Placement
    extremes: Extremes
    regret: float | Absent
    percentile: float | Absent


class Placements:
    """Answers about sets of GPUs; prepares each host once and keeps what it has searched.

    One of these serves all threads of a process. Hosts that are wired alike share their answers:
    the key is all that placement reads of a topology. A topology that was seen before is
    recognised by its identity, without reading it again.

    Args:
        link_rate: what one NVLink of a GPU carries one way, in bytes per second.
    """

    def __init__(self, *, link_rate: LinkRate = port_rate) -> None:
        self._link_rate = link_rate
        self._seen: dict[int, tuple[ReferenceType[Topology], PairMatrix]] = {}
        self._matrix = lru_cache(maxsize=HOSTS_KEPT)(PairMatrix)
        self._search = lru_cache(maxsize=SEARCHES_KEPT)(_answer)
        self._widest = lru_cache(maxsize=SEARCHES_KEPT)(widest)

    def gpus(self, topology: Topology) -> tuple[str, ...]:
        """The GPUs that can be placed on, in the order that answers are given in."""
        return self.matrix(topology).facts.gpus

    def placement(self, topology: Topology, gpus: Iterable[str]) -> Placement:
        """A set of GPUs by name, whatever their order."""
        matrix = self.matrix(topology)
        return matrix.placement(_places(matrix, gpus, "a set"))

    def extremes(
        self, topology: Topology, size: int, *, among: Iterable[str] | None = None
    ) -> Extremes:
        """The best and the worst set of a size among some GPUs, by default all.

        Raises:
            UsageError: the size is not from 1 to the number of GPUs, or a GPU is not known.
        """
        matrix = self.matrix(topology)
        places = range(matrix.count) if among is None else _places(matrix, among, "the free GPUs")
        if not 1 <= size <= len(places):
            raise UsageError(
                f"a set of {size} GPUs was asked for, and there are {len(places)} to choose from"
            )
        return self._search(matrix, tuple(places), size)[0]

    def standing(
        self, topology: Topology, gpus: Iterable[str], *, among: Iterable[str] | None = None
    ) -> Standing:
        """Where a set stands among those of its size, made of `among` or of the set itself.

        `among` are the GPUs that were free when the set was chosen, by default all; the set's
        own count as free whether or not they are named.
        """
        matrix = self.matrix(topology)
        places = _places(matrix, gpus, "the actual set")
        pool = range(matrix.count) if among is None else _places(matrix, among, "the free GPUs")
        pool = tuple(sorted({*pool, *places}))
        extremes, found = self._search(matrix, pool, len(places))
        actual = matrix.placement(places)
        rank = matrix.rank(places)  # a greedy search may have met nothing as good, or as bad
        if best_first(rank) > best_first(matrix.rank(found.best)):
            extremes = replace(extremes, best=actual)
        if worst_first(rank) > worst_first(matrix.rank(found.worst)):
            extremes = replace(extremes, worst=actual)
        return Standing(
            actual, extremes, _regret(actual, extremes.best), _percentile(actual, found)
        )

    def widest(self, topology: Topology, gpus: Iterable[str], *, among: Iterable[str]) -> Placement:
        """The set of as many GPUs, among some, whose mean pair is the fastest.

        It may be another one than the best of `extremes`, which goes by the slowest pair. Never
        worse than the given set, also where not all sets were looked at.
        """
        matrix = self.matrix(topology)
        places = _places(matrix, gpus, "a set")
        pool = _places(matrix, {*gpus, *among}, "the GPUs to choose from")
        actual = matrix.placement(places)
        best = matrix.placement(self._widest(matrix, pool, len(places)))
        return max(actual, best, key=_mean)

    def matrix(self, topology: Topology) -> PairMatrix:
        """The pairs of a topology, prepared once."""
        seen = self._seen.get(id(topology))
        if seen is not None and seen[0]() is topology:
            return seen[1]
        matrix = self._matrix(host_facts(topology, self._link_rate))
        key = id(topology)
        self._seen[key] = (ref(topology, lambda gone: self._forget(key, gone)), matrix)
        return matrix

    def _forget(self, key: int, gone: ReferenceType[Topology]) -> None:
        """Drop a topology that is no more, unless another one has its place by now."""
        seen = self._seen.get(key)
        if seen is not None and seen[0] is gone:
            self._seen.pop(key, None)


def _answer(matrix: PairMatrix, places: tuple[int, ...], size: int) -> tuple[Extremes, Found]:
    found = search(matrix, places, size)
    among = tuple(matrix.facts.gpus[place] for place in places)
    best, worst = matrix.placement(found.best), matrix.placement(found.worst)
    return Extremes(size, among, best, worst, found.exact), found


def _places(matrix: PairMatrix, gpus: Iterable[str], what: str) -> tuple[int, ...]:
    wanted = set(gpus)
    lost = sorted(wanted - matrix.position.keys())
    if lost:
        raise UsageError(
            f"{what} names {', '.join(lost)}; the GPUs are {', '.join(matrix.facts.gpus)}"
        )
    if not wanted:
        raise UsageError(f"{what} must name at least one GPU")
    return tuple(sorted(matrix.position[name] for name in wanted))


def _mean(placement: Placement) -> float:
    return -1.0 if isinstance(placement.mean, Absent) else placement.mean


def _regret(actual: Placement, best: Placement) -> float | Absent:
    if isinstance(actual.bottleneck, Absent):
        return actual.bottleneck
    if isinstance(best.bottleneck, Absent):
        return best.bottleneck
    return 1 - actual.bottleneck / best.bottleneck


def _percentile(actual: Placement, found: Found) -> float | Absent:
    if isinstance(actual.bottleneck, Absent):
        return actual.bottleneck
    if not found.exact:
        return UNKNOWN
    low = round(actual.bottleneck)
    no_better = sum(count for other, count in found.bottlenecks.items() if other <= low)
    return no_better / sum(found.bottlenecks.values())
