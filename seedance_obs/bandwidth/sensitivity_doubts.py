"""What else than its neighbours' pressure may have slowed a tenant down.

Each function says whether it must be doubted that pressure was the cause.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median, quantiles

from seedance_obs.bandwidth.segment_windows import WINDOW_SECONDS
from seedance_obs.bandwidth.sensitivity_contrast import Contrast
from seedance_obs.bandwidth.three_slopes import three_slopes

NEAR = 10  # windows: how far from a burst it is compared with
LEAST_BURSTS = 6
AGREEING = 0.75  # of the bursts
HALF = 0.5  # of the drop
REGULAR = 0.3  # of the median interval
FORETOLD = 0.15  # of the whole effect: beyond what windows that are not quite aligned explain
AHEAD = 0.25
LEAST_STRETCHES = 60
LEAST_SENT = 10  # windows
LEAST_ALIKE = 5
LEAST_ALIKE_SHARE = 0.025
MORE_SENT = 1.2


def is_doubtful(found: Contrast) -> bool:
    """Whether another cause is as likely."""
    return (
        is_not_seen_in_bursts(found)
        or is_clockwork(found)
        or is_foretold(found)
        or is_own_load(found)
    )


def bursts(found: Contrast) -> list[list[int]]:
    """The windows of much pressure, divided where there was little in between."""
    calm = set(found.low)
    marked = sorted([*found.low, *found.high])
    return [list(run) for is_calm, run in groupby(marked, calm.__contains__) if not is_calm]


def is_not_seen_in_bursts(found: Contrast) -> bool:
    """Whether single bursts, each against the calm just before and after it, do not show it.

    So a trend over the hours, one fall for good, or a few coincidences are no evidence.
    """
    drops = [drop for burst in bursts(found) if (drop := _drop_in(burst, found)) is not None]
    if len(drops) < LEAST_BURSTS or median(drops) < HALF * found.drop:
        return True
    return sum(drop > 0 for drop in drops) < AGREEING * len(drops)


def _drop_in(burst: Sequence[int], found: Contrast) -> float | None:
    """The drop in one burst; None where no calm is near that the tenant got on in."""
    at, progress = found.history.at, found.history.progress
    begin = at[burst[0]] - NEAR * WINDOW_SECONDS
    end = at[burst[-1]] + NEAR * WINDOW_SECONDS
    around = [progress[n] for n in found.low if begin <= at[n] <= end]
    usual = median(around) if around else 0.0
    return 1 - median(progress[n] for n in burst) / usual if usual > 0 else None


def is_clockwork(found: Contrast) -> bool:
    """Whether bursts begin at intervals so even that both tenants may go by the same clock.

    A few bursts in between do not hide it: the middle half of the intervals must be as long as
    their median, within 15 % or so to both sides.
    """
    begins = [found.history.at[burst[0]] for burst in bursts(found)]
    intervals = [later - sooner for sooner, later in pairwise(begins)]
    if len(intervals) < 2:
        return False
    lower, middle, upper = quantiles(intervals, method="inclusive")
    return upper - lower <= REGULAR * middle


def is_foretold(found: Contrast) -> bool:
    """Whether progress goes with the pressure that is yet to come, beyond that of its own window.

    A cause does not follow its effect (C. Sims, Money, Income, and Causality, 1972): in a fit of
    progress to the pressure before, in and after each window, that after it should have no part,
    nor should progress go with what comes rather than with what was. Neighbours that react to the
    tenant are seen by it once they take some ten seconds, or do not react each time alike.
    """
    rows = _stretches(found)
    slopes = three_slopes(rows) if len(rows) >= LEAST_STRETCHES else None
    whole = sum(slopes) if slopes else 0.0
    if slopes is None or whole >= 0:
        return True
    before, _, after = (slope / whole for slope in slopes)
    return after > FORETOLD or after - before > AHEAD


def _stretches(found: Contrast) -> list[tuple[float, float, float, float]]:
    """Progress, and the pressure before, in and after: of windows with two next to each side.

    Progress beyond both levels is held at half a drop from them: it is not what is compared.
    """
    at, c = found.history.at, found.history.pressure
    margin = HALF * (found.usual - found.pressed)
    worst, best = found.pressed - margin, found.usual + margin
    return [
        (min(best, max(worst, p)), (c[n - 1] + c[n - 2]) / 2, c[n], (c[n + 1] + c[n + 2]) / 2)
        for n, p in enumerate(found.history.progress)
        if 2 <= n < len(at) - 2 and at[n + 2] - at[n - 2] < 5 * WINDOW_SECONDS
    ]


def is_own_load(found: Contrast) -> bool:
    """Whether the tenant does something else under pressure, by what it sends itself.

    Calm windows in which it sent as little (or as much) as it does under pressure must show more
    progress than those under pressure. Where there are hardly any, sending less is no doubt:
    pressure makes a tenant send less. But it makes none send more. No doubt either where it is not
    known what the tenant sent.
    """
    own, progress = found.history.own, found.history.progress
    calm = [(sent, progress[n]) for n in found.low if (sent := own[n]) is not None]
    pressed = [(sent, progress[n]) for n in found.high if (sent := own[n]) is not None]
    if min(len(calm), len(pressed)) < LEAST_SENT:
        return False
    usually_sent = median(sent for sent, _ in calm)
    then_sent = median(sent for sent, _ in pressed)
    sign = 1 if then_sent > usually_sent else -1
    alike = [p for sent, p in calm if sign * sent >= sign * then_sent]
    if len(alike) < max(LEAST_ALIKE, LEAST_ALIKE_SHARE * len(calm)):
        return then_sent > MORE_SENT * usually_sent
    level = median(alike)
    return level - median(p for _, p in pressed) < HALF * found.drop * level
