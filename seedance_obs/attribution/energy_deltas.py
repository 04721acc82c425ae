"""What an advance of a board's energy counter means: when it can be attributed and when not.

The counter (NVML's total energy, Volta and newer) counts millijoules since the driver was loaded.
It may be read more seldom than the board is looked at, stand still for a tick, go back with its
driver, or lag behind itself when another source shows it. Boards without one have their power
integrated.
"""

from dataclasses import dataclass, replace

from seedance_obs.attribution.state import (
    State,
    number,
    optional_table,
    text,
    whole,
)
from seedance_obs.attribution.tick import EnergyReading, Tick

UNKNOWN_LIMIT_WATTS = 1500.0  # more than any board on sale may draw
MARGIN_US = 1_000_000  # a counter is up to this old when it is read


@dataclass(frozen=True, slots=True)
class Advance:
    """Energy that a board burned between two moments (monotonic microseconds).

    No millijoules: what was burned up to `until_us` is not known, and counting begins there.
    `attributable` is False where what is known of the holders says nothing of this energy.
    """

    millijoules: int
    since_us: int
    until_us: int
    attributable: bool = True

    @property
    def covers_us(self) -> int:
        """How long it took, in microseconds; 0 where a clock went back."""
        return max(0, self.until_us - self.since_us)

    @property
    def watts(self) -> float | None:
        """The mean draw, None where no time passed."""
        return self.millijoules * 1000 / self.covers_us if self.covers_us else None


class EnergyMeter:
    """Reads the counter of one board, or integrates its power as long as it has shown none.

    Power is not integrated over more than `gap_us`; an advance of the counter that took longer
    than `counter_gap_us` cannot be attributed.

    Attributes:
        restarts: How often the counter began anew.
        implausible: How often it advanced by more than the board can draw.
    """

    def __init__(self, *, gap_us: int, counter_gap_us: int) -> None:
        self.restarts = 0
        self.implausible = 0
        self._gap_us = gap_us
        self._counter_gap_us = counter_gap_us
        self._last: EnergyReading | None = None
        self._behind: EnergyReading | None = None  # another source's first lower value
        self._power_watts: float | None = None
        self._power_at_us = 0
        self._integrated_mj = 0.0  # not yet a whole one
        self._integrated_since_us = 0

    @property
    def source(self) -> str | None:
        """Where energy comes from: `counter`, `integrated_power`, None while there is neither."""
        if self._last is not None:
            return "counter"
        return None if self._power_watts is None else "integrated_power"

    def advance(self, tick: Tick) -> Advance | None:
        """What was burned since the advance before; None where nothing new is known.

        A counter that is away for a moment is waited for: what it shows when it is back includes
        the time between.
        """
        if tick.energy is None:
            return self._integrate(tick) if self._last is None else None
        if self._last is None:
            last_power = self._integrate(tick)
            self._last = tick.energy
            return last_power or Advance(0, tick.at_us, tick.at_us)
        return self._count(self._last, tick.energy, tick.power_limit_watts)

    def _count(
        self, last: EnergyReading, reading: EnergyReading, limit_watts: float | None
    ) -> Advance | None:
        if reading.millijoules == last.millijoules:
            self._last, self._behind = replace(last, source=reading.source), None
            return None
        went_back = reading.millijoules < last.millijoules
        if went_back and reading.source != last.source and not self._restarted(reading):
            return None
        self._last, self._behind = reading, None
        burned = reading.millijoules - (0 if went_back else last.millijoules)
        advance = Advance(burned, last.at_us, reading.at_us, attributable=not went_back)
        if went_back and _impossible(advance, limit_watts):
            # It cannot have begun at zero since it was last read: there is nothing to book.
            self.implausible += 1
            return Advance(0, reading.at_us, reading.at_us)
        self.restarts += went_back
        return self._judged(advance, limit_watts)

    def _restarted(self, reading: EnergyReading) -> bool:
        """Whether a lower value from another source is a new count, not the old one read late.

        Late values move on and catch up; it is a restart when they fall, or move for longer than a
        gap without catching up.
        """
        first = self._behind
        if first is None or first.source != reading.source:
            self._behind = reading
            return False
        moved = reading.millijoules > first.millijoules
        waited = reading.at_us - first.at_us > self._gap_us
        return reading.millijoules < first.millijoules or (moved and waited)

    def _integrate(self, tick: Tick) -> Advance | None:
        """Trapezoids under the power, in whole millijoules."""
        if tick.power_watts is None:
            return None
        before_watts, before_us = self._power_watts, self._power_at_us
        self._power_watts = tick.power_watts
        self._power_at_us = at_us = max(tick.at_us, before_us)
        if before_watts is None or at_us - before_us > self._gap_us:
            self._integrated_since_us = at_us
            return Advance(0, at_us, at_us)
        self._integrated_mj += (before_watts + tick.power_watts) / 2 * (at_us - before_us) / 1000
        if (whole_mj := int(self._integrated_mj)) == 0:
            return None
        self._integrated_mj -= whole_mj
        since_us, self._integrated_since_us = self._integrated_since_us, at_us
        return self._judged(Advance(whole_mj, since_us, at_us), tick.power_limit_watts)

    def _judged(self, advance: Advance, limit_watts: float | None) -> Advance:
        impossible = _impossible(advance, limit_watts)
        self.implausible += impossible
        known = (
            advance.attributable and not impossible and advance.covers_us <= self._counter_gap_us
        )
        return replace(advance, attributable=known)

    def as_state(self) -> dict[str, object]:
        """All it knows, as `restore` takes it."""
        return {
            "restarts": self.restarts,
            "implausible": self.implausible,
            "last": _reading_as_state(self._last),
            "behind": _reading_as_state(self._behind),
            "power_watts": self._power_watts,
            "power_at_us": self._power_at_us,
            "integrated_mj": self._integrated_mj,
            "integrated_since_us": self._integrated_since_us,
        }

    def restore(self, state: State, *, same_boot: bool) -> None:
        """Take up what was kept; after a reboot the counts alone, for clock and counter restart.

        Raises:
            SeedanceError: the state is of another form.
        """
        self.restarts = whole(state, "restarts")
        self.implausible = whole(state, "implausible")
        if same_boot:
            self._last = _reading_from(state, "last")
            self._behind = _reading_from(state, "behind")
            known = state.get("power_watts") is not None
            self._power_watts = number(state, "power_watts") if known else None
            self._power_at_us = whole(state, "power_at_us")
            self._integrated_mj = number(state, "integrated_mj")
            self._integrated_since_us = whole(state, "integrated_since_us")


def _impossible(advance: Advance, limit_watts: float | None) -> bool:
    """Whether it is more than twice what the board may draw, for its time and a margin."""
    most_watts = 2 * (limit_watts or UNKNOWN_LIMIT_WATTS)
    return advance.millijoules * 1000 > most_watts * (advance.covers_us + MARGIN_US)


def _reading_as_state(reading: EnergyReading | None) -> dict[str, object] | None:
    if reading is None:
        return None
    return {"mj": reading.millijoules, "at_us": reading.at_us, "source": reading.source}


def _reading_from(state: State, key: str) -> EnergyReading | None:
    inner = optional_table(state, key)
    if inner is None:
        return None
    return EnergyReading(whole(inner, "mj"), whole(inner, "at_us"), text(inner, "source"))
