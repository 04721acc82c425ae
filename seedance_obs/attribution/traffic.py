"""Whose bytes passed over which class of link."""

from collections import defaultdict
from collections.abc import Hashable

from seedance_obs.attribution.holdings import Holdings
from seedance_obs.attribution.rounding import Carry
from seedance_obs.attribution.sharing import active_weights, in_proportion
from seedance_obs.attribution.state import State, numbers
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED, Balance, Tick


class Traffic:
    """Splits the bytes of each kind of link among a board's holders, to the byte."""

    def __init__(self, state: State | None = None) -> None:
        self._carries = {kind: Carry(numbers(state or {}, kind)) for kind in state or ()}

    def book(self, tick: Tick, now: Holdings, balances: defaultdict[Hashable, Balance]) -> None:
        """Add a tick's bytes to the balances of those who held the board, by link class.

        They go by activity, else by part. Bytes whose holder has no class of that kind, or that
        nobody held, stay with `UNALLOCATED` under the kind's name; those of unknown holders with
        `UNOBSERVED`.
        """
        if not any(tick.traffic.values()):
            return
        weights = active_weights(now, None)[0] if now.part_us else {}
        nobody = UNOBSERVED if now.blind_us else UNALLOCATED
        classes = {holder.account: holder.links for holder in tick.holders or ()}
        for kind, passed in tick.traffic.items():
            carry = self._carries.setdefault(kind, Carry())
            exact = in_proportion(passed, weights or {nobody: 1.0})
            for account, part in carry.split(passed, exact).items():
                link = classes.get(account, {}).get(kind)
                payer = account if link else nobody
                balances[payer].link_bytes[link or kind] += part

    def forget(self, account: Hashable) -> None:
        """Drop what an account is due."""
        for carry in self._carries.values():
            carry.forget(account)

    def as_state(self) -> dict[str, object]:
        """Its carries, as `Traffic(state)` takes them; accounts must be strings."""
        return {kind: carry.as_state() for kind, carry in self._carries.items()}
