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
MADE_GOOD = 0.5  # in one tick, at most: of what an account draws and of the base it holds
MADE_UP_FOR = 0.3  # of a move that nobody need answer, while nothing is certain
FACTORS_TRIED = 4
SUM_ERROR = 1e-4  # of the goals, which are only aimed at


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of a board at present."""

    base_watts: float = 0.0  # what it draws, wholly held, while nobody is active
    certainty: float = 0.0  # 0 to 1: how sure the draws are, and so how far base goes by parts
    hypotheses: Sequence[Hypothesis] = ()  # the likely ones; none while too little was seen


@dataclass(slots=True)
class _Deeds:
    """What an account did in all ticks, of which old ones count less."""

    part: float = 0.0  # share-seconds held
    activity: float = 0.0  # share-seconds active
    root: float = 0.0  # the same of the activity's root
    plain: float = 0.0  # joules by activity
    shift: float = 0.0  # share-seconds of base that are its own, less those that `plain` has
    given: float = 0.0  # joules


NOTHING = _Deeds()


@dataclass(slots=True)
class Settlement:
    """Splits the active energy of one board, tick after tick."""

    _past: dict[Hashable, _Deeds] = field(default_factory=dict)  # of those in the last tick
    _seconds: float = 0.0  # that the past lasted, faded like it
    _since: float = 0.0  # seconds that passed after it

    def pass_time(self, seconds: float) -> None:
        """Let the past fade, whether or not what burned meanwhile is split here."""
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
        for account in [a for a in self._past if a not in activities and a not in parts]:
            self.forget(account)
        fade = exp(-self._since / FADE_SECONDS)
        lasted = fade * self._seconds + seconds
        tick = _Tick(activities, parts, watts, seconds, self._never_active(activities, parts))
        sums, firsts = _followed(self._past, fade, tick, known)
        goals = _goals(sums, known, lasted)
        joules = _split(tick, sums, firsts, goals, known)
        if final:
            for deeds, given in zip(sums.values(), joules, strict=True):
                deeds.given += given
            self._past, self._seconds, self._since = sums, lasted, 0.0
        return dict(zip(sums, joules, strict=True))

    def forget(self, account: Hashable) -> None:
        """Let an account go, and all that was open: the others do not owe it to each other."""
        if account in self._past:
            self._past, self._seconds = {}, 0.0

    def _never_active(
        self, activities: Mapping[Hashable, float], parts: Mapping[Hashable, float]
    ) -> dict[Hashable, float]:
        """The parts of those that hold the board and do nothing, as long as is known."""
        past = self._past
        return {
            account: part
            for account, part in parts.items()
            if not activities.get(account) and not past.get(account, NOTHING).activity
        }


@dataclass(frozen=True, slots=True)
class _Tick:
    activities: Mapping[Hashable, float]
    parts: Mapping[Hashable, float]
    watts: float
    seconds: float
    never_active: Mapping[Hashable, float]


def _followed(
    past: Mapping[Hashable, _Deeds], fade: float, tick: _Tick, known: Knowledge
) -> tuple[dict[Hashable, _Deeds], list[float]]:
    """The deeds of all with a tick's added, and the joules that each drew in it at first sight.

    That is by activity, with the base by parts as far as it is certain. Who was never active drew
    its part of the base and no more.
    """
    parts, seconds, total = tick.parts, tick.seconds, sum(tick.activities.values())
    held, resting = sum(parts.values()), sum(tick.never_active.values())
    base = min(known.base_watts, tick.watts / held) if held else 0.0
    shared, trusted = tick.watts - base * resting, known.certainty * known.base_watts
    sums, starts = {}, []
    for account in dict.fromkeys([*tick.activities, *parts]):
        part, activity = parts.get(account, 0.0), tick.activities.get(account, 0.0)
        share = activity / total
        if account in tick.never_active:
            plain, shift = base * part * seconds, 0.0
        else:
            plain, shift = share * shared * seconds, (part - (held - resting) * share) * seconds
        old = past.get(account, NOTHING)
        sums[account] = _Deeds(
            fade * old.part + part * seconds,
            fade * old.activity + activity * seconds,
            fade * old.root + sqrt(activity) * seconds,
            fade * old.plain + plain,
            fade * old.shift + shift,
            fade * old.given,
        )
        starts.append(max(plain + trusted * shift, 0.0))
    return sums, starts


def _split(
    tick: _Tick,
    sums: Mapping[Hashable, _Deeds],
    firsts: Sequence[float],
    goals: Sequence[tuple[float, float]],
    known: Knowledge,
) -> list[float]:
    """What each draws in the tick, and some of what is still open between it and the others."""
    drawn = [
        first * goal / start if start > 0 else 0.0
        for first, (start, goal) in zip(firsts, goals, strict=True)
    ]
    scale = tick.watts * tick.seconds / (sum(drawn) or 1.0)
    base = known.base_watts * tick.seconds
    due, limits = [], []
    for (account, deeds), draw, (_, goal) in zip(sums.items(), drawn, goals, strict=True):
        most = MADE_GOOD * scale * draw
        due.append(goal - deeds.given - scale * draw)
        limits.append((-most, most + MADE_GOOD * base * tick.parts.get(account, 0.0)))
    moves = _balanced(_clamped(due, limits))
    return [scale * draw + move for draw, move in zip(drawn, moves, strict=True)]


def _goals(
    sums: Mapping[Hashable, _Deeds], known: Knowledge, lasted: float
) -> list[tuple[float, float]]:
    """What each drew in all at first sight, and what it should have been given by now.

    That is the first moved into its likely range, with the same sum of all. What is certain moves
    everybody else too; else it is partly left to gains and losses that answer each other.
    """
    trusted = known.certainty * known.base_watts
    starts = [max(deeds.plain + trusted * deeds.shift, 0.0) for deeds in sums.values()]
    ranges = _ranges(sums, known, lasted)
    nearest = _clamped(starts, ranges)
    if nearest == starts:
        return list(zip(starts, starts, strict=True))
    moves = _balanced([near - start for near, start in zip(nearest, starts, strict=True)])
    share = max(known.certainty, MADE_UP_FOR)
    return [
        (start, share * made_up + (1.0 - share) * (start + move))
        for start, move, made_up in zip(starts, moves, _scaled(starts, ranges), strict=True)
    ]


def _ranges(
    sums: Mapping[Hashable, _Deeds], known: Knowledge, lasted: float
) -> list[tuple[float, float]]:
    """The joules that are likely for all that each did, at the least and at the most."""
    strays = [lasted * hypothesis.stray_watts for hypothesis in known.hypotheses]
    ranges = []
    for account, deeds in sums.items():
        base = known.base_watts * deeds.part
        low, high = (inf, 0.0) if strays else _unknown(deeds)
        for hypothesis, stray in zip(known.hypotheses, strays, strict=True):
            draw = hypothesis.draws.get(account)
            if draw is None:
                least, most = _unknown(deeds)
            else:
                drawn = draw.linear * deeds.activity + draw.root * deeds.root
                least, most = drawn - drawn * draw.error, drawn + drawn * draw.error
            low = least if least < low else low
            high = most + stray if most + stray > high else high
        ranges.append((base + low if low > 0 else base, base + high))
    return ranges


def _unknown(deeds: _Deeds) -> tuple[float, float]:
    """Beyond the base: who was active, and is not known, can have drawn any."""
    return 0.0, inf if deeds.activity else 0.0


def _scaled(starts: Sequence[float], ranges: Sequence[tuple[float, float]]) -> list[float]:
    """The starts times a common factor, each within its range, with nearly the same sum."""
    whole = sum(starts)
    scaled, goals = list(starts), _clamped(starts, ranges)
    factor = 1.0
    for _ in range(FACTORS_TRIED):
        free = sum([x for x, goal, aim in zip(starts, goals, scaled, strict=True) if goal == aim])
        missing = whole - sum(goals)
        if free <= 0 or abs(missing) <= SUM_ERROR * whole:
            break
        factor = max(factor + missing / free, 0.0)
        scaled = [factor * start for start in starts]
        goals = _clamped(scaled, ranges)
    return goals


def _clamped(values: Sequence[float], ranges: Sequence[tuple[float, float]]) -> list[float]:
    return [
        low if value < low else high if value > high else value
        for value, (low, high) in zip(values, ranges, strict=True)
    ]


def _balanced(moves: Sequence[float]) -> list[float]:
    """Gains and losses made equal: of the larger side all go a part of their way."""
    gains = sum([move for move in moves if move > 0])
    losses = gains - sum(moves)
    if not gains or losses <= 0:
        return [0.0] * len(moves)
    up, down = (losses / gains, 1.0) if gains > losses else (1.0, gains / losses)
    return [move * (up if move > 0 else down) for move in moves]
