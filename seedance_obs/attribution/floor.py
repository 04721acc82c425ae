"""What a board draws while nobody uses it: measured when it is empty, else as configured.

A minimum would be a lucky sample, and a reading right after work ends is still warm: clocks and
memory take a while to fall to their idle state. So the floor is a slow mean over quiet times.
"""

from seedance_obs.attribution.energy_deltas import Advance
from seedance_obs.attribution.state import State, number, optional_whole, whole

SETTLE_US = 20_000_000  # after the last holder left
FIRST_SETTLE_US = 5_000_000  # after a board that was empty from the start was first seen
FORGET_SECONDS = 600.0
EVIDENCE_SECONDS = 5.0


class Floor:
    """The floor power of one board, in watts."""

    def __init__(self, configured_watts: float | None = None) -> None:
        self._configured_watts = configured_watts
        self._mean_watts = 0.0
        self._seconds = 0.0  # of evidence, as far as it is remembered
        self._quiet_since_us: int | None = None
        self._settle_us = FIRST_SETTLE_US
        self.lent_watts: float | None = None  # measured on other boards of its model

    @property
    def watts(self) -> float | None:
        """The measured floor, else the configured one, else the lent one, else None."""
        if self._measured:
            return self._mean_watts
        return self.lent_watts if self._configured_watts is None else self._configured_watts

    @property
    def source(self) -> str | None:
        """Where it is from: `measured`, `configured`, `same_model`; None where it is not known."""
        if self._measured:
            return "measured"
        if self._configured_watts is not None:
            return "configured"
        return None if self.lent_watts is None else "same_model"

    @property
    def _measured(self) -> bool:
        return self._seconds >= EVIDENCE_SECONDS

    def see(self, at_us: int, *, empty: bool) -> None:
        """Note whether the board is known to have had no holder since it was seen before."""
        if not empty:
            self._quiet_since_us, self._settle_us = None, SETTLE_US
        elif self._quiet_since_us is None:
            self._quiet_since_us = at_us

    def learn(self, advance: Advance, limit_watts: float | None) -> None:
        """Take an advance that lies in a quiet time for evidence.

        A draw of more than half the limit is work that nobody could see, not idleness.
        """
        watts = advance.watts
        if self._quiet_since_us is None or watts is None or not advance.attributable:
            return
        if advance.since_us - self._quiet_since_us < self._settle_us or advance.millijoules == 0:
            return
        if limit_watts is not None and watts > limit_watts / 2:
            return
        seconds = advance.covers_us / 1e6
        self._seconds = min(self._seconds + seconds, FORGET_SECONDS)
        self._mean_watts += (watts - self._mean_watts) * seconds / self._seconds

    def as_state(self) -> dict[str, object]:
        """What was measured, as `from_state` takes it."""
        return {
            "mean_watts": self._mean_watts,
            "seconds": self._seconds,
            "quiet_since_us": self._quiet_since_us,
            "settle_us": self._settle_us,
        }

    @classmethod
    def from_state(
        cls, state: State, *, configured_watts: float | None, same_boot: bool
    ) -> "Floor":
        """The floor as it was kept; after a reboot a quiet time begins anew.

        Raises:
            SeedanceError: the state is of another form.
        """
        floor = cls(configured_watts)
        floor._mean_watts = number(state, "mean_watts")
        floor._seconds = number(state, "seconds")
        floor._quiet_since_us = optional_whole(state, "quiet_since_us") if same_boot else None
        floor._settle_us = whole(state, "settle_us") if same_boot else SETTLE_US
        return floor
