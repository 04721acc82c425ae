"""Exact Shapley values of a board's active power: each coalition's cost is asked for once."""

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from math import comb
from typing import TypeVar

from seedance_obs.attribution.power_curve import PowerCurve

Key = TypeVar("Key", bound=Hashable)

SHARERS = 7  # MIG's slices: 128 coalitions
ROUNDING = 1e-9  # of the total, by which the values may miss it


def shapley_values(
    activities: Mapping[Key, float], power: Callable[[float], float]
) -> dict[Key, float]:
    """What each sharer adds to the power of a coalition, averaged over all orders of arrival.

    `phi_i = sum over S without i of |S|! (n-|S|-1)! / n! x (f(S + i) - f(S))`, where f(S) is
    `power` at the summed activity of S, less `power(0)`: what burns without anybody is nobody's.
    The values are in the unit of `power` and add up to `power(all) - power(0)`.

    Raises:
        ValueError: more than 7 sharers.
    """
    count = len(activities)
    if count > SHARERS:
        raise ValueError(f"at most {SHARERS} can share by Shapley value, not {count}")
    costs = _coalition_costs(list(activities.values()), power)
    weights = _weights(count)
    values = {}
    for i, key in enumerate(activities):
        bit = 1 << i
        values[key] = sum(
            weight * (costs[mask | bit] - costs[mask])
            for mask, weight in enumerate(weights)
            if not mask & bit
        )
    whole = costs[-1]
    scale = max(map(abs, costs))
    assert abs(sum(values.values()) - whole) <= ROUNDING * scale, "Shapley values miss the total"
    return values


class ShapleySplit:
    """Splits one board's active power by Shapley value over its learned power curve."""

    def __init__(self) -> None:
        self.curve = PowerCurve()

    def learn(self, total_activity: float, watts: float, seconds: float) -> None:
        """Take in one tick; see `PowerCurve.learn`."""
        self.curve.learn(total_activity, watts, seconds)

    def split(self, activities: Mapping[Hashable, float]) -> Mapping[Hashable, float] | None:
        """The watts due by each sharer.

        None while the curve is unknown, where more than 7 are active and where nobody is. Who is
        inactive owes 0 and is not counted.
        """
        active = {account: activity for account, activity in activities.items() if activity > 0}
        if not active or len(active) > SHARERS or not self.curve.identified:
            return None
        return dict.fromkeys(activities, 0.0) | shapley_values(active, self.curve.at)


def _coalition_costs(activities: list[float], power: Callable[[float], float]) -> list[float]:
    """The cost of every coalition; bit i of the index says whether i is in it."""
    sums = [0.0]
    for activity in activities:
        sums += [activity + others for others in sums]
    at_rest = power(0.0)
    return [power(total) - at_rest for total in sums]


@cache
def _weights(count: int) -> tuple[float, ...]:
    """Of each coalition that somebody joins: the chance that just those came before."""
    return tuple(
        1.0 / (count * comb(count - 1, size)) if size < count else 0.0
        for size in (mask.bit_count() for mask in range(1 << count))
    )
