"""Growth of memory while its owner is idle: what comes and goes with work is left out.

Each owner has a clock that runs in its idle windows only, and each series is taken on where it
stood: what it won or lost while its owner worked does not count. So a leak is told after as much
idle time as its rule needs, in however many windows that was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

from seedance_obs.leaks.growth import Growth, GrowthWatch, Key
from seedance_obs.leaks.growth_rules import GrowthRule

HELD_SECONDS = 3600.0  # of work, after which what was found before it is not told any more


@dataclass(frozen=True, slots=True)
class Owned(Generic[Key]):
    """The series of one owner at one time, and whether its idle window is open then."""

    idle: bool
    values: Mapping[Key, int]


class IdleGrowth(Generic[Key]):
    """Watches the series of many owners by a few rules.

    Args:
        rules: The rules, each of which is held to every series on its own.
        gap_seconds: Idle time without a note that is longer than this does not count.
    """

    def __init__(self, rules: Iterable[GrowthRule], *, gap_seconds: float) -> None:
        self._rules = tuple(rules)
        self._gap_seconds = gap_seconds
        self._owners: dict[str, _Owner[Key]] = {}

    def note(self, now: float, owners: Mapping[str, Owned[Key]]) -> None:
        """Take the values of all series at one time (monotonic seconds); others are forgotten."""
        before, self._owners = self._owners, {}
        for name, owned in owners.items():
            owner = before.get(name)
            if owner is None:
                owner = _Owner(GrowthWatch(self._rules, gap_seconds=self._gap_seconds))
            self._owners[name] = owner
            if owned.idle:
                owner.rest(now, owned.values, self._gap_seconds)
            else:
                owner.work(owned.values)

    def growing(self, now: float) -> Mapping[Key, tuple[Growth, ...]]:
        """The series that grow like a leak; `since` is by the clock, less what was idle time."""
        found: dict[Key, tuple[Growth, ...]] = {}
        for owner in self._owners.values():
            if owner.rested_at is not None and now - owner.rested_at <= HELD_SECONDS:
                found |= owner.growing(now)
        return found


@dataclass(slots=True)
class _Owner(Generic[Key]):
    """One owner: its idle clock, and what each series stands at beside what it counts for."""

    watch: GrowthWatch[Key]
    seconds: float = 0.0
    rested_at: float | None = None
    resting: bool = False
    values: Mapping[Key, int] = field(default_factory=dict)
    counted: dict[Key, int] = field(default_factory=dict)

    def work(self, values: Mapping[Key, int]) -> None:
        self.resting = False
        self.counted = {key: count for key, count in self.counted.items() if key in values}

    def rest(self, now: float, values: Mapping[Key, int], gap_seconds: float) -> None:
        last = self.rested_at
        follows = self.resting and last is not None and 0 < now - last <= gap_seconds
        before = self.values if follows else {}
        self.counted = {
            key: self.counted.get(key, value) + value - before.get(key, value)
            for key, value in values.items()
        }
        self.values, self.resting, self.rested_at = values, True, now
        if last is not None and follows:
            self.seconds += now - last
            self.watch.note(self.seconds, self.counted)

    def growing(self, now: float) -> Mapping[Key, tuple[Growth, ...]]:
        return {
            key: tuple(
                replace(growth, since=now - (self.seconds - growth.since), level=self.values[key])
                for growth in growths
            )
            for key, growths in self.watch.growing(self.seconds).items()
            if key in self.counted
        }
