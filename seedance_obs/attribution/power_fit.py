"""What each account of a board draws for its activity, by hypotheses that the ticks allow.

All say `watts = base x parts + sum of a_i x activity_i + b_i x sqrt(activity_i)` with nothing
negative. They differ in what they let be: a straight line (b = 0), a concave curve, and, where the
base was never seen alone, a concave curve above an unknown base. What one tick cannot tell apart
(a steady account from the base, a curve from a steeper line) they tell differently, so what all
of them say can be relied on.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import mul

from seedance_obs.attribution.least_squares import inverse, nonnegative, variances
from seedance_obs.attribution.moments import FIRST, ONE, PARTS, WATTS, Moments

LIKELY = 1.05  # times the best hypothesis' squared residuals: those above are dropped
SPREAD = 0.5  # of intensities around their mean, before anything was seen
CORRELATED_TICKS = 4.0  # phases last for several ticks, which are then worth one
DEVIATIONS = 2.0  # standard errors that an interval reaches to each side
ACTIVITY_ERROR = 0.005  # activities come as whole percents
BASE_ERROR = 0.05  # of the mean active watts: how well a fitted base must be known
LEAST_RESIDUAL = 0.003  # of the mean watts: what no power sensor does better than


@dataclass(frozen=True, slots=True)
class Draw:
    """The active watts of an account: `linear x activity + root x sqrt(activity)`, +- `error`."""

    linear: float
    root: float
    error: float  # relative

    def at(self, activity: float) -> float:
        """Watts at an activity."""
        return self.linear * activity + self.root * sqrt(activity)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """How the board's watts come about: its base, and the draw of each account.

    Attributes:
        draws: By account; one that is not here has shown too little.
        stray_watts: What may burn at the most whatever anybody does, and may be anybody's.
        residual: The mean square of what is left unexplained, in watts squared.
    """

    draws: dict[Hashable, Draw]
    stray_watts: float
    residual: float


class PowerFit:
    """The hypotheses on one board, fitted to moments from which the known base is subtracted."""

    def __init__(self, moments: Moments, *, base_watts: float | None) -> None:
        self._moments = moments
        self._base = base_watts
        self.accounts = list(moments.columns)
        self.columns = [moments.columns[account] for account in self.accounts]
        if moments.product(ONE, FIRST) > 0:
            self.columns.append(FIRST)
        self._roots = [column + 1 for column in self.columns]
        self.mean_activities = [moments.product(ONE, column) for column in self.columns]
        self.active_watts = self._against(ONE)

    @property
    def mean_intensity(self) -> float:
        """Active watts at activity 1, as the mean over the accounts' activity; 0 if nobody had."""
        activity = sum(self.mean_activities)
        return max(self.active_watts, 0.0) / activity if activity > 0 else 0.0

    def hypotheses(self, residual: float | None) -> list[Hypothesis]:
        """Those that explain the ticks nearly as well as the best does.

        `residual` is that of the best when last asked; it sets how far intensities are drawn to
        their mean. Empty where the ticks say nothing.
        """
        pull = self._pull(self._first_residual if residual is None else residual)
        fits = [self._fit(pull, curved=True), self._fit(pull, curved=False)]
        if self._base is None:
            fits.append(self._fit(pull, curved=True, stray=True))
        best = max(min(fit.residual for fit in fits), (LEAST_RESIDUAL * self.active_watts) ** 2)
        likely = [fit for fit in fits if fit.residual <= LIKELY * best]
        found = [self._hypothesis(fit, max(fit.residual, best)) for fit in likely]
        return [hypothesis for hypothesis in found if hypothesis is not None]

    def fitted_base(self, residual: float | None) -> float | None:
        """The base that straight lines above it say, in watts of a wholly held board.

        `residual` as for `hypotheses`. None where the activities vary too little to tell, since
        what a steady account draws looks like a base, as does the start of a curve: so None too
        where curves above the base that was seen explain the ticks better, or where none was seen
        and curves above a lower one explain them about as well.
        """
        residual = self._first_residual if residual is None else residual
        pull = self._pull(residual)
        line = self._fit(pull, curved=False, stray=True)
        curve = self._fit(pull, curved=True)
        least = (LEAST_RESIDUAL * self.active_watts) ** 2
        spread = variances(line.gram, [[*[0.0] * len(self.columns), 1.0]])
        if line.residual > max(curve.residual, least) or spread is None:
            return None
        # The pull is worth so much at this residual only: at a smaller one it would be stronger.
        scale = max(line.residual, least, residual) / self._independent_ticks
        allowed = BASE_ERROR * self.active_watts
        if DEVIATIONS * sqrt(scale * spread[0]) >= allowed:
            return None
        if self._base is None:
            lower = PowerFit(self._moments, base_watts=max(line.answer[-1] - allowed, 0.0))
            curve = lower._fit(pull, curved=True)
            if curve.residual <= LIKELY * max(line.residual, least):
                return None
        return (self._base or 0.0) + line.answer[-1]

    @property
    def others_watts(self) -> float:
        """The mean watts of accounts without a name, by their activity."""
        return self._moments.product(ONE, FIRST) * self.mean_intensity

    def gram(self) -> list[list[float]]:
        """The mean products of the accounts' activities."""
        return self._moments.products(self.columns)

    @property
    def _independent_ticks(self) -> float:
        return self._moments.observations / CORRELATED_TICKS

    @property
    def _first_residual(self) -> float:
        """What is taken for the residual until one was found."""
        return (0.1 * self.active_watts) ** 2

    def _pull(self, residual: float) -> float:
        """How strongly intensities are drawn to their mean, by how well ticks are explained."""
        return residual / self._independent_ticks / (SPREAD * self.mean_intensity) ** 2

    def _against(self, column: int) -> float:
        """The mean product of a column with the watts above the base."""
        base = self._base or 0.0
        return self._moments.product(column, WATTS) - base * self._moments.product(column, PARTS)

    def _fit(self, pull: float, *, curved: bool, stray: bool = False) -> "_Fit":
        columns = self.columns + (self._roots if curved else []) + ([PARTS] if stray else [])
        gram = self._moments.products(columns)
        pulled = [list(row) for row in gram]
        size = len(self.columns)
        _draw_together(pulled, range(size), pull)
        if curved:
            per_root = self._mean_root_intensity / self.mean_intensity
            _draw_together(pulled, range(size, 2 * size), pull / per_root**2)
        against = [self._against(column) for column in columns]
        answer = nonnegative(pulled, against)
        return _Fit(answer, pulled, self._residual(answer, gram, against), curved, stray)

    @property
    def _mean_root_intensity(self) -> float:
        return self.active_watts / sum(self._moments.product(ONE, c) for c in self._roots)

    def _residual(
        self, answer: Sequence[float], gram: Sequence[Sequence[float]], against: Sequence[float]
    ) -> float:
        base = self._base or 0.0
        square = self._moments.product(WATTS, WATTS) - base * (
            2 * self._moments.product(WATTS, PARTS) - base * self._moments.product(PARTS, PARTS)
        )
        explained = sum(
            value * (2 * moment - sum(map(mul, row, answer)))
            for value, moment, row in zip(answer, against, gram, strict=True)
        )
        return max(float(square - explained), 0.0)

    def _hypothesis(self, fit: "_Fit", residual: float) -> Hypothesis | None:
        directions = self._directions(fit)
        spread = variances(fit.gram, directions)
        biases = self._biases()
        if spread is None or biases is None:
            return None
        scale = DEVIATIONS * sqrt(residual / self._independent_ticks)
        draws: dict[Hashable, Draw] = {}
        for i, account in enumerate(self.accounts):
            linear, root = fit.answer[i], fit.answer[len(self.columns) + i] if fit.curved else 0.0
            watts = sum(map(mul, directions[i], fit.answer))
            error = scale * sqrt(spread[i]) + biases[i]
            if watts > 0:
                draws[account] = Draw(linear, root, error / watts)
            else:
                draws[account] = Draw(error / self.mean_activities[i], 0.0, 1.0)
        stray = 0.0
        if fit.stray:
            stray = (fit.answer[-1] + scale * sqrt(spread[-1])) * self._moments.product(ONE, PARTS)
        return Hypothesis(draws, stray, residual)

    def _directions(self, fit: "_Fit") -> list[list[float]]:
        """What turns an answer into the mean active watts of each account with a name."""
        rows = []
        for i in range(len(self.accounts)):
            row = [0.0] * len(fit.answer)
            row[i] = self.mean_activities[i]
            if fit.curved:
                row[len(self.columns) + i] = self._moments.product(ONE, self._roots[i])
            rows.append(row)
        if fit.stray:
            rows.append([*[0.0] * (len(fit.answer) - 1), 1.0])
        return rows

    def _biases(self) -> list[float] | None:
        """How far errors in the activities can bend each account's mean watts.

        To first order the error's variance x G^-1 x the intensities; the signs are not known.
        """
        gram = self.gram()
        for i, row in enumerate(gram):
            row[i] += ACTIVITY_ERROR**2 / 3
        inverted = inverse(gram)
        if inverted is None:
            return None
        scale = ACTIVITY_ERROR**2 * self.mean_intensity
        return [
            scale * sum(map(abs, row)) * mean
            for row, mean in zip(inverted, self.mean_activities, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Fit:
    answer: list[float]
    gram: list[list[float]]
    residual: float
    curved: bool
    stray: bool


def _draw_together(gram: list[list[float]], group: Sequence[int], pull: float) -> None:
    """Add the penalty `pull x sum of (x_i - mean x)^2` over a group of unknowns."""
    for i in group:
        row = gram[i]
        row[i] += pull
        for j in group:
            row[j] -= pull / len(group)
