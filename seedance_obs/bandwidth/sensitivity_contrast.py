"""The two kinds of windows that sensitivity compares: of little pressure, and of much."""

from dataclasses import dataclass
from statistics import fmean, median

from seedance_obs.bandwidth.sensitivity_history import History

LITTLE = 0.2  # of capacity
MUCH = 0.5
LEAST = 10  # windows of each kind


@dataclass(frozen=True, slots=True)
class Contrast:
    """Windows of little and of much pressure, and the tenant's progress in them.

    Attributes:
        history: All windows.
        low, high: Which of them had little and much pressure, in order.
        usual, pressed: The median progress with little and with much pressure; `usual` is above 0.
        rise: By how much the mean pressure of the two differs.
    """

    history: History
    low: tuple[int, ...]
    high: tuple[int, ...]
    usual: float
    pressed: float
    rise: float

    @property
    def drop(self) -> float:
        """The share of its progress that the tenant lacks under pressure; may be negative."""
        return 1 - self.pressed / self.usual


def contrast(history: History) -> Contrast | None:
    """The two kinds of windows; None with fewer than 10 of one, or no progress in the calm."""
    low = tuple(n for n, c in enumerate(history.pressure) if c <= LITTLE)
    high = tuple(n for n, c in enumerate(history.pressure) if c >= MUCH)
    if min(len(low), len(high)) < LEAST:
        return None
    usual = median(history.progress[n] for n in low)
    if usual <= 0:
        return None
    return Contrast(
        history=history,
        low=low,
        high=high,
        usual=usual,
        pressed=median(history.progress[n] for n in high),
        rise=fmean(history.pressure[n] for n in high) - fmean(history.pressure[n] for n in low),
    )
