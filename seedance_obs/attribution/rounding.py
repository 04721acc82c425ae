"""Rounding that forgets nothing: integers that add up at every step and are right over all steps.

Largest remainders are right once. Repeated every second they would err by up to one unit each
time, and always to the same accounts; so what an account was given too much or too little is
carried to its next part.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import repeat
from operator import add, sub
from typing import Generic, TypeVar

from seedance_obs.attribution.state import State, numbers
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED

Amount = TypeVar("Amount", int, float)


class Carry:
    """Splits whole after whole among accounts that come and go, by largest remainders."""

    def __init__(self, carried: Mapping[Hashable, float] | None = None) -> None:
        self._carried: dict[Hashable, float] = dict(carried or {})
        # The last split's accounts are kept in order: from tick to tick they mostly are the same.
        self._keys: list[Hashable] = []
        self._short: list[float] = []

    def split(self, total: int, exact: Mapping[Hashable, float]) -> dict[Hashable, int]:
        """Integer parts of `total`, each within about one of its exact one over all splits so far.

        Who is due nothing gets nothing and is left out. Of equal remainders the earlier key wins.

        Args:
            total: What is given out, not negative.
            exact: Parts in the same unit, adding up to `total` to within one unit.

        Raises:
            ValueError: there is something to give out and nobody to get it.
        """
        if exact and min(exact.values()) <= 0.0:
            exact = {key: part for key, part in exact.items() if part > 0.0}
        if not exact:
            if total:
                raise ValueError(f"nobody to give {total} to")
            return {}
        keys = list(exact)
        if keys != self._keys:
            self._put_away()
            self._short = list(map(self._carried.get, keys, repeat(0.0)))
        wanted = list(map(add, exact.values(), self._short))
        whole = list(map(int, wanted))
        if min(whole) < 0:
            whole = [max(0, part) for part in whole]
        short = list(map(sub, wanted, whole))
        if rest := total - sum(whole):
            _give(rest, whole, short)
        self._keys, self._short = keys, short
        return dict(zip(keys, whole, strict=True))

    def forget(self, account: Hashable) -> None:
        """Drop what an account is due; it is about one unit at most."""
        self._put_away()
        self._carried.pop(account, None)

    def as_state(self) -> dict[str, float]:
        """What each account is due; accounts must be strings."""
        self._put_away()
        return {str(key): carried for key, carried in self._carried.items()}

    def _put_away(self) -> None:
        self._carried.update(zip(self._keys, self._short, strict=True))
        self._keys, self._short = [], []


def _give(rest: int, whole: list[int], short: list[float]) -> None:
    """Give out `rest` units, to those that are short most first; or take them, from the last."""
    order = sorted(range(len(whole)), key=short.__getitem__, reverse=True)
    while rest > 0:
        for index in order[:rest]:
            whole[index] += 1
            short[index] -= 1.0
        rest -= min(rest, len(order))
    while rest < 0:
        for index in reversed(order):
            if rest < 0 < whole[index]:
                whole[index] -= 1
                short[index] += 1.0
                rest += 1


@dataclass(frozen=True, slots=True)
class Shares(Generic[Amount]):
    """Something divided between what accounts used, what they only held, and nobody."""

    active: Mapping[Hashable, Amount]
    reserved: Mapping[Hashable, Amount]
    unallocated: Amount
    unobserved: Amount


class Columns:
    """Splits wholes first by kind and then by account, so that both add up.

    An account's exact share is kept in both kinds, so the carries of a kind's accounts add up to
    the carry of the kind, less than about one unit.
    """

    def __init__(self, state: State | None = None) -> None:
        state = state or {"kinds": {}, "active": {}, "reserved": {}}
        self._kinds = Carry(numbers(state, "kinds"))
        self._active = Carry(numbers(state, "active"))
        self._reserved = Carry(numbers(state, "reserved"))

    def split(self, total: int, shares: Shares[float]) -> Shares[int]:
        """Integer shares that add up to `total`, near the exact ones over all splits so far."""
        kinds = self._kinds.split(
            total,
            {
                "active": sum(shares.active.values()),
                "reserved": sum(shares.reserved.values()),
                UNALLOCATED: shares.unallocated,
                UNOBSERVED: shares.unobserved,
            },
        )
        return Shares(
            active=self._active.split(kinds.get("active", 0), shares.active),
            reserved=self._reserved.split(kinds.get("reserved", 0), shares.reserved),
            unallocated=kinds.get(UNALLOCATED, 0),
            unobserved=kinds.get(UNOBSERVED, 0),
        )

    def forget(self, account: Hashable) -> None:
        """Drop what an account is due."""
        self._active.forget(account)
        self._reserved.forget(account)

    def as_state(self) -> dict[str, object]:
        """Its carries, as `Columns(state)` takes them; accounts must be strings."""
        return {
            "kinds": self._kinds.as_state(),
            "active": self._active.as_state(),
            "reserved": self._reserved.as_state(),
        }
