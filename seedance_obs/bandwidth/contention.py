"""How busy a shared segment is, for whom, and when tenants are in each other's way."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from math import sqrt
from operator import mul
from typing import NamedTuple

from seedance_obs.bandwidth.loads import NOBODY, Part
from seedance_obs.bandwidth.reading import THRESHOLDS, SegmentName, SegmentReading, TenantReading

CONTENDED_RATIO = 0.8  # of capacity is where tenants begin to wait for each other
TENANT_RATIO = 0.1  # of capacity is where a tenant takes part in that
KEPT_SECONDS = 300.0
TENANTS_KEPT = 100
_ROUNDED = 1 - 1e-9  # of a threshold reaches it: amounts are sums


class Sums(NamedTuple):
    """Some cells in short: how many, their sum, squares about their mean, and the largest."""

    cells: int
    total: float
    squares: float
    peak: float


class Moved(NamedTuple):
    """What was observed in a block of cells.

    A tenant that is not among `tenants` moved nothing.
    """

    number: int
    load: Sums
    tenants: Mapping[str, Sums]


class SegmentMeter:
    """One segment in one direction: totals, the last window, and its tenants.

    Cells are given in blocks, numbered in the order of time; a number that is left out was not
    observed. Totals are those of observed cells.
    """

    def __init__(
        self, segment: SegmentName, capacity: float, *, cell_seconds: float, window_blocks: int
    ) -> None:
        self.segment = segment
        self.capacity = capacity
        self._cell = cell_seconds
        self._window_blocks = window_blocks
        self._window: deque[Moved] = deque()
        self._total = 0.0
        self._cells = 0
        self._busy = [0] * len(THRESHOLDS)  # cells
        self._contended = 0
        self._contended_by: dict[str, int] = {}
        self._seen: dict[str, int] = {}  # the last block of each tenant, the longest gone first

    def close(
        self, number: int, parts: Sequence[Part], holes: Set[int], *, kept_blocks: int
    ) -> Moved | None:
        """Take in a block; None where no cell of it counts.

        A tenant of which nothing was heard for `kept_blocks` is forgotten.
        """
        while self._window and self._window[0].number <= number - self._window_blocks:
            self._window.popleft()
        self._forget(number - kept_blocks)
        parts = _without(holes, parts) if holes else parts
        load = [sum(cells) for cells in zip(*(part.cells for part in parts), strict=True)]
        if not load:
            return None
        owned = _by_owner(parts)
        moved = Moved(number, _sums(load), {name: _sums(cells) for name, cells in owned.items()})
        self._window.append(moved)
        for tenant in owned:
            self._seen.pop(tenant, None)
            self._seen[tenant] = number
        self._cells += len(load)
        self._total += moved.load.total
        self._judge(load, moved.load.peak)
        if moved.load.peak >= CONTENDED_RATIO * self._full:
            self._judge_contention(parts, load, owned)
        return moved

    def expect(self, tenants: Iterable[str], number: int) -> None:
        """Tell of these too, from now on and from 0: they sit where they may use the segment."""
        for tenant in tenants:
            self._seen.pop(tenant, None)
            self._seen[tenant] = number

    def reading(self) -> SegmentReading | None:
        """The segment so far; None where it was never observed."""
        if not self._cells:
            return None
        lately = _joined([moved.load for moved in self._window])
        return SegmentReading(
            segment=self.segment,
            capacity=self.capacity,
            total=self._total,
            mean=self._level(lately.total / lately.cells) if lately.cells else None,
            peak=self._level(lately.peak) if lately.cells else None,
            busy_seconds={
                threshold: cells * self._cell
                for threshold, cells in zip(THRESHOLDS, self._busy, strict=True)
            },
            contention_seconds=self._contended * self._cell,
            observed_seconds=self._cells * self._cell,
        )

    def tenants(self) -> list[TenantReading]:
        """Its tenants by name, also those that are gone for some minutes; none unless observed.

        What nobody holds is among them where there is any.
        """
        load = _joined([moved.load for moved in self._window])
        if not load.cells:
            return []
        found = (self._tenant(name, load.total) for name in sorted(self._seen))
        return [each for each in found if each.tenant not in NOBODY or each.mean > 0]

    def _tenant(self, name: str, passed: float) -> TenantReading:
        lately = _joined(
            [
                moved.tenants.get(name) or Sums(moved.load.cells, 0.0, 0.0, 0.0)
                for moved in self._window
            ]
        )
        return TenantReading(
            segment=self.segment,
            tenant=name,
            mean=self._level(lately.total / lately.cells),
            jitter=self._level(sqrt(lately.squares / lately.cells)),
            share=lately.total / passed if passed else 0.0,
            peak=self._level(lately.peak),
            contention_seconds=self._contended_by.get(name, 0) * self._cell,
        )

    def _level(self, amount: float) -> float:
        return amount / self._cell

    @property
    def _full(self) -> float:
        return self.capacity * self._cell * _ROUNDED

    def _judge(self, load: list[float], peak: float) -> None:
        full = self._full
        for place, threshold in enumerate(THRESHOLDS):
            if peak < threshold * full:
                break  # they rise
            self._busy[place] += sum(amount >= threshold * full for amount in load)

    def _judge_contention(
        self, parts: Sequence[Part], load: list[float], owned: Mapping[str, list[float]]
    ) -> None:
        """By what crosses the segment, where that is less than its load."""
        full = self._full
        if any(part.crossing is not None for part in parts):
            parts = [Part(part.crossing or part.cells, part.owners) for part in parts]
            load = [sum(cells) for cells in zip(*(part.cells for part in parts), strict=True)]
            owned = _by_owner(parts)
        tenants = {name: cells for name, cells in owned.items() if name not in NOBODY}
        for place, amount in enumerate(load):
            if amount >= CONTENDED_RATIO * full:
                self._note(
                    [n for n, cells in tenants.items() if cells[place] > TENANT_RATIO * full]
                )

    def _note(self, large: Sequence[str]) -> None:
        if len(large) < 2:
            return
        self._contended += 1
        for tenant in large:
            self._contended_by[tenant] = self._contended_by.get(tenant, 0) + 1

    def _forget(self, before: int) -> None:
        while self._seen:
            tenant, number = next(iter(self._seen.items()))
            if number >= before and len(self._seen) <= TENANTS_KEPT:
                break
            del self._seen[tenant]
            self._contended_by.pop(tenant, None)


def _without(holes: Set[int], parts: Iterable[Part]) -> list[Part]:
    return [
        Part(
            _outside(holes, part.cells),
            part.owners,
            None if part.crossing is None else _outside(holes, part.crossing),
        )
        for part in parts
    ]


def _outside(holes: Set[int], cells: Iterable[float]) -> list[float]:
    return [amount for place, amount in enumerate(cells) if place not in holes]


def _by_owner(parts: Iterable[Part]) -> dict[str, list[float]]:
    owned: dict[str, list[float]] = {}
    for cells, owners, _ in parts:
        for owner, share in owners.items():
            before = owned.get(owner)
            if before is None:
                owned[owner] = cells if share == 1.0 else [share * amount for amount in cells]
            elif share:
                owned[owner] = [x + share * y for x, y in zip(before, cells, strict=True)]
    return owned


def _sums(cells: list[float]) -> Sums:
    total = sum(cells)
    count = len(cells)
    if not total:
        return Sums(count, 0.0, 0.0, 0.0)
    mean = total / count
    off = [amount - mean for amount in cells]
    return Sums(count, total, sum(map(mul, off, off)), max(cells))


def _joined(parts: Sequence[Sums]) -> Sums:
    """Several in one; the squares about the common mean."""
    if not parts:
        return Sums(0, 0.0, 0.0, 0.0)
    counts, totals, squares, peaks = zip(*parts, strict=True)
    cells, total = sum(counts), sum(totals)
    mean = total / cells
    between = sum(n * (part / n - mean) ** 2 for n, part in zip(counts, totals, strict=True))
    return Sums(cells, total, sum(squares) + between, max(peaks))
