"""Which of many series grow like a leak: by slope, by low-water mark, and beyond their past.

Each estimator alone cries wolf. The slope of a line (ordinary least squares) takes the rising edge
of a sawtooth for a leak; a median of slopes does so even more, since it ignores the resets. The
low-water mark takes a step for a leak. A trend test takes any memory in the noise for one. So a
series leaks when all of these hold, over windows that slide by a sixth of their length:

- the line through the latest window rises at the rate or faster;
- the lowest values of three windows in a row rise at the rate or faster from the first to the
  last, and at half of it or faster from each to the next: one step, or two, never do all this;
- the lowest value of the latest window is above the highest of the time before the three windows,
  by half of the deepest fall of that time at least: a sawtooth that was seen to fall once does not
  get there, and noise that wanders seldom goes so far beyond where it was;
- it was watched for five windows. What climbs from birth cannot be told from a sawtooth that has
  not been reset yet: one with a period up to five windows never is mistaken for a leak.

So a leak in a series that was steady before is found two to three windows after it began, and
three windows late where it is no faster than the rule's rate.

A finding ends at once when the low-water mark falls, else a window after all of it held last: a
plateau ends it after one window and a bucket or two.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from seedance_obs.leaks.growth_buckets import BUCKETS, GROWN, WATCHED, Series, slope_weights
from seedance_obs.leaks.growth_rules import GrowthRule

LIMIT_SHARE = 0.2

Key = TypeVar("Key", bound=Hashable)  # what names a series


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth that a rule calls a leak.

    Attributes:
        rule: The rule that found it.
        per_second: The slope of the line through the latest window in which all of it held.
        low_water_per_second: How fast the lowest value of a window rose over the three.
        since: Monotonic seconds at which the growth began, as far as it was watched: when the
            series was last at the lowest value of the first of the three windows.
        level: The value noted last.
    """

    rule: GrowthRule
    per_second: float
    low_water_per_second: float
    since: float
    level: int

    def matters(self, limit: int | None = None) -> bool:
        """Whether the level is worth a word: the rule's least, or a fifth of a known limit."""
        if self.level >= self.rule.least:
            return True
        return limit is not None and self.level >= LIMIT_SHARE * limit


class GrowthWatch(Generic[Key]):
    """Watches many series by a few rules.

    Args:
        rules: The rules, each of which is held to every series on its own.
        gap_seconds: After a longer time without a note, all is forgotten: nobody knows what
            happened meanwhile. So it is when the clock steps back.
    """

    def __init__(self, rules: Iterable[GrowthRule], *, gap_seconds: float = 60.0) -> None:
        self._rules = tuple(rules)
        self._gap_seconds = gap_seconds
        self._watches: tuple[_RuleWatch[Key], ...] = ()
        self._last: float | None = None

    def note(self, now: float, values: Mapping[Key, int]) -> None:
        """Take the values of all series at one time; a series that is not among them ends.

        Args:
            now: Monotonic seconds.
            values: By series. One that comes back later is a new one.
        """
        last = self._last
        if last is None or not 0 <= now - last <= self._gap_seconds:
            self._watches = tuple(_RuleWatch(rule, now) for rule in self._rules)
        for watch in self._watches:
            watch.note(now, values)
        self._last = now

    def growing(self, now: float) -> Mapping[Key, tuple[Growth, ...]]:
        """The series that grow like a leak, each with what its rules found, in their order."""
        found: dict[Key, tuple[Growth, ...]] = {}
        if self._last is None or now - self._last > self._gap_seconds:
            return found
        for watch in self._watches:
            for key, finding in watch.findings.items():
                growth = replace(finding.growth, level=finding.level)
                found[key] = (*found.get(key, ()), growth)
        return found


class _Finding:
    """What was found of a series, after how many buckets it was so last, and its level now."""

    __slots__ = ("growth", "held_at", "level")

    def __init__(self, growth: Growth, held_at: int) -> None:
        self.growth = growth
        self.held_at = held_at
        self.level = growth.level


class _RuleWatch(Generic[Key]):
    """All series by one rule. They are noted together, so that they share the times of buckets.

    A bucket is closed by the first note after a sixth of a window. Where notes are rarer than
    that, each is a bucket, and windows are longer than the rule says, never shorter. The first
    bucket of a series may lack notes; it is out of the three windows before the series is judged.
    """

    def __init__(self, rule: GrowthRule, now: float) -> None:
        self.findings: dict[Key, _Finding] = {}
        self._rule = rule
        self._series: dict[Key, Series] = {}
        self._begins: list[float] = []  # of the closed buckets of three windows
        self._times: list[float] = []  # the mean times of the notes of a window's buckets
        self._weights: list[float] = []  # of these buckets' means in the slope
        self._closed = 0
        self._begin = self._last = now
        self._notes = 0
        self._seconds = 0.0  # the sum of the times of the notes, from the bucket's begin

    def note(self, now: float, values: Mapping[Key, int]) -> None:
        self._forget(values)
        if self._ends(now):
            self._close(now, values)
        else:
            self._fill(values)
        self._notes += 1
        self._seconds += now - self._begin
        self._last = now
        for key, finding in self.findings.items():
            finding.level = values[key]

    def _forget(self, values: Mapping[Key, int]) -> None:
        for key in self._series.keys() - values.keys():
            del self._series[key]
            self.findings.pop(key, None)

    def _ends(self, now: float) -> bool:
        """Whether a bucket is full; a note that is a little early must not make it a longer one."""
        jitter = (now - self._last) / 4
        return now - self._begin + jitter >= self._rule.window_seconds / BUCKETS

    def _fill(self, values: Mapping[Key, int]) -> None:
        found = self._series
        for key, value in values.items():
            series = found.get(key)
            if series is None:
                found[key] = Series(value)
                continue
            series.total += value
            if value < series.low:
                series.low = value
            elif value > series.high:
                series.high = value

    def _close(self, now: float, values: Mapping[Key, int]) -> None:
        self._count_bucket(now)
        notes, self._notes, self._seconds = self._notes, 0, 0.0
        found = self._series
        for key, value in values.items():
            series = found.get(key)
            if series is None:
                found[key] = Series(value)
                continue
            series.close(notes, value)
            # The lowest value of the last bucket rules out most series at once.
            if series.age >= WATCHED and series.buckets[-1][0] > series.peak:
                self._judge(key, series, value)
        self._end()

    def _count_bucket(self, now: float) -> None:
        self._begins = [*self._begins, self._begin][-GROWN:]
        self._times = [*self._times, self._begin + self._seconds / self._notes][-BUCKETS:]
        self._weights = slope_weights(self._times)
        self._closed += 1
        self._begin = now

    def _judge(self, key: Key, series: Series, level: int) -> None:
        first, second, latest = series.low_waters()
        if latest <= series.past():
            return
        rate, begins = self._rule.per_second, self._begins
        risen = (latest - first) / (begins[-BUCKETS] - begins[0])
        step = rate * (begins[-BUCKETS] - begins[0]) / 4
        if risen < rate or second - first < step or latest - second < step:
            return
        latest_buckets = series.buckets[-BUCKETS:]
        slope = sum(
            weight * bucket[2] for weight, bucket in zip(self._weights, latest_buckets, strict=True)
        )
        if slope < rate:
            return
        since = self._since(key, series, first)
        growth = Growth(self._rule, slope, risen, since, level)
        self.findings[key] = _Finding(growth, self._closed)

    def _since(self, key: Key, series: Series, lowest: int) -> float:
        if key in self.findings:
            return self.findings[key].growth.since
        return max(
            begin
            for begin, bucket in zip(self._begins, series.buckets, strict=True)
            if bucket[0] <= lowest
        )

    def _end(self) -> None:
        for key, finding in list(self.findings.items()):
            if finding.held_at == self._closed:
                continue
            _, before, latest = self._series[key].low_waters()
            if latest < before or self._closed - finding.held_at > BUCKETS:
                del self.findings[key]
