"""What passed over one channel, how fast, and for how long it was busy, out of windows."""

from collections import deque
from collections.abc import Iterable, Sequence
from math import inf
from statistics import median

from seedance_obs.bandwidth.reading import THRESHOLDS, ChannelReading
from seedance_obs.bandwidth.stepping import Steps
from seedance_obs.flow import Window

# A loop's ticks lie on a grid: one that comes up to half an interval late is made up for by the
# next, which is as much shorter; a longer window has missed a tick, and may have missed a burst.
LATE = 1.5
LOST = 3.0
SLICES = 15  # that a window of time slides by
USUAL_OF = 9
UNPACED = frozenset({"gpm", "dcgm", "throughput"})  # whose windows are longer than a tick
UNLIMITED = frozenset({"sensor"})  # power passes its limit for moments
ROUNDING = 1 - 1e-9  # so that exactly at a threshold is at it


class Meter:
    """Adds up one channel's windows.

    Every window counts in the total, which stays an int where amounts are. One that is more than
    three intervals long says nothing of bursts: mean, peak, busy and observed time leave it out.
    None counts for more in them than can pass (`stepping.IMPOSSIBLE` times the capacity).
    `mean` and `peak` are over the last `window_seconds` of observed time, and up to a fifteenth
    more: whoever asks at least that often misses no burst, and whoever asks too sees the same.

    Args:
        interval_seconds: between two ticks of the loop. Of sources with a pace of their own that
            counts where it is longer, and of those that know none the usual length of their
            windows.
        window_seconds: what `mean` and `peak` are over.
    """

    def __init__(self, *, interval_seconds: float, window_seconds: float) -> None:
        self._interval = interval_seconds
        self._window = window_seconds
        self._source = ""
        self._steps = Steps()
        self._lengths: deque[float] = deque(maxlen=USUAL_OF)
        self._capacity: float | None = None
        self._floors: tuple[float, ...] = ()
        self._total: float = 0
        self._busy = [0.0] * len(THRESHOLDS)
        self._observed = 0.0
        self._late = 0.0
        self._slices: deque[_Slice] = deque([_Slice()])
        self._end: float | None = None

    @property
    def told_until(self) -> float | None:
        """Where the last window ended, in monotonic seconds; None before the first."""
        return self._end

    def add(
        self,
        windows: Sequence[Window],
        capacity: float | None,
        source: str = "counter",
        *,
        pace: float | None = None,
    ) -> list[Window]:
        """Take windows that follow the ones before.

        Returns those that have been judged by now: without what is too long to be, and with what
        stood still and jumped laid over the time in between. The latest may be among the next.

        Args:
            windows: in order.
            capacity: the level that is full, as `ChannelReading` says; None if not known.
            source: who tells them, as `Flow` says.
            pace: of that source, as `Flow` says.
        """
        if not windows:
            return []
        settled: list[Window] = []
        if source != self._source:
            settled = self._steps.flush()
            self._judge(settled)
            self._source, self._steps = source, Steps()
            self._lengths.clear()
        if capacity != self._capacity:
            self._capacity = capacity
            self._floors = () if capacity is None else _floors(capacity)
        limit = None if source in UNLIMITED else capacity
        more = self._steps.settle(self._timely(windows, pace), limit)
        self._judge(more)
        self._end = windows[-1].end
        return [*settled, *more]

    def reading(self) -> ChannelReading:
        """The channel now; what may still be part of a step is not judged yet."""
        seconds, amount, peak = self._lately()
        known = self._capacity is not None
        return ChannelReading(
            source=self._source,
            capacity=self._capacity,
            total=self._total,
            mean=amount / seconds if seconds else None,
            peak=peak if seconds else None,
            busy_seconds=dict(zip(THRESHOLDS, self._busy, strict=True)) if known else {},
            observed_seconds=self._observed,
            late_seconds=self._late,
        )

    def _timely(self, windows: Iterable[Window], pace: float | None) -> list[Window]:
        """Those that are short enough to be judged; all are added to what passed."""
        timely, total = [], self._total
        interval = max(self._interval, pace or 0.0)
        unpaced = pace is None and self._source in UNPACED
        for window in windows:
            start, end, amount = window
            total += amount
            seconds = end - start
            if unpaced:
                self._lengths.append(seconds)
                interval = max(self._interval, median(self._lengths))
            if seconds > LATE * interval:
                self._late += seconds - interval
                if seconds > LOST * interval:
                    continue
            timely.append(window)
        self._total = total
        return timely

    def _judge(self, windows: Iterable[Window]) -> None:
        busy, floors, room = self._busy, self._floors, self._window / SLICES
        now = self._slices[-1]
        for start, end, amount in windows:
            seconds = end - start
            level = amount / seconds
            self._observed += seconds
            for place, floor in enumerate(floors):
                if level < floor:
                    break
                busy[place] += seconds
            if now.seconds >= room:
                now = self._next_slice()
            now.seconds += seconds
            now.amount += amount
            if level > now.peak:
                now.peak = level

    def _next_slice(self) -> "_Slice":
        slices = self._slices
        while sum(each.seconds for each in slices) - slices[0].seconds >= self._window:
            slices.popleft()
        slices.append(_Slice())
        return slices[-1]

    def _lately(self) -> tuple[float, float, float]:
        """Seconds, amount and peak of the latest slices that fill the window, or of all."""
        seconds, amount, peak = 0.0, 0.0, -inf
        for each in reversed(self._slices):
            if seconds >= self._window:
                break
            seconds += each.seconds
            amount += each.amount
            peak = max(peak, each.peak)
        return seconds, amount, peak


class _Slice:
    """A stretch of observed time."""

    __slots__ = ("amount", "peak", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.amount: float = 0
        self.peak = -inf


def _floors(capacity: float) -> tuple[float, ...]:
    return tuple(threshold * capacity * ROUNDING for threshold in THRESHOLDS)
