"""How a board's energy, time and traffic are divided: the rules, in real numbers.

Energy is idle up to the floor and active above it. The idle part goes to who held the board, by
part; the active part to who used it, by the best weights there are. Time likewise: what a holder
did not use of its part it reserved.
"""

from collections.abc import Hashable, Mapping
from typing import Protocol

from seedance_obs.attribution.energy_deltas import Advance
from seedance_obs.attribution.holdings import Holdings
from seedance_obs.attribution.rounding import Shares

EXCLUSIVE = "exclusive"  # one holder only
ACTIVITY = "activity"  # in proportion to SM activity
INTENSITY = "intensity"  # activity weighted by learned intensities
RESIDENCY = "residency"  # by the part held

Weights = Mapping[Hashable, float]


class Weigher(Protocol):
    """Knows how much the holders of one board burn for what they do."""

    def learn(self, activities: Weights, parts: Weights, watts: float, seconds: float) -> None:
        """Take in the mean power above the floor over some seconds of known activities."""

    def weights(self, activities: Weights, parts: Weights) -> tuple[Weights, bool]:
        """The watts expected of each account, on any scale, and whether anything learned is in."""


class ShapleyValues(Protocol):
    """Knows Shapley values of joint power over what was learned of the board's power curve."""

    def learn(self, total_activity: float, watts: float, seconds: float) -> None:
        """Take in the mean power above the floor at some total activity."""

    def split(self, activities: Weights) -> Weights | None:
        """Each account's value on any scale; None where there is no curve, or too many share."""


def mean_shares(sums_us: Weights, over_us: float) -> dict[Hashable, float]:
    """Sums of shares of time as mean shares (0 to 1)."""
    return {account: sum_us / over_us for account, sum_us in sums_us.items()}


def active_weights(holdings: Holdings, weigh: Weigher | None) -> tuple[Weights, str]:
    """What the active energy goes by, with a positive sum, and the name of that estimator."""
    active_us, part_us = holdings.active_us, holdings.part_us
    if len(part_us) == 1:
        return dict.fromkeys(part_us, 1.0), EXCLUSIVE
    if holdings.unknown or not any(active_us.values()):
        return part_us if any(part_us.values()) else dict.fromkeys(part_us, 1.0), RESIDENCY
    if weigh is not None:
        seen_us = holdings.seen_us
        expected, learned = weigh.weights(
            mean_shares(active_us, seen_us), mean_shares(part_us, seen_us)
        )
        weights = {account: max(0.0, expected.get(account, 0.0)) for account in part_us}
        if sum(weights.values()) > 0.0:
            return weights, INTENSITY if learned else ACTIVITY
    return active_us, ACTIVITY


def energy_shares(
    advance: Advance, holdings: Holdings, *, floor_watts: float | None, weights: Weights
) -> Shares[float]:
    """An advance in millijoules, divided.

    The floor of the time that was seen is idle, and goes by part. Without a floor all that was
    burned while anybody held the board is active; time in which nobody did is taken for
    as costly as the rest.
    """
    unobserved = advance.millijoules * holdings.blind_us / holdings.total_us
    rest = advance.millijoules - unobserved
    if not holdings.part_us:
        return Shares({}, {}, unallocated=rest, unobserved=unobserved)
    seen_us = holdings.seen_us
    reserved: dict[Hashable, float] = {}
    if floor_watts is None:
        unallocated = idle = rest * (seen_us - holdings.held_us) / seen_us
    else:
        floor_mj = floor_watts * advance.covers_us / 1000 * seen_us / holdings.total_us
        idle = min(rest, floor_mj)
        scale = idle / seen_us
        reserved = {account: part_us * scale for account, part_us in holdings.part_us.items()}
        unallocated = holdings.free_us * scale
    active = in_proportion(rest - idle, weights)
    return Shares(active, reserved, unallocated=unallocated, unobserved=unobserved)


def time_shares(holdings: Holdings) -> Shares[float]:
    """The board's time in microseconds: used, held beside that, free, and not seen."""
    seen_us = float(holdings.seen_us)
    active_us: Weights = holdings.active_us
    used_us = sum(active_us.values())
    if used_us > seen_us:
        active_us, used_us = in_proportion(seen_us, active_us), seen_us
    unused = {
        account: part_us - busy_us
        for (account, part_us), busy_us in zip(
            holdings.part_us.items(), active_us.values(), strict=True
        )
        if part_us > busy_us
    }
    spare_us = sum(unused.values()) + holdings.free_us
    scale = (seen_us - used_us) / spare_us if spare_us else 0.0
    return Shares(
        active=active_us,
        reserved={account: spare * scale for account, spare in unused.items()},
        unallocated=holdings.free_us * scale,
        unobserved=float(holdings.blind_us),
    )


def in_proportion(total: float, weights: Weights) -> dict[Hashable, float]:
    """Parts of `total` by weight, of weights with a positive sum."""
    whole = sum(weights.values())
    return {account: weight / whole * total for account, weight in weights.items()}
