"""Who burns more for the same activity: intensities learned from a board's ticks.

The rule that everything here serves: where the ticks do not say, energy is split by activity. From
that split an account is moved only as far as every likely hypothesis (see `power_fit`) says it
must be, and only against accounts that must be moved the other way.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

from seedance_obs.attribution.least_squares import condition_number
from seedance_obs.attribution.moments import Moments
from seedance_obs.attribution.power_fit import Draw, Hypothesis, PowerFit

FADE_SECONDS = 240.0  # workloads change phase
BASE_FADE_SECONDS = 600.0
BASE_SECONDS = 10.0  # of a board held and inactive, before its base counts as known
OWN_COLUMNS = 8  # accounts told apart; what more there are is learned of as one
TICKS_NEEDED = 60
TICKS_FOR_EACH_UNKNOWN = 5
LEAST_TICKS_BETWEEN_FITS = 10
TICKS_BETWEEN_FITS_EACH = 8  # account: a fit's cost grows with its cube
RESIDUAL_ALLOWED = 0.5
FADE_OF_MOVES = 0.999  # a tick


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
        self._base_watts = 0.0
        self._base_seconds = 0.0
        self._fitted_base: float | None = None
        self._inactive_before = False
        self._ticks = 0  # since the last fit
        self._mean_intensity = 0.0
        self._mean_active = 0.0
        self._condition: float | None = None
        self._residual: float | None = None
        self._hypotheses: list[Hypothesis] = []
        self._relative: dict[Hashable, float] = {}
        self._wanted: dict[Hashable, float] = {}
        self._moved: dict[Hashable, float] = {}

    def learn(
        self,
        activities: Mapping[Hashable, float],
        parts: Mapping[Hashable, float],
        watts: float,
        seconds: float,
    ) -> None:
        """Takes in what a board did during one tick.

        Args:
            activities: Each account's share (0 to 1) of the board's SM time.
            parts: Each account's share (0 to 1) of the board.
            watts: The board's mean power above its floor.
            seconds: How long the tick was; without length it is no observation.
        """
        if seconds <= 0:
            return
        held = sum(parts.values())
        inactive = not any(activities.values())
        if inactive and self._inactive_before and held > 0:
            self._learn_base(max(watts, 0.0) / held, seconds)
        self._inactive_before = inactive
        self._moments.add(activities, parts=held, watts=watts, seconds=seconds)
        self._ticks += 1
        columns = len(self._moments.columns)
        if self._ticks >= max(LEAST_TICKS_BETWEEN_FITS, TICKS_BETWEEN_FITS_EACH * columns):
            self._ticks = 0
            self._fit()

    def weights(
        self, activities: Mapping[Hashable, float], parts: Mapping[Hashable, float]
    ) -> tuple[Mapping[Hashable, float], bool]:
        """The active watts predicted of each account, and whether intensities had a say.

        On no scale in particular. Where nobody is active they are the parts.
        """
        accounts = list(activities) + [account for account in parts if account not in activities]
        active = [activities.get(account, 0.0) for account in accounts]
        held = [parts.get(account, 0.0) for account in accounts]
        if not any(active):
            return dict(zip(accounts, held, strict=True)), False
        ranges = self._ranges(accounts, active, held)
        scale = (ranges.watts - sum(ranges.base)) / sum(active)
        starts = [base + scale * a for base, a in zip(ranges.base, active, strict=True)]
        moves = _agreed_moves(starts, ranges, active, self._open_moves(accounts, starts, ranges))
        self._remember(accounts, moves)
        watts = [start + move for start, move in zip(starts, moves, strict=True)]
        return dict(zip(accounts, watts, strict=True)), bool(self._hypotheses)

    def forget(self, account: Hashable) -> None:
        """Drops an account that has ended; what it showed of the board is kept."""
        self._moments.forget(account)
        for kept in (self._relative, self._wanted, self._moved):
            kept.pop(account, None)
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
        return self._seen_base if self._fitted_base is None else self._fitted_base

    @property
    def _seen_base(self) -> float | None:
        return self._base_watts if self._base_seconds >= BASE_SECONDS else None

    def _fit_base(self) -> float | None:
        fit = PowerFit(self._moments, base_watts=self._seen_base)
        if not fit.columns or fit.active_watts <= 0 or self._moments.observations < TICKS_NEEDED:
            return None
        return fit.fitted_base()

    def _learn_base(self, watts: float, seconds: float) -> None:
        self._base_seconds = min(self._base_seconds + seconds, BASE_FADE_SECONDS)
        self._base_watts += (watts - self._base_watts) * min(seconds / self._base_seconds, 1.0)

    def _fit(self) -> None:
        self._hypotheses, self._relative = [], {}
        self._fitted_base = self._fit_base()
        fit = PowerFit(self._moments, base_watts=self.base_watts)
        if not fit.columns or fit.active_watts <= 0:
            return
        self._mean_active = fit.active_watts
        self._condition = condition_number(fit.gram()) if len(fit.columns) > 1 else None
        needed = max(TICKS_NEEDED, TICKS_FOR_EACH_UNKNOWN * (2 * len(fit.columns) + 1))
        if len(fit.columns) < 2 or self._moments.observations < needed:
            return
        found = fit.hypotheses(self._residual)
        if not found:
            return
        self._residual = min(hypothesis.residual for hypothesis in found)
        if sqrt(self._residual) <= RESIDUAL_ALLOWED * fit.active_watts:
            self._hypotheses = found
            self._mean_intensity = fit.mean_intensity
            self._relative = _relative(fit, found)

    def _open_moves(
        self, accounts: Sequence[Hashable], starts: Sequence[float], ranges: "_Ranges"
    ) -> list[float]:
        """How far each account must go into its range, as far as this agrees with its past.

        Moves one way often find nobody to go the other way, where those back do. So what was moved
        in all stays between nothing and what should have been.
        """
        moves = []
        for account, start, low, high in zip(
            accounts, starts, ranges.low, ranges.high, strict=True
        ):
            move = low - start if start < low else min(high - start, 0.0)
            wanted = FADE_OF_MOVES * self._wanted.get(account, 0.0) + move
            moved = FADE_OF_MOVES * self._moved.get(account, 0.0)
            self._wanted[account] = wanted
            up, down = max(wanted, 0.0) - moved, min(wanted, 0.0) - moved
            moves.append(min(move, max(up, 0.0)) if move > 0 else max(move, min(down, 0.0)))
        return moves

    def _remember(self, accounts: Sequence[Hashable], moves: Sequence[float]) -> None:
        for account, move in zip(accounts, moves, strict=True):
            self._moved[account] = FADE_OF_MOVES * self._moved.get(account, 0.0) + move
        if len(self._moved) > 2 * len(accounts) + OWN_COLUMNS:  # nobody said that they left
            present = set(accounts)
            for kept in (self._wanted, self._moved):
                for account in kept.keys() - present:
                    del kept[account]

    def _ranges(
        self, accounts: Sequence[Hashable], active: Sequence[float], held: Sequence[float]
    ) -> "_Ranges":
        if not self._hypotheses:
            self._mean_intensity = PowerFit(
                self._moments, base_watts=self.base_watts
            ).mean_intensity
        base = (self.base_watts or 0.0) if self._mean_intensity else 0.0
        base_watts = [base * part for part in held]
        views = [
            self._view(hypothesis, accounts, active)
            for hypothesis in self._hypotheses or [Hypothesis({}, 0.0, 0.0)]
        ]
        lows = [min(view) for view in zip(*(view.low for view in views), strict=True)]
        highs = [max(view) for view in zip(*(view.high for view in views), strict=True)]
        owed = [
            watts if activity or self._base_is_owed(account) else 0.0
            for account, activity, watts in zip(accounts, active, base_watts, strict=True)
        ]
        return _Ranges(
            watts=sum(base_watts) + sum(view.watts for view in views) / len(views),
            base=base_watts,
            low=[watts + low for watts, low in zip(owed, lows, strict=True)],
            high=[watts + high for watts, high in zip(base_watts, highs, strict=True)],
        )

    def _base_is_owed(self, account: Hashable) -> bool:
        """Whether an account that rests must pay for the base it holds.

        Not while nothing is known of those who are active by turns: they owe it to each other.
        """
        return bool(self._hypotheses) or account not in self._moments.columns

    def _view(
        self, hypothesis: Hypothesis, accounts: Sequence[Hashable], active: Sequence[float]
    ) -> "_Ranges":
        """Active watts by one hypothesis; an active account it knows nothing of can draw any."""
        stray = hypothesis.stray_watts
        view = _Ranges(stray, [], [], [])
        for account, activity in zip(accounts, active, strict=True):
            draw = hypothesis.draws.get(account)
            if draw is not None:
                watts = draw.at(activity)
                low, high = watts * max(1.0 - draw.error, 0.0), watts * (1.0 + draw.error) + stray
            else:
                watts = (self._mean_intensity or 1.0) * activity  # of unknown scale without base
                low, high = 0.0, inf if activity else stray
            view.watts += watts
            view.low.append(low)
            view.high.append(high)
        return view


@dataclass(slots=True)
class _Ranges:
    watts: float  # of all, at the best guess
    base: list[float]  # of each, by the part held
    low: list[float]
    high: list[float]


def _agreed_moves(
    starts: Sequence[float], ranges: _Ranges, active: Sequence[float], moves: list[float]
) -> list[float]:
    """The moves with gains and losses balanced: of the larger side all go a part of their way.

    But what inactive accounts hold of the base is certain, so somebody pays for it: where too few
    are known to, all those do that are within their range.
    """
    certain = sum(move for move, activity in zip(moves, active, strict=True) if not activity)
    lacking = min(sum(moves), certain)
    if lacking > 0:
        payers = [
            start if low <= start <= high else 0.0
            for start, low, high in zip(starts, ranges.low, ranges.high, strict=True)
        ]
        rate = lacking / sum(payers) if any(payers) else 0.0
        moves = [
            move - min(rate * payer, max(start - low, 0.0)) if payer else move
            for move, payer, start, low in zip(moves, payers, starts, ranges.low, strict=True)
        ]
    return _balanced(moves)


def _balanced(moves: Sequence[float]) -> list[float]:
    gains = sum(move for move in moves if move > 0)
    losses = -sum(move for move in moves if move < 0)
    if gains == losses:
        return list(moves)
    up, down = (losses / gains, 1.0) if gains > losses else (1.0, gains / losses)
    return [move * (up if move > 0 else down) for move in moves]


def _relative(fit: PowerFit, hypotheses: Sequence[Hypothesis]) -> dict[Hashable, float]:
    """Each account's watts per activity over the mean, as near to 1 as all hypotheses allow."""
    found = {}
    for account, activity in zip(fit.accounts, fit.mean_activities, strict=False):
        mean = fit.active_watts * activity / sum(fit.mean_activities)
        ranges = [_range(hypothesis.draws[account], activity) for hypothesis in hypotheses]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        found[account] = max(low, min(high, mean)) / mean
    return found


def _range(draw: Draw, activity: float) -> tuple[float, float]:
    watts = draw.at(activity)
    return watts * max(1.0 - draw.error, 0.0), watts * (1.0 + draw.error)
