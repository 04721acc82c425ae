"""The account of one board: who burned, held and moved how much, in integers that add up.

At every tick the energies of all accounts add up to what the energy counter advanced, and their
times to what passed, exactly; each account is within about a millijoule of its exact share however
often the board was looked at.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping

from seedance_obs.attribution.energy_book import EnergyBook
from seedance_obs.attribution.energy_deltas import EnergyMeter
from seedance_obs.attribution.floor import Floor
from seedance_obs.attribution.holdings import Holdings
from seedance_obs.attribution.rounding import Columns
from seedance_obs.attribution.sharing import (
    ShapleyValues,
    Weigher,
    time_shares,
)
from seedance_obs.attribution.state import (
    State,
    balance_as_state,
    balance_from,
    optional_whole,
    table,
)
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED, Balance, Tick
from seedance_obs.attribution.traffic import Traffic


class BoardAccount:
    """Balances that only grow, one for each account that ever held the board.

    Args:
        gap_us: Longer than this without a tick, nobody knows who it was.
        counter_gap_us: So long may the energy counter stand still, and what was seen meanwhile
            still tells who it was; `gap_us` where that is longer. A page may be collected seldom.
        floor_watts: What the board draws when idle, until it was measured.
        weigh: Predicts what each account burns; without it active energy goes by activity.
        shapley: Also divides active energy by Shapley value.
    """

    def __init__(
        self,
        *,
        gap_us: int,
        counter_gap_us: int = 0,
        floor_watts: float | None = None,
        weigh: Weigher | None = None,
        shapley: ShapleyValues | None = None,
    ) -> None:
        self._gap_us = gap_us
        self._counter_gap_us = max(gap_us, counter_gap_us)
        self._meter = EnergyMeter(gap_us=gap_us, counter_gap_us=self._counter_gap_us)
        self._floor = Floor(floor_watts)
        self._seen_at_us: int | None = None
        self._pending = Holdings()  # since the advance before
        self._balances = defaultdict[Hashable, Balance](
            Balance, {UNALLOCATED: Balance(), UNOBSERVED: Balance()}
        )
        self._energy = EnergyBook(weigh, shapley)
        self._time = Columns()
        self._traffic = Traffic()

    @property
    def energy_source(self) -> str | None:
        """`counter` or `integrated_power`; None while nothing is known of energy."""
        return self._meter.source

    @property
    def floor_watts(self) -> float | None:
        """The idle draw in use; None while unknown, when all energy of a held board is active."""
        return self._floor.watts

    @property
    def floor_source(self) -> str | None:
        """Where the floor is from: `measured`, `configured`, `same_model`, or None."""
        return self._floor.source

    def lend_floor(self, watts: float | None) -> None:
        """Take what other boards of its model draw when idle, until it is measured here."""
        self._floor.lent_watts = watts

    @property
    def counter_restarts(self) -> int:
        """How often the energy counter began anew, each time losing what nobody had read."""
        return self._meter.restarts

    @property
    def implausible(self) -> int:
        """How many advances were more than the board can draw."""
        return self._meter.implausible

    def balances(self) -> Mapping[Hashable, Balance]:
        """A copy of every balance, from the first sight of its account until it is forgotten."""
        return {account: balance.copy() for account, balance in self._balances.items()}

    def holds(self, account: Hashable) -> bool:
        """Whether there is a balance of this account."""
        return account in self._balances

    def estimators(self) -> Mapping[str, int]:
        """Millijoules booked, by how it was decided whose they are; they add up to all booked."""
        return self._energy.estimators()

    def forget(self, account: Hashable) -> Balance:
        """Let an account go and give out its last balance; an empty one if there was none."""
        for column in (self._energy, self._time, self._traffic):
            column.forget(account)
        return self._balances.pop(account, Balance())

    def advance(self, tick: Tick) -> None:
        """Book what passed since the tick before; of the first tick, only that it was seen."""
        elapsed_us = self._elapsed_us(tick.at_us)
        gap = elapsed_us > self._gap_us
        now = Holdings.of(tick, elapsed_us or 1, gap=gap)
        self._floor.see(tick.at_us, empty=not gap and tick.holders is not None and not now.part_us)
        if elapsed_us:
            self._book_time(elapsed_us, now)
        self._book_memory(tick, 0 if gap else elapsed_us)
        self._traffic.book(tick, now, self._balances)
        if elapsed_us:
            self._keep_pending(now)
        advance = self._meter.advance(tick)
        if advance is not None:
            if advance.attributable:
                self._floor.learn(advance, tick.power_limit_watts)
            holdings = self._pending if self._pending.total_us else now
            self._energy.book(advance, holdings, self._floor.watts, self._balances)
            self._pending = Holdings()

    def _elapsed_us(self, at_us: int) -> int:
        before_us = at_us if self._seen_at_us is None else self._seen_at_us
        self._seen_at_us = max(at_us, before_us)
        return self._seen_at_us - before_us

    def _keep_pending(self, now: Holdings) -> None:
        """Remember who may have to pay for the counter's next advance, but not for ever."""
        pending = self._pending.joined(now)
        if pending.total_us > self._counter_gap_us:
            pending = Holdings(blind_us=pending.total_us, total_us=pending.total_us)
        self._pending = pending

    def _book_time(self, elapsed_us: int, now: Holdings) -> None:
        time, balances = self._time.split(elapsed_us, time_shares(now)), self._balances
        for account, active_us in time.active.items():
            balances[account].active_us += active_us
        for account, reserved_us in time.reserved.items():
            balances[account].reserved_us += reserved_us
        balances[UNALLOCATED].reserved_us += time.unallocated
        balances[UNOBSERVED].reserved_us += time.unobserved

    def _book_memory(self, tick: Tick, elapsed_us: int) -> None:
        balances = self._balances
        for holder in tick.holders or ():
            balances[holder.account].memory_byte_us += holder.memory_bytes * elapsed_us

    def as_state(self) -> dict[str, object]:
        """Everything but what `weigh` and `shapley` learned, in plain values of JSON.

        Accounts must be strings.
        """
        return {
            "seen_at_us": self._seen_at_us,
            "balances": {
                str(account): balance_as_state(balance)
                for account, balance in self._balances.items()
            },
            "pending": self._pending.as_state(),
            "meter": self._meter.as_state(),
            "floor": self._floor.as_state(),
            "energy": self._energy.as_state(),
            "time": self._time.as_state(),
            "traffic": self._traffic.as_state(),
        }

    @classmethod
    def from_state(
        cls,
        state: State,
        *,
        gap_us: int,
        counter_gap_us: int = 0,
        floor_watts: float | None = None,
        weigh: Weigher | None = None,
        shapley: ShapleyValues | None = None,
        same_boot: bool = True,
    ) -> "BoardAccount":
        """The account as it was kept, which goes on as if it had never stopped.

        After a reboot (`same_boot` False) the clock and the counter have begun anew: balances and
        the floor stay, and the next tick is a first one.

        Raises:
            SeedanceError: the state is of another form.
        """
        board = cls(
            gap_us=gap_us,
            counter_gap_us=counter_gap_us,
            floor_watts=floor_watts,
            weigh=weigh,
            shapley=shapley,
        )
        kept = table(state, "balances")
        board._balances |= {account: balance_from(kept, account) for account in kept}
        board._meter.restore(table(state, "meter"), same_boot=same_boot)
        board._floor = Floor.from_state(
            table(state, "floor"), configured_watts=floor_watts, same_boot=same_boot
        )
        board._energy = EnergyBook(weigh, shapley, table(state, "energy"))
        board._time = Columns(table(state, "time"))
        board._traffic = Traffic(table(state, "traffic"))
        if same_boot:
            board._seen_at_us = optional_whole(state, "seen_at_us")
            board._pending = Holdings.from_state(table(state, "pending"))
        return board
