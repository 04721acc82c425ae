"""Counters that stand and then step, because a driver writes them less often than they are read.

Read every 100 ms, a counter that is written every 500 ms shows four windows of nothing and one of
five times what passed. Nothing in one window tells that from a burst, but a level above capacity
does: it cannot be, so what passed in it passed in the standing windows before it, too.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from math import inf

from seedance_obs.flow import Window

HELD_SECONDS = 1.25  # network drivers that write once a second are the slowest in use
IMPOSSIBLE = 1.05  # of capacity: what headers and two clocks explain at most
# A burst long enough to matter now and then spans two windows; a counter that stands never does.
STEPS_PROVE = 30
STEP_FROM = 0.01  # of capacity: a link's own chatter proves nothing
TOUCHING_SECONDS = 0.001


class Steps:
    """Joins the steps of one counter with the time in which it stood.

    Windows of nothing are held back for up to `HELD_SECONDS`, since a step may follow. A step that
    is impossible proves that the counter stands between steps, and so do `STEPS_PROVE` moves of
    which each comes after it stood. From then on, until it moves twice in a row, each step counts
    for the shortest time that was seen between two, and for as much more standing time as it needs
    to be possible.
    """

    def __init__(self) -> None:
        self._held: deque[Window] = deque()
        self._end = -inf
        self._moved = False  # since it has been watched without a gap
        self._steps = 0  # since it last moved twice in a row
        self._shortest = inf  # time between two of them

    def settle(self, windows: Iterable[Window], capacity: float | None) -> list[Window]:
        """Those windows, and those held so far, that can be judged now, in order.

        An impossible window at the very start, or after a gap, is left out with the standing ones
        before it: what passed in it began to pass before anybody looked. Where the capacity is not
        known nothing is impossible.
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
                held.append(window)
                while held and end - held[0].start > HELD_SECONDS:
                    settled.append(held.popleft())
            elif held:
                settled += self._step(window, limit)
            else:
                if self._moved or amount <= limit * (end - start):
                    settled.append(window)
                self._moved, self._steps, self._shortest = True, 0, inf
        return settled

    def flush(self) -> list[Window]:
        """What is held; what comes next is as if it came first."""
        held = list(self._held)
        self._held.clear()
        self._moved = False
        return held

    def _step(self, window: Window, limit: float) -> Iterator[Window]:
        start, end, amount = window
        held, most = self._held, limit * (end - start)
        if amount > most and not self._moved:
            held.clear()
        self._moved = True
        if not held:
            return
        self._shortest = min(self._shortest, end - held[0].start)
        self._steps += STEPS_PROVE if amount > most else amount > most * STEP_FROM
        enough = self._shortest - TOUCHING_SECONDS if self._steps >= STEPS_PROVE else 0.0
        while held and (end - start < enough or amount > limit * (end - start)):
            start = held.pop().start
        yield from held
        held.clear()
        yield Window(start, end, amount)
