"""One of the sources of a channel: what it has not told yet, and whether it stands still."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose

from seedance_obs.flow import Window

STRETCH_SECONDS = 3.0
# One stretch may be contradicted by a burst at its edge, since sources lag by what they buffer.
CONTRADICTIONS = 2
SILENT_WINDOWS = 3
EXPECTED_WINDOWS = 1.5
# A page is read at other times than it is made anew. As long as a value of it stays the same, it
# may be an old one; but pages are not made more rarely than this.
PAGES = frozenset({"dcgm"})
OLDEST_SECONDS = 60.0
ALMOST = 0.9  # of a stretch, for windows are not all of one length
AHEAD_SECONDS = 1.0  # of another, and yet it is told of the same time


@dataclass(slots=True)
class _Mark:
    """How far another source was when a stretch began, and for how long it has moved until then."""

    end: float
    moved: float
    seen: float
    against: float = 0.0


class Candidate:
    """A source of a channel.

    Attributes:
        stuck: It stands at exactly 0 while another source moves; until it moves.
        end: Until when it has told, in monotonic seconds.
    """

    def __init__(self, name: str = "") -> None:
        self.stuck = False
        self.end = -inf
        self._paged = name in PAGES
        self._moved = 0.0
        self._seen = 0.0
        self._length = 0.0
        self._level = -1.0
        self._same = self._same_before = 0.0  # seconds in which it showed the same
        self._waiting: list[Window] = []
        self._standing_since: float | None = None  # at 0, as it tells
        self._marks: dict[str, _Mark] = {}

    def take(self, windows: Sequence[Window]) -> None:
        """Keep what it says until it is told or dropped."""
        if not windows:
            return
        amount = sum(window.amount for window in windows)
        self._moved += amount
        self._seen += sum(window.seconds for window in windows)
        self.end, self._length = windows[-1].end, windows[-1].seconds
        if amount:
            self.stuck = False
            self._standing_since = None
            self._marks = {}
        elif self._standing_since is None:
            self._standing_since = windows[0].start
        if self._paged:
            self._compare_pages(windows)
        self._waiting += windows

    @property
    def lag(self) -> float:
        """By how much what it says may lie in the past, in seconds."""
        unchanged = max(self._same, self._same_before)
        return max(self._length, min(unchanged, OLDEST_SECONDS))

    def compare(self, others: Mapping[str, "Candidate"], *, moving: float) -> None:
        """See whether the others move while this one stands; to be called after all have taken.

        Args:
            others: the other sources of the channel.
            moving: the level above which a source moves.
        """
        if self._standing_since is None:
            return
        for name, other in others.items():
            against = self._seconds_against(name, other, self._standing_since, moving)
            stretch = self._stretch(other)
            old = OLDEST_SECONDS if self._paged else self._length
            enough = max(CONTRADICTIONS * stretch, old + stretch)
            self.stuck = self.stuck or against >= ALMOST * enough

    def speaks(self, now: float, *, silent: float) -> bool:
        """Whether it is to be believed: it does not stand, and was heard lately."""
        return not self.stuck and now - self.end <= max(silent, SILENT_WINDOWS * self._length)

    def is_due(self, now: float) -> bool:
        """Whether it will tell of the present before long, as far as its last window shows."""
        return not self.stuck and now - self.end <= EXPECTED_WINDOWS * self._length

    @property
    def begins(self) -> float:
        """When the first of its windows that wait begins; never if none does."""
        return self._waiting[0].start if self._waiting else inf

    def untold(self, told_until: float, until: float = inf) -> tuple[Window, ...]:
        """Its windows between two moments; at the edges they are cut, and their amounts with them.

        Of what begins before the first moment, the part after it is told.
        """
        return tuple(
            window
            if window.start >= told_until and window.end <= until
            else _cut(window, max(window.start, told_until), min(window.end, until))
            for window in self._waiting
            if window.end > told_until and window.start < until
        )

    def drop(self, told_until: float) -> None:
        """Forget what has been told, by whomever; nothing waits of one that stands."""
        kept = () if self.stuck else self._waiting
        self._waiting = [window for window in kept if window.end > told_until]

    def _stretch(self, other: "Candidate") -> float:
        """How long another must move, at least, for that to say something."""
        return max(STRETCH_SECONDS, other.lag, self._length)

    def _seconds_against(self, name: str, other: "Candidate", since: float, moving: float) -> float:
        """For how long another has moved by now, stretch by stretch, while this one stood."""
        mark = self._marks.get(name)
        if mark is None or mark.end < since + ALMOST * other.lag:
            # What it said until then it may have seen before this one stood.
            self._marks[name] = _Mark(other.end, other._moved, other._seen)
            return 0.0
        told, stretch = other.end - mark.end, self._stretch(other)
        if told >= ALMOST * stretch and other.end - self.end <= AHEAD_SECONDS:
            moves = other._moved - mark.moved > moving * (other._seen - mark.seen)
            against = mark.against + min(told, stretch) if moves else 0.0
            self._marks[name] = mark = _Mark(other.end, other._moved, other._seen, against)
        return mark.against

    def _compare_pages(self, windows: Sequence[Window]) -> None:
        for window in windows:
            if not isclose(window.level, self._level):
                self._same_before, self._same, self._level = self._same, 0.0, window.level
            self._same += window.seconds


def _cut(window: Window, start: float, end: float) -> Window:
    """A part of a window, of whole bytes where it was of whole bytes."""
    amount = window.amount * (end - start) / window.seconds
    return Window(start, end, int(amount) if isinstance(window.amount, int) else amount)
