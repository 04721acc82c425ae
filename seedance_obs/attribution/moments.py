"""What is kept of all ticks of a board: weighted sums of products, in which old ticks fade."""

from collections.abc import Hashable, Mapping, Sequence
from math import exp, sqrt

WATTS, ONE, PARTS = 0, 1, 2
FIRST = 3
RESCALE_ABOVE = 1e6


class Moments:
    """Sums over ticks of the products of watts, 1, parts held, and each account's a and sqrt(a).

    At most `limit` accounts have columns of their own, given at their first activity; the others
    share a pair. An account that leaves is added to that pair: a sum of products is linear in its
    columns, so nothing that was observed is lost and memory does not grow.
    """

    def __init__(self, *, fade_seconds: float, limit: int) -> None:
        self._fade_seconds = fade_seconds
        self._limit = limit
        self._weight = 1.0  # of the latest tick: old ones fade as it grows
        self._ticks = 0.0
        self._sums = [[0.0] * (row + 1) for row in range(FIRST + 2)]  # symmetric: the lower half
        self.columns: dict[Hashable, int] = {}

    def add(
        self, activities: Mapping[Hashable, float], *, parts: float, watts: float, seconds: float
    ) -> None:
        """One tick, as long as `seconds`."""
        self._make_room(activities)
        row = self._row(activities, parts, watts)
        self._weight *= exp(seconds / self._fade_seconds)
        self._ticks += self._weight
        weight = self._weight * seconds
        for sums, value in zip(self._sums, row, strict=True):
            if value:
                scale = weight * value
                sums[:] = [old + scale * other for old, other in zip(sums, row, strict=False)]
        if self._weight > RESCALE_ABOVE:
            self._rescale()

    def forget(self, account: Hashable) -> None:
        """Move what was seen of an account into the pair of those without columns."""
        at = self.columns.pop(account, None)
        if at is None:
            return
        sizes = range(len(self._sums))
        whole = [[self._sum(i, j) for j in sizes] for i in sizes]
        for to in (0, 1):
            pooled, gone = whole[FIRST + to], whole[at + to]
            pooled[:] = [a + b for a, b in zip(pooled, gone, strict=True)]
        del whole[at : at + 2]
        for row in whole:
            row[FIRST] += row[at]
            row[FIRST + 1] += row[at + 1]
            del row[at : at + 2]
        self._sums = [row[: i + 1] for i, row in enumerate(whole)]
        for other, column in self.columns.items():
            if column > at:
                self.columns[other] = column - 2

    @property
    def seconds(self) -> float:
        """How many seconds of the latest weight all that was seen amounts to."""
        return self._sums[ONE][ONE] / self._weight

    @property
    def observations(self) -> float:
        """How many ticks of the latest weight; of ticks within one second no more than one."""
        return min(self._ticks / self._weight, self.seconds)

    def product(self, one: int, other: int) -> float:
        """The mean product of two columns; 0 before the first tick."""
        return self._sum(one, other) / self._sums[ONE][ONE] if self._sums[ONE][ONE] else 0.0

    def products(self, chosen: Sequence[int]) -> list[list[float]]:
        """The mean products of the chosen columns with each other: their Gram matrix."""
        scale = 1.0 / self._sums[ONE][ONE]
        return [[scale * self._sum(i, j) for j in chosen] for i in chosen]

    def _sum(self, one: int, other: int) -> float:
        return self._sums[one][other] if one >= other else self._sums[other][one]

    def _row(self, activities: Mapping[Hashable, float], parts: float, watts: float) -> list[float]:
        row = [0.0] * len(self._sums)
        row[:FIRST] = (watts, 1.0, parts)
        for account, activity in activities.items():
            if activity > 0:
                at = self._column(account, row)
                row[at] += activity
                row[at + 1] += sqrt(activity)
        return row

    def _column(self, account: Hashable, row: list[float]) -> int:
        at = self.columns.get(account)
        if at is not None:
            return at
        if len(self.columns) >= self._limit:
            return FIRST
        at = self.columns[account] = len(self._sums)
        self._sums += ([0.0] * (at + 1), [0.0] * (at + 2))
        row += (0.0, 0.0)
        return at

    def _make_room(self, present: Mapping[Hashable, float]) -> None:
        """Where columns are short, take those of accounts that are here no more."""
        if len(self.columns) >= self._limit and any(a not in self.columns for a in present):
            for account in [a for a in self.columns if a not in present]:
                self.forget(account)

    def _rescale(self) -> None:
        for sums in self._sums:
            sums[:] = [value / self._weight for value in sums]
        self._ticks /= self._weight
        self._weight = 1.0
