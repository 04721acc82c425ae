"""Counters that stand and then step, because a driver writes them less often than they are read.

Read every 100 ms, a counter that is written every 500 ms shows four windows of nothing and one of
five times what passed. Nothing in one window tells that from a burst, but a level above capacity
does: it cannot be, so what passed in it passed in the standing windows before it, too.
"""

from collections import deque
from collections.abc import Iterable
from math import inf

from seedance_obs.flow import Window

HELD_SECONDS = 1.25  # network drivers that write once a second are the slowest in use
IMPOSSIBLE = 1.05  # of capacity: what headers and two clocks explain at most
TOUCHING_SECONDS = 0.001


class Steps:
    """Joins the steps of one counter with the time in which it stood.

    Windows of nothing are held back for up to `HELD_SECONDS`, since a step may follow. A step that
    is impossible counts for as much of the time before it as it needs to be possible, and proves
    that the counter stands between steps. From then on, until it moves twice in a row and can have,
    each step counts for the shortest time that was seen between two.

    Steps that are possible prove nothing, however many come: what bursts in time with the loop
    looks alike.
    """

    def __init__(self) -> None:
        self._held: deque[Window] = deque()  # of nothing, but the first may be joined
        self._end = -inf
        self._moved = False  # since it has been watched without a gap
        self._stood = -inf  # when the standing time began that is held
        self._shortest = 0.0  # time between two steps, once it is known to stand

    def settle(self, windows: Iterable[Window], capacity: float | None) -> list[Window]:
        """Those windows, and those held so far, that can be judged now, in order.

        An impossible window at the very start, or after a gap, is left out with the standing ones
        before it: what passed in it began to pass before anybody looked. One that stays impossible
        with all that is held counts for what is possible. Where the capacity is not known nothing
        is impossible.
        """
        limit = inf if capacity is None else capacity * IMPOSSIBLE
        settled: list[Window] = []
        held = self._held
        for window in windows:
            start, end, amount = window
            if start - self._end > TOUCHING_SECONDS:
                settled += self.flush()
            self._end = end
            if not amount:
                self._stand(window)
                while held and end - held[0].start > HELD_SECONDS:
                    settled.append(held.popleft())
                continue
            if amount > limit * (end - start):
                settled += self._step(window, limit)
            elif self._shortest and self._stands:
                settled += self._joined(window, limit)
            else:
                settled += held
                held.clear()
                settled.append(window)
                self._shortest = 0.0
            self._moved = True
        return settled

    def flush(self) -> list[Window]:
        """What is held; what comes next is as if it came first."""
        held = list(self._held)
        self._held.clear()
        self._moved = False
        return held

    @property
    def _stands(self) -> bool:
        return bool(self._held) and not self._held[-1].amount

    def _stand(self, window: Window) -> None:
        if not self._stands:
            self._stood = window.start
        self._held.append(window)

    def _step(self, window: Window, limit: float) -> list[Window]:
        """Settle what an impossible window leaves of the time before it, and hold what it takes.

        The next one may need some of that, too: a counter that is written every 150 ms steps twice
        in a row, and one that is written every 250 ms stands for one window after two.
        """
        held = self._held
        if not self._moved:
            held.clear()
            return []
        apart = [*held, window._replace(amount=limit * window.seconds)]
        *settled, joined = self._joined(window, limit)
        if joined.amount > limit * joined.seconds:
            return apart
        if joined.seconds > HELD_SECONDS:
            return [*settled, joined]
        held.append(joined)
        return settled

    def _joined(self, window: Window, limit: float) -> list[Window]:
        """All that is held, and last a step with what it takes of that."""
        start, end, amount = window
        held = self._held
        if self._stands:
            since = max(self._stood, held[0].start)
            self._shortest = min(self._shortest or inf, end - since)
        enough = self._shortest - TOUCHING_SECONDS
        while held and (end - start < enough or amount > limit * (end - start)):
            before = held.pop()
            start, amount = before.start, amount + before.amount
        settled = [*held, Window(start, end, amount)]
        held.clear()
        return settled
