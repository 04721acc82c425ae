"""One of the sources of a channel: what it has not told yet, and whether it stands still."""

from collections.abc import Mapping, Sequence
from math import inf

from seedance_obs.flow import Window

STRETCH_SECONDS = 3.0
# One stretch may be contradicted by a burst at its edge, since sources lag by what they buffer.
CONTRADICTIONS = 2
SILENT_WINDOWS = 3


class Candidate:
    """A source of a channel.

    Attributes:
        stuck: It stands at exactly 0 while another source moves; until it moves.
    """

    def __init__(self) -> None:
        self.stuck = False
        self._moved = 0.0
        self._seen = 0.0
        self._end = -inf
        self._length = 0.0
        self._waiting: list[Window] = []
        self._stood = 0.0  # seconds at 0 since the marks were set
        self._contradicted = 0
        self._marks: dict[str, tuple[float, float]] = {}

    def take(self, windows: Sequence[Window]) -> None:
        """Keep what it says until it is told or dropped."""
        if not windows:
            return
        amount = sum(window.amount for window in windows)
        seconds = sum(window.seconds for window in windows)
        self._moved += amount
        self._seen += seconds
        self._end, self._length = windows[-1].end, windows[-1].seconds
        if amount:
            self.stuck = False
            self._stood, self._contradicted, self._marks = 0.0, 0, {}
        else:
            self._stood += seconds
        self._waiting += windows

    def compare(self, others: Mapping[str, "Candidate"], *, moving: float) -> None:
        """See whether the others move while this one stands; to be called after all have taken.

        Args:
            others: the other sources of the channel.
            moving: the level above which a source moves.
        """
        if self._marks and self._stood >= STRETCH_SECONDS:
            moves = any(
                one._moved - moved > moving * (one._seen - seen)
                for name, one in others.items()
                for moved, seen in (self._marks.get(name, (one._moved, one._seen)),)
            )
            self._contradicted = self._contradicted + 1 if moves else 0
            self.stuck = self.stuck or self._contradicted >= CONTRADICTIONS
            self._marks = {}
        if not self._marks:
            self._marks = {name: (one._moved, one._seen) for name, one in others.items()}
            self._stood = 0.0

    def speaks(self, now: float, *, silent: float) -> bool:
        """Whether it is to be believed: it does not stand, and was heard lately."""
        return not self.stuck and now - self._end <= max(silent, SILENT_WINDOWS * self._length)

    def untold(self, told_until: float) -> tuple[Window, ...]:
        """Its windows after a moment; one that began before is cut, and its amount with it."""
        return tuple(
            window if window.start >= told_until else _cut(window, told_until)
            for window in self._waiting
            if window.end > told_until
        )

    def drop(self, told_until: float) -> None:
        """Forget what has been told, by whomever; nothing waits of one that stands."""
        kept = () if self.stuck else self._waiting
        self._waiting = [window for window in kept if window.end > told_until]


def _cut(window: Window, start: float) -> Window:
    """The part of a window after a moment inside it, of whole bytes where it was of whole bytes."""
    amount = window.amount * (window.end - start) / window.seconds
    return Window(start, window.end, int(amount) if isinstance(window.amount, int) else amount)
