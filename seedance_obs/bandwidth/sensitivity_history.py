"""What a tenant achieved and how its neighbours pressed, window by window, as far as it counts."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

MOST = 480  # windows: four hours


@dataclass(frozen=True, slots=True)
class Observation:
    """One tenant on one segment in one window: means over `WINDOW_SECONDS`.

    Attributes:
        at: Monotonic seconds at which the window began.
        progress: How much it got done per second, in any unit that stays the same: its own steps or
            tokens, else SM activity times clock.
        pressure: Bytes per second of its co-tenants, without its own, over capacity.
        own: Its own bytes per second over capacity; None if unknown.
        running: Whether it ran: SM activity of 0.05 or more, or a step counter that moved.
        throttled: Whether heat or power slowed its GPU.
    """

    at: float
    progress: float
    pressure: float
    own: float | None
    running: bool
    throttled: bool


class History:
    """The last `MOST` windows that count: in which the tenant ran and its GPU was not throttled.

    It takes 16 kB, however long it is kept.
    """

    def __init__(self) -> None:
        self._at = array("d")
        self._progress = array("d")
        self._pressure = array("d")
        self._own = array("d")

    def __len__(self) -> int:
        return len(self._at)

    def add(self, observation: Observation) -> None:
        """Take a window, if it counts; one that is not after the last is left out."""
        if not observation.running or observation.throttled:
            return
        if self._at and observation.at <= self._at[-1]:
            return
        own = observation.own
        self._at.append(observation.at)
        self._progress.append(observation.progress)
        self._pressure.append(min(1.0, observation.pressure))
        self._own.append(nan if own is None else own)
        if len(self._at) > MOST:
            for column in (self._at, self._progress, self._pressure, self._own):
                del column[0]

    @property
    def at(self) -> Sequence[float]:
        """When each window ended, in monotonic seconds; the oldest first, as in what follows."""
        return self._at

    @property
    def progress(self) -> Sequence[float]:
        """The tenant's progress, in the unit that it was given in."""
        return self._progress

    @property
    def pressure(self) -> Sequence[float]:
        """The co-tenants' bytes over capacity, 1 where they were more."""
        return self._pressure

    @property
    def own(self) -> list[float | None]:
        """The tenant's own bytes over capacity; None in a window in which they are unknown."""
        return [None if isnan(value) else value for value in self._own]
