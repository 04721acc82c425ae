"""What the accounts of a board were given in all, against what they should have been given.

A tick is split so that what each account was given in all comes to what is likely for all that it
did. So what was split before the board was known is made good by those who gained from it to those
who lost, a little in each tick; a tick alone may say more or less than its account burned in it.

The rule that everything here serves: where the ticks do not say, energy is split by activity. From
that split an account is moved only as far as every likely hypothesis (see `power_fit`) says it
must be, and who need not be moved makes up for it only in part while the hypotheses are unsure.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, sqrt

from seedance_obs.attribution.power_fit import Hypothesis

FADE_SECONDS = 480.0
MADE_GOOD = 0.5  # of an account's draw, at most, in one tick
MADE_UP_FOR = 0.5  # of a move that nobody need answer, while nothing is certain
ABSENT_KEPT = 8
FACTORS_TRIED = 4


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of a board at present.

    Attributes:
        base_watts: What it draws while held and inactive.
        certainty: From 0 to 1, how sure the draws are; as far as 1 the base goes by parts.
        hypotheses: Those that are likely; none while too little was seen.
    """

    base_watts: float = 0.0
    certainty: float = 0.0
    hypotheses: Sequence[Hypothesis] = ()


@dataclass(slots=True)
class _Deeds:
    """What an account did in a tick, or in all ticks, of which old ones count less."""

    part: float = 0.0  # share-seconds held
    activity: float = 0.0  # share-seconds active
    root: float = 0.0  # the same of the activity's root
    plain: float = 0.0  # joules by activity
    shift: float = 0.0  # share-seconds of base that are its own, less those that `plain` has
    given: float = 0.0  # joules

    def followed_by(self, tick: "_Deeds", fade: float) -> "_Deeds":
        return _Deeds(
            fade * self.part + tick.part,
            fade * self.activity + tick.activity,
            fade * self.root + tick.root,
            fade * self.plain + tick.plain,
            fade * self.shift + tick.shift,
            fade * self.given,
        )

    def start(self, trusted_watts: float) -> float:
        """Joules by activity, of which some watts of base go by parts."""
        return max(self.plain + trusted_watts * self.shift, 0.0)


NOTHING = _Deeds()


@dataclass(slots=True)
class Settlement:
    """Splits the active energy of one board, tick after tick."""

    _past: dict[Hashable, _Deeds] = field(default_factory=dict)
    _seconds: float = 0.0  # that the past lasted, faded like it
    _since: float = 0.0  # seconds that passed after it

    def pass_time(self, seconds: float) -> None:
        """Lets the past fade, whether or not what burned meanwhile is split here."""
        self._since += seconds

    def split(
        self,
        activities: Mapping[Hashable, float],
        parts: Mapping[Hashable, float],
        known: Knowledge,
        *,
        watts: float,
        seconds: float,
        final: bool,
    ) -> dict[Hashable, float]:
        """The joules of each account in a tick in which somebody was active.

        Its time has passed. Only what is `final` counts as given; else it was but a question.
        """
        ticks = self._deeds(activities, parts, known.base_watts, watts, seconds)
        fade = exp(-self._since / FADE_SECONDS)
        lasted = fade * self._seconds + seconds
        sums = {
            account: self._past.get(account, NOTHING).followed_by(tick, fade)
            for account, tick in ticks.items()
        }
        joules = _split(list(ticks.values()), sums, known, lasted, watts * seconds)
        if final:
            self._seconds, self._since = lasted, 0.0
            for deeds, given in zip(sums.values(), joules, strict=True):
                deeds.given += given
            self._past |= sums
            if len(self._past) > 2 * len(sums) + ABSENT_KEPT:  # nobody said that they left
                self._past = sums
        return dict(zip(ticks, joules, strict=True))

    def forget(self, account: Hashable) -> None:
        """Drops an account that has ended, with what it may have been given too much."""
        self._past.pop(account, None)

    def _deeds(
        self,
        activities: Mapping[Hashable, float],
        parts: Mapping[Hashable, float],
        base_watts: float,
        watts: float,
        seconds: float,
    ) -> dict[Hashable, _Deeds]:
        """What everybody did; who was never active burned its part of the base and no more."""
        accounts = dict.fromkeys([*activities, *parts])
        resting = {
            account: parts.get(account, 0.0)
            for account in accounts
            if not activities.get(account) and not self._past.get(account, NOTHING).activity
        }
        held, rested = sum(parts.values()), sum(resting.values())
        base_watts = min(base_watts, watts / held) if held else 0.0
        total, shared = sum(activities.values()), watts - base_watts * rested
        deeds: dict[Hashable, _Deeds] = {}
        for account in accounts:
            part, activity = parts.get(account, 0.0), activities.get(account, 0.0)
            share = activity / total
            at_rest = account in resting
            deeds[account] = _Deeds(
                part=part * seconds,
                activity=activity * seconds,
                root=sqrt(activity) * seconds,
                plain=(base_watts * part if at_rest else share * shared) * seconds,
                shift=0.0 if at_rest else (part - (held - rested) * share) * seconds,
            )
        return deeds


def _split(
    ticks: Sequence[_Deeds],
    sums: Mapping[Hashable, _Deeds],
    known: Knowledge,
    lasted: float,
    joules: float,
) -> list[float]:
    """What each draws in the tick, and some of what is still open between it and the others."""
    trusted = known.certainty * known.base_watts
    starts = [deeds.start(trusted) for deeds in sums.values()]
    lows, highs = _ranges(sums, known, lasted)
    goals = _goals(starts, lows, highs, known.certainty)
    drawn = [
        tick.start(trusted) * goal / start if start > 0 else 0.0
        for tick, start, goal in zip(ticks, starts, goals, strict=True)
    ]
    scale = joules / (sum(drawn) or 1.0)
    drawn = [scale * draw for draw in drawn]
    due = [
        max(min(goal - deeds.given - draw, MADE_GOOD * draw), -MADE_GOOD * draw)
        for goal, deeds, draw in zip(goals, sums.values(), drawn, strict=True)
    ]
    return [draw + move for draw, move in zip(drawn, _balanced(due), strict=True)]


def _ranges(
    sums: Mapping[Hashable, _Deeds], known: Knowledge, lasted: float
) -> tuple[list[float], list[float]]:
    """The joules that are likely for all that each did, at the least and at the most.

    An active account that a hypothesis knows nothing of can draw any.
    """
    lows, highs = [], []
    for account, deeds in sums.items():
        low, high = inf if known.hypotheses else 0.0, 0.0
        for hypothesis in known.hypotheses:
            draw = hypothesis.draws.get(account)
            stray = hypothesis.stray_watts * lasted
            if draw is None:
                low, high = 0.0, max(high, inf if deeds.activity else stray)
            else:
                drawn = draw.linear * deeds.activity + draw.root * deeds.root
                low = min(low, drawn * max(1.0 - draw.error, 0.0))
                high = max(high, drawn * (1.0 + draw.error) + stray)
        if not known.hypotheses and deeds.activity:
            high = inf
        base = known.base_watts * deeds.part
        lows.append(base + low)
        highs.append(base + high)
    return lows, highs


def _goals(
    starts: Sequence[float], lows: Sequence[float], highs: Sequence[float], certainty: float
) -> list[float]:
    """The starts moved into their ranges, with the same sum.

    What is certain moves everybody else too. Else it is partly left to gains and losses that
    answer each other.
    """
    share = max(certainty, MADE_UP_FOR)
    moves = [
        max(low, min(high, start)) - start
        for start, low, high in zip(starts, lows, highs, strict=True)
    ]
    return [
        share * made_up + (1.0 - share) * (start + move)
        for made_up, start, move in zip(
            _scaled(starts, lows, highs), starts, _balanced(moves), strict=True
        )
    ]


def _scaled(starts: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> list[float]:
    """The starts times a common factor, each within its range, with nearly the same sum."""
    whole = sum(starts)
    goals, factor = list(starts), 1.0
    for _ in range(FACTORS_TRIED):
        goals, free = [], 0.0
        for start, low, high in zip(starts, lows, highs, strict=True):
            goal = factor * start
            if low < goal < high:
                free += start
            goals.append(max(low, min(high, goal)))
        missing = whole - sum(goals)
        if free <= 0 or abs(missing) <= 1e-6 * whole:
            break
        factor = max(factor + missing / free, 0.0)
    return goals


def _balanced(moves: Sequence[float]) -> list[float]:
    """Gains and losses made equal: of the larger side all go a part of their way."""
    gains = sum(move for move in moves if move > 0)
    losses = -sum(move for move in moves if move < 0)
    if gains == losses:
        return list(moves)
    up, down = (losses / gains, 1.0) if gains > losses else (1.0, gains / losses)
    return [move * (up if move > 0 else down) for move in moves]
