"""A board's active power as a concave function of its total activity, learned from ticks."""

from math import exp, sqrt

from seedance_obs.attribution.least_squares import condition_number, nonnegative

FADE_SECONDS = 600.0
SECONDS_NEEDED = 60.0
CONDITION_ALLOWED = 1e5  # activity that hardly varies shows a point, not a curve
RESIDUAL_ALLOWED = 0.25  # standard deviation of what is unexplained, over the mean watts


class PowerCurve:
    """Watts = `alpha u + beta sqrt(u)` with alpha, beta >= 0: concave and 0 at rest, whatever came.

    Fitted by least squares weighted by time, in which old ticks fade.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._watts = 0.0  # this and all below: sums weighted by faded time
        self._squared_watts = 0.0
        self._gram = [[0.0, 0.0], [0.0, 0.0]]
        self._against = [0.0, 0.0]
        self._curve: tuple[float, float] | None = None

    def learn(self, total_activity: float, watts: float, seconds: float) -> None:
        """Take in one tick: the sharers' summed activity and the mean power above the floor."""
        if seconds <= 0 or total_activity < 0:
            return
        keep = exp(-seconds / FADE_SECONDS)
        row = (total_activity, sqrt(total_activity))
        self._seconds = keep * self._seconds + seconds
        self._watts = keep * self._watts + seconds * watts
        self._squared_watts = keep * self._squared_watts + seconds * watts * watts
        for i, value in enumerate(row):
            self._against[i] = keep * self._against[i] + seconds * value * watts
            for j, other in enumerate(row):
                self._gram[i][j] = keep * self._gram[i][j] + seconds * value * other
        self._curve = None

    def at(self, total_activity: float) -> float:
        """Watts at a total activity of 0 or more, 0 before anything was learned."""
        alpha, beta = self._coefficients()
        return alpha * total_activity + beta * sqrt(total_activity)

    @property
    def identified(self) -> bool:
        """Whether there were enough ticks, unlike enough, that lie on a curve."""
        return (
            self._seconds >= SECONDS_NEEDED
            and self._watts > 0
            and condition_number(self._gram) <= CONDITION_ALLOWED
            and self._residual_ratio() <= RESIDUAL_ALLOWED
        )

    def _residual_ratio(self) -> float:
        fitted = zip(self._coefficients(), self._against, strict=True)
        explained = sum(value * moment for value, moment in fitted)  # exact at a minimum
        left = max(self._squared_watts - explained, 0.0) / self._seconds
        return sqrt(left) / (self._watts / self._seconds)

    def _coefficients(self) -> tuple[float, float]:
        if self._curve is None:
            alpha, beta = nonnegative(self._gram, self._against)
            self._curve = alpha, beta
        return self._curve
