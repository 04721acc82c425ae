"""How much slower a tenant gets for each unit of its neighbours' pressure on a shared segment.

The score is `S = clip((1 - med_H p / med_L p) / (mean_H c - mean_L c), 0, 1)`: the share of its
progress p that a tenant loses, per unit of pressure c, which is its co-tenants' bytes over the
capacity of the segment. L are the windows with c <= 0.2, H those with c >= 0.5. It is a slope and
not a correlation: that measures how certain an effect is, and calls one of 1 % perfect. It refers
to progress as it is in L: where neighbours never rest, that is less than without neighbours, and S
is a little more than the truth (0.62 for 0.6, at a pressure of 0.05).

The p-value comes from circular shifts of c. Chance is only one of the things that look like
sensitivity, so the verdict asks more (see `sensitivity_doubts`): that most bursts of pressure show
the effect, each against the calm around it; that they do not come by the clock; that progress does
not fall before the pressure comes; and that the tenant does not send just as little, or as much,
without pressure, at no more progress. What fails this is an `association`.

What cannot be told from means of 30 s: whether neighbours slow a tenant, or take up within seconds,
and each time, what it leaves when its own load falls. Both read `significant`. Nor can a tenant
that neighbours slow by the clock be told from one that shares their phases: both read
`association`.
"""

from seedance_obs.bandwidth.circular_shifts import p_value
from seedance_obs.bandwidth.reading import Sensitivity
from seedance_obs.bandwidth.sensitivity_contrast import Contrast, contrast
from seedance_obs.bandwidth.sensitivity_doubts import is_doubtful
from seedance_obs.bandwidth.sensitivity_history import History

LEAST_TO_DECIDE = 240  # windows: in two hours there are bursts enough to judge by
SIGNIFICANT = 0.05


def sensitivity(history: History, proxy: str) -> Sensitivity | None:
    """The score of what was seen so far, and what to think of it.

    Args:
        history: The windows that count.
        proxy: What its progress was taken from; passed on.

    Returns:
        None where fewer than 10 windows had little pressure, or fewer than 10 much, and where the
        tenant got nothing done with little pressure.
    """
    found = contrast(history)
    if found is None:
        return None
    p = p_value(history.progress, found.low, found.high)
    return Sensitivity(
        score=min(1.0, max(0.0, found.drop / found.rise)),
        p_value=p,
        low=len(found.low),
        high=len(found.high),
        windows=len(history),
        verdict=_verdict(found, p),
        proxy=proxy,
    )


def _verdict(found: Contrast, p: float) -> str:
    if len(found.history) < LEAST_TO_DECIDE:
        return "undecided"
    if found.drop <= 0 or p > SIGNIFICANT:
        return "none"
    return "association" if is_doubtful(found) else "significant"
