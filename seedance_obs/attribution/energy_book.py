"""Books the energy of one board to its accounts, and counts how each millijoule was decided."""

from collections import Counter, defaultdict
from collections.abc import Hashable

from seedance_obs.attribution.energy_deltas import Advance
from seedance_obs.attribution.holdings import Holdings
from seedance_obs.attribution.rounding import Carry, Columns, Shares
from seedance_obs.attribution.sharing import (
    ACTIVITY,
    EXCLUSIVE,
    INTENSITY,
    RESIDENCY,
    ShapleyValues,
    Weigher,
    active_weights,
    energy_shares,
    in_proportion,
    mean_shares,
)
from seedance_obs.attribution.state import State, numbers, table, wholes
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED, Balance

ESTIMATORS = (EXCLUSIVE, ACTIVITY, INTENSITY, RESIDENCY, UNALLOCATED, UNOBSERVED)

Balances = defaultdict[Hashable, Balance]  # born at zero


class EnergyBook:
    """Divides each advance of the meter; see `sharing` for the rules.

    Raises:
        SeedanceError: a state is given that is of another form.
    """

    def __init__(
        self,
        weigh: Weigher | None = None,
        shapley: ShapleyValues | None = None,
        state: State | None = None,
    ) -> None:
        self._weigh = weigh
        self._shapley = shapley
        counted = wholes(state, "estimators") if state else {}
        self._estimators = Counter(dict.fromkeys(ESTIMATORS, 0) | counted)
        self._columns = Columns(table(state, "columns")) if state else Columns()
        self._shapley_carry = Carry(numbers(state, "shapley") if state else None)

    def estimators(self) -> dict[str, int]:
        """Millijoules booked, by how it was decided whose they are."""
        return dict(self._estimators)

    def book(
        self, advance: Advance, holdings: Holdings, floor_watts: float | None, balances: Balances
    ) -> None:
        """Add an advance to the balances of those who held the board while it was burned."""
        if not advance.attributable:
            balances[UNOBSERVED].reserved_mj += advance.millijoules
            self._estimators[UNOBSERVED] += advance.millijoules
            return
        if not advance.millijoules:
            return
        self._learn(advance, holdings, floor_watts)
        weights, estimator = active_weights(holdings, self._weigh)
        shares = energy_shares(advance, holdings, floor_watts=floor_watts, weights=weights)
        energy = self._columns.split(advance.millijoules, shares)
        _add(energy, balances)
        self._count(energy, estimator)
        if self._shapley is not None and energy.active:
            self._book_shapley(self._shapley, energy, shares, holdings, balances)

    def _learn(self, advance: Advance, holdings: Holdings, floor_watts: float | None) -> None:
        """Let the estimators learn from time in which everything is known."""
        watts, seen_us = advance.watts, holdings.seen_us
        if self._weigh is None and self._shapley is None:
            return
        if watts is None or holdings.unknown or holdings.blind_us or not holdings.part_us:
            return
        watts, seconds = max(0.0, watts - (floor_watts or 0.0)), advance.covers_us / 1e6
        activities = mean_shares(holdings.active_us, seen_us)
        if self._weigh is not None:
            self._weigh.learn(activities, mean_shares(holdings.part_us, seen_us), watts, seconds)
        if self._shapley is not None:
            self._shapley.learn(sum(activities.values()), watts, seconds)

    def _count(self, energy: Shares[int], estimator: str) -> None:
        by_part = EXCLUSIVE if estimator == EXCLUSIVE else RESIDENCY
        self._estimators[estimator] += sum(energy.active.values())
        self._estimators[by_part] += sum(energy.reserved.values())
        self._estimators[UNALLOCATED] += energy.unallocated
        self._estimators[UNOBSERVED] += energy.unobserved

    def _book_shapley(
        self,
        shapley: ShapleyValues,
        energy: Shares[int],
        shares: Shares[float],
        holdings: Holdings,
        balances: Balances,
    ) -> None:
        """Divide the same active energy once more; as it was, where no Shapley value is known."""
        exact, values = shares.active, None
        if len(holdings.part_us) > 1 and not holdings.unknown:
            values = shapley.split(mean_shares(holdings.active_us, holdings.seen_us))
        if values is not None and sum(values.values()) > 0.0:
            exact = in_proportion(sum(exact.values()), values)
        total = sum(energy.active.values())
        for account, shapley_mj in self._shapley_carry.split(total, exact).items():
            balances[account].shapley_mj += shapley_mj

    def forget(self, account: Hashable) -> None:
        """Drop what an account is due."""
        self._columns.forget(account)
        self._shapley_carry.forget(account)

    def as_state(self) -> dict[str, object]:
        """Its counts and carries, as it takes them; accounts must be strings."""
        return {
            "estimators": dict(self._estimators),
            "columns": self._columns.as_state(),
            "shapley": self._shapley_carry.as_state(),
        }


def _add(energy: Shares[int], balances: Balances) -> None:
    for account, active_mj in energy.active.items():
        balances[account].active_mj += active_mj
    for account, reserved_mj in energy.reserved.items():
        balances[account].reserved_mj += reserved_mj
    balances[UNALLOCATED].reserved_mj += energy.unallocated
    balances[UNOBSERVED].reserved_mj += energy.unobserved
