"""What a board draws above its floor while it is held and nobody does anything: its base."""

from collections.abc import Mapping

from seedance_obs.attribution.moments import Moments
from seedance_obs.attribution.power_fit import PowerFit

FADE_SECONDS = 600.0
SECONDS_NEEDED = 10.0  # of a board held and inactive, before its base counts as seen
TICKS_NEEDED = 60  # before a base is fitted


class BasePower:
    """The base of one board, as it was seen and as it is fitted over all ticks."""

    def __init__(self) -> None:
        self._mean_watts = 0.0
        self._seconds = 0.0
        self._inactive_before = False
        self._fitted: float | None = None

    @property
    def watts(self) -> float | None:
        """Of a wholly held board; fitted where the ticks tell, else as seen, else unknown."""
        return self._seen if self._fitted is None else self._fitted

    def see(
        self, activities: Mapping[object, float], *, held: float, watts: float, seconds: float
    ) -> None:
        """Take in a tick; the first after an active one may still hold some activity."""
        inactive = not any(activities.values())
        if inactive and self._inactive_before and held > 0:
            self._seconds = min(self._seconds + seconds, FADE_SECONDS)
            gain = min(seconds / self._seconds, 1.0)
            self._mean_watts += (max(watts, 0.0) / held - self._mean_watts) * gain
        self._inactive_before = inactive

    def fit(self, moments: Moments, *, residual: float | None) -> None:
        """Fit the base to the ticks; `residual` is what the best hypothesis left last time."""
        self._fitted = None
        fit = PowerFit(moments, base_watts=self._seen)
        if fit.columns and fit.active_watts > 0 and moments.observations >= TICKS_NEEDED:
            self._fitted = fit.fitted_base(residual)

    @property
    def _seen(self) -> float | None:
        return self._mean_watts if self._seconds >= SECONDS_NEEDED else None
