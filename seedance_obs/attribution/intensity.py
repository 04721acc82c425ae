"""Who burns more for the same activity: intensities learned from a board's ticks.

`power_fit` says what the ticks allow, `settlement` what follows for the split of energy.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from seedance_obs.attribution.base_power import BasePower
from seedance_obs.attribution.least_squares import condition_number
from seedance_obs.attribution.moments import Moments
from seedance_obs.attribution.power_fit import Hypothesis, PowerFit
from seedance_obs.attribution.settlement import Knowledge, Settlement

FADE_SECONDS = 240.0  # workloads change phase
OWN_COLUMNS = 8  # accounts told apart; what more there are is learned of as one
TICKS_NEEDED = 60
TICKS_FOR_EACH_UNKNOWN = 5
LEAST_TICKS_BETWEEN_FITS = 10
TICKS_BETWEEN_FITS_EACH = 12  # account: a fit's cost grows with its cube
RESIDUAL_ALLOWED = 0.5
SURE, UNSURE = 0.05, 0.1  # of the active watts: how much may be anybody's


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the intensities of a board rest on.

    Attributes:
        effective_seconds: Observed time, of which old parts count less.
        condition_number: Of the accounts' activities; infinite where some move as one. None until
            two accounts have been active.
        residual_ratio: The standard deviation of the watts left unexplained over the mean active
            watts; None until fitted.
        used: Whether intensities are in use.
    """

    effective_seconds: float
    condition_number: float | None
    residual_ratio: float | None
    used: bool


class Intensities:
    """What the accounts of one board draw by their activity, learned tick by tick.

    Memory is bounded by the accounts present and `OWN_COLUMNS`.
    """

    def __init__(self) -> None:
        self._moments = Moments(fade_seconds=FADE_SECONDS, limit=OWN_COLUMNS)
        self._base = BasePower()
        self._settlement = Settlement()
        self._latest: _Tick | None = None  # learned from and not yet split
        self._ticks = 0  # since the last fit
        self._mean_active = 0.0
        self._mean_intensity = 0.0
        self._condition: float | None = None
        self._residual: float | None = None
        self._hypotheses: list[Hypothesis] = []
        self._certainty = 0.0
        self._relative: dict[Hashable, float] = {}

    def learn(
        self,
        activities: Mapping[Hashable, float],
        parts: Mapping[Hashable, float],
        watts: float,
        seconds: float,
    ) -> None:
        """Take in what a board did during one tick.

        Args:
            activities: Each account's share (0 to 1) of the board's SM time.
            parts: Each account's share (0 to 1) of the board.
            watts: The board's mean power above its floor.
            seconds: How long the tick was; without length it is no observation.
        """
        if seconds <= 0:
            return
        held = sum(parts.values())
        self._latest = _Tick(activities, parts, watts, seconds)
        self._settlement.pass_time(seconds)
        self._base.see(activities, held=held, watts=watts, seconds=seconds)
        self._moments.add(activities, parts=held, watts=watts, seconds=seconds)
        self._ticks += 1
        each = 0 if self._residual is None else TICKS_BETWEEN_FITS_EACH
        if self._ticks >= max(LEAST_TICKS_BETWEEN_FITS, each * len(self._moments.columns)):
            self._ticks = 0
            self._fit()

    def weights(
        self, activities: Mapping[Hashable, float], parts: Mapping[Hashable, float]
    ) -> tuple[Mapping[Hashable, float], bool]:
        """What each account should be given of a tick, and whether intensities had a say.

        On no scale in particular. Where nobody is active they are the parts. Asked of the tick
        that was just learned from, it counts as given by these weights.
        """
        if not any(activities.values()):
            return dict.fromkeys(activities, 0.0) | dict(parts), False
        tick = self._latest
        final = tick is not None and tick.watts > 0 and tick.is_of(activities, parts)
        if tick is None or not final:
            tick = _Tick(activities, parts, self._expected_watts(activities, parts), 1.0)
        else:
            self._latest = None
        scaled = final or self._mean_intensity > 0
        joules = self._settlement.split(
            activities,
            parts,
            Knowledge(
                base_watts=(self.base_watts or 0.0) if scaled else 0.0,
                certainty=self._certainty,
                hypotheses=self._hypotheses,
            ),
            watts=tick.watts,
            seconds=tick.seconds,
            final=final,
        )
        return joules, bool(self._hypotheses)

    def forget(self, account: Hashable) -> None:
        """Drop an account that has ended; what it showed of the board is kept."""
        self._moments.forget(account)
        self._settlement.forget(account)
        self._relative.pop(account, None)
        for hypothesis in self._hypotheses:
            hypothesis.draws.pop(account, None)

    def of(self, account: Hashable) -> float | None:
        """An account's watts per activity over the board's mean; None while not in use.

        1 is also what an account has of which the ticks say too little.
        """
        return self._relative.get(account, 1.0) if self._hypotheses else None

    @property
    def evidence(self) -> Evidence:
        """What the intensities rest on at present."""
        fitted = self._residual is not None and self._mean_active > 0
        return Evidence(
            effective_seconds=self._moments.seconds,
            condition_number=self._condition,
            residual_ratio=sqrt(self._residual or 0.0) / self._mean_active if fitted else None,
            used=bool(self._hypotheses),
        )

    @property
    def base_watts(self) -> float | None:
        """What a wholly held board draws above its floor while nobody is active, if known.

        Fitted over all ticks where they tell, else as it was seen.
        """
        return self._base.watts

    def _expected_watts(
        self, activities: Mapping[Hashable, float], parts: Mapping[Hashable, float]
    ) -> float:
        if not self._mean_intensity:
            return sum(activities.values())  # of unknown scale
        base = (self.base_watts or 0.0) * sum(parts.values())
        return base + self._mean_intensity * sum(activities.values())

    def _fit(self) -> None:
        self._hypotheses, self._relative, self._certainty = [], {}, 0.0
        self._base.fit(self._moments, residual=self._residual)
        fit = PowerFit(self._moments, base_watts=self.base_watts)
        self._mean_active, self._mean_intensity = fit.active_watts, fit.mean_intensity
        if not fit.columns or fit.active_watts <= 0:
            return
        if len(fit.columns) < 2:
            self._certainty = 1.0  # what is not base is of one account
            return
        self._condition = condition_number(fit.gram())
        needed = max(TICKS_NEEDED, TICKS_FOR_EACH_UNKNOWN * (2 * len(fit.columns) + 1))
        if self._moments.observations < needed:
            return
        found = fit.hypotheses(self._residual)
        if not found:
            return
        self._residual = min(hypothesis.residual for hypothesis in found)
        if sqrt(self._residual) <= RESIDUAL_ALLOWED * fit.active_watts:
            self._hypotheses = found
            self._certainty = _certainty(fit, found)
            self._relative = _relative(fit, found)


@dataclass(frozen=True, slots=True)
class _Tick:
    activities: Mapping[Hashable, float]
    parts: Mapping[Hashable, float]
    watts: float
    seconds: float

    def is_of(self, activities: Mapping[Hashable, float], parts: Mapping[Hashable, float]) -> bool:
        return self.activities == activities and self.parts == parts


def _certainty(fit: PowerFit, hypotheses: Sequence[Hypothesis]) -> float:
    """From 0 to 1, by how much of the watts may be another account's than the best guess says."""
    open_watts = fit.others_watts
    for account, activity in zip(fit.accounts, fit.mean_activities, strict=False):
        low, high = _range(hypotheses, account, activity)
        open_watts += (high - low) / 2
    return max(0.0, min(1.0, (UNSURE - open_watts / fit.active_watts) / (UNSURE - SURE)))


def _relative(fit: PowerFit, hypotheses: Sequence[Hypothesis]) -> dict[Hashable, float]:
    """Each account's watts per activity over the mean, as near to 1 as all hypotheses allow."""
    found = {}
    for account, activity in zip(fit.accounts, fit.mean_activities, strict=False):
        mean = fit.active_watts * activity / sum(fit.mean_activities)
        low, high = _range(hypotheses, account, activity)
        found[account] = max(low, min(high, mean)) / mean
    return found


def _range(
    hypotheses: Sequence[Hypothesis], account: Hashable, activity: float
) -> tuple[float, float]:
    """The least and the most watts that the hypotheses say of an account at its activity."""
    draws = [hypothesis.draws[account] for hypothesis in hypotheses]
    return (
        min(draw.at(activity) * max(1.0 - draw.error, 0.0) for draw in draws),
        max(draw.at(activity) * (1.0 + draw.error) for draw in draws),
    )
