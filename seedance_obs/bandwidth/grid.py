"""Channels on a common grid of time.

The loops that read channels have phases and lengths of their own, so their windows are laid over
cells that all channels share: what passed in a window counts as spread evenly over it.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from seedance_obs.flow import Window

COVERED_RATIO = 0.9  # of a cell; what was observed of it stands for the rest
WHOLE_RATIO = 1 - 1e-6
SILENT_SECONDS = 5.0  # of a loop of our own: from then on nothing is expected of it


class Key(NamedTuple):
    """What a track is of: a channel, and of a network adapter the protocol."""

    device: str
    medium: str
    direction: str = ""
    via: str = ""  # `rdma` or `ethernet`


class Track:
    """One channel's amounts by cell.

    Attributes:
        end: Until when it is observed; what is told again of the time before is dropped.
        length: The seconds of its last window.
    """

    __slots__ = (
        *("_amounts", "_cell", "_covered", "_first", "_silences"),
        *("end", "length"),
    )

    def __init__(self, cell_seconds: float, *, first: int) -> None:
        self.end = -inf
        self.length = 0.0
        self._cell = cell_seconds
        self._first = first  # the number of the first cell held
        self._amounts: list[float] = []
        self._covered: list[float] = []  # seconds observed
        self._silences: list[tuple[float, float]] = []  # as far back as cells are held

    def was_silent(self, start: float, end: float) -> bool:
        """Whether it told nothing of a stretch of time, nor of the seconds around it."""
        return self.end <= start or any(
            since <= start and end <= until for since, until in self._silences
        )

    def add(self, windows: Sequence[Window]) -> None:
        """Lay windows over the cells, in order; what lies before the first cell held is lost."""
        for start, end, amount in windows:
            if start < self.end:
                if end <= self.end:
                    continue
                amount *= (end - self.end) / (end - start)
                start = self.end
            elif start - self.end > SILENT_SECONDS:
                self._silences.append((self.end, start))
            self._lay(start, end, amount)
            self.end = end
        if windows:
            self.length = windows[-1].seconds

    def cells(self, first: int, count: int, holes: set[int] | None = None) -> list[float]:
        """The amounts in some cells; the places of those that were not observed go into `holes`."""
        since = first - self._first
        covered = self._covered[since : since + count] if since >= 0 else []
        if len(covered) == count and min(covered) >= WHOLE_RATIO * self._cell:
            return self._amounts[since : since + count]
        return [self._cell_at(since + place, place, holes) for place in range(count)]

    def forget_before(self, first: int) -> None:
        """Let go of the cells before one."""
        gone = first - self._first
        if gone > 0:
            del self._amounts[:gone]
            del self._covered[:gone]
            self._first = first
        while self._silences and self._silences[0][1] <= first * self._cell:
            del self._silences[0]

    def _lay(self, start: float, end: float, amount: float) -> None:
        """Spread an amount over the time that was observed.

        A window about as long as a cell, which reaches into two, is what nearly all are.
        """
        cell, held = self._cell, self._first
        first, last = int(start / cell) - held, int(end / cell) - held
        if last >= len(self._amounts):
            more = [0.0] * (last + 1 - len(self._amounts))
            self._amounts += more
            self._covered += more
        if last == first + 1 and first >= 0:
            border = (last + held) * cell
            level = amount / (end - start)
            self._amounts[first] += (border - start) * level
            self._amounts[last] += (end - border) * level
            self._covered[first] += border - start
            self._covered[last] += end - border
        else:
            self._spread(self._amounts, start, end, amount)
            self._spread(self._covered, start, end, end - start)

    def _spread(self, cells: list[float], start: float, end: float, value: float) -> None:
        cell, held = self._cell, self._first
        first, last = int(start / cell) - held, int(end / cell) - held
        level = value / (end - start)
        for place in range(max(first, 0), last + 1):
            since = max(start, (place + held) * cell)
            cells[place] += (min(end, (place + 1 + held) * cell) - since) * level

    def _cell_at(self, index: int, place: int, holes: set[int] | None) -> float:
        covered = self._covered[index] if 0 <= index < len(self._covered) else 0.0
        amount = self._amounts[index] if 0 <= index < len(self._amounts) else 0.0
        if covered >= COVERED_RATIO * self._cell:
            return amount * self._cell / covered if covered < self._cell else amount
        if holes is not None:
            holes.add(place)
        return amount


class Block:
    """Some cells in a row of all tracks; `holes` are the places of those that do not count."""

    __slots__ = ("_first", "_start", "_tracks", "count", "holes", "seconds")

    def __init__(
        self, tracks: Mapping[Key, Track], *, first: int, count: int, cell_seconds: float
    ) -> None:
        self.count = count
        self.seconds = count * cell_seconds
        self.holes: set[int] = set()
        self._tracks = tracks
        self._first = first
        self._start = first * cell_seconds

    def needed(self, key: Key) -> list[float]:
        """What passed over a channel without which a cell does not count."""
        track = self._tracks.get(key)
        if track is None:
            self.holes.update(range(self.count))
            return [0.0] * self.count
        return track.cells(self._first, self.count, self.holes)

    def told(self, key: Key) -> list[float] | None:
        """The same of a channel that need not be there: None where it was silent then."""
        track = self._tracks.get(key)
        if track is None or track.was_silent(self._start, self._start + self.seconds):
            return None
        return track.cells(self._first, self.count, self.holes)

    def around(self, key: Key, margin: int, holes: set[int]) -> list[float]:
        """The same with some more cells before and after; what was not observed, into `holes`."""
        count = self.count + 2 * margin
        track = self._tracks.get(key)
        if track is None:
            holes.update(range(count))
            return [0.0] * count
        return track.cells(self._first - margin, count, holes)

    def amount(self, key: Key) -> float:
        """What is known to have passed over a channel in the whole block."""
        track = self._tracks.get(key)
        return 0.0 if track is None else sum(track.cells(self._first, self.count))
