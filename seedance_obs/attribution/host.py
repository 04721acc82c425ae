"""The account of a host's own energy: CPU packages and memory, by CPU time.

The busy part of the time takes that part of the energy (the rule of Kepler's node monitor): each
workload by its CPU time, `SYSTEM` by what else was busy. The idle rest is `UNALLOCATED`, for
nobody holds it; what passed unseen is `UNOBSERVED`. Energy of packages and of memory are
two kinds and are never added to each other or to a board's.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol

from seedance_obs.attribution.rounding import Carry
from seedance_obs.attribution.sharing import in_proportion
from seedance_obs.attribution.state import State, numbers, optional_whole, table, whole, wholes
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED
from seedance_obs.attribution.zone_counter import Advance, ZoneCounter

SYSTEM = "system"  # busy CPU time of no workload: the kernel, daemons, this exporter
KINDS = ("package", "dram")


class ZoneReading(Protocol):
    """A zone's energy counter as it was read."""

    @property
    def kind(self) -> str:
        """`package` or `dram`; any other is passed by."""

    @property
    def name(self) -> str:
        """Unique on the host."""

    @property
    def microjoules(self) -> int:
        """Since some moment, modulo `range_uj`."""

    @property
    def range_uj(self) -> int | None:
        """Where it wraps, None where nobody knows."""


class CpuUse(Protocol):
    """CPU microseconds since the use before."""

    @property
    def busy_us(self) -> int:
        """Of all CPUs, working here."""

    @property
    def total_us(self) -> int:
        """Of all CPUs: busy, idle and stolen by a hypervisor."""

    @property
    def by_account(self) -> Mapping[str, int]:
        """Of each workload."""


@dataclass(frozen=True, slots=True)
class HostTick:
    """The host as seen at a moment, in monotonic microseconds.

    A zone that did not answer is missing; `cpu` is None where the CPU times could not be read, and
    then the next one covers the time of both.
    """

    at_us: int
    zones: tuple[ZoneReading, ...] = ()
    cpu: CpuUse | None = None


@dataclass(slots=True)
class _Kind:
    """All zones of a kind: what was booked, and what waits for its other half."""

    balances: Counter[str] = field(default_factory=Counter)
    rounding: Carry = field(default_factory=Carry)
    booked_uj: int = 0
    waiting_uj: int = 0
    waiting_us: Counter[str] = field(default_factory=Counter)
    read_at_us: int = 0
    moved: bool = False  # since it was last settled, so that CPU time before has had its energy

    def book(self, account: str, microjoules: int) -> None:
        self.balances[account] += microjoules
        self.booked_uj += microjoules

    def settle(self) -> None:
        """Split the energy that waits by the CPU time that waits, if there is any of both."""
        if self.waiting_uj and self.waiting_us:
            microjoules_per_us = self.waiting_uj / sum(self.waiting_us.values())
            exact: dict[Hashable, float] = {
                name: us * microjoules_per_us for name, us in self.waiting_us.items()
            }
            for name, part in self.rounding.split(self.waiting_uj, exact).items():
                self.balances[str(name)] += part
            self.booked_uj += self.waiting_uj
            self.waiting_uj = 0
            self.moved = True
        if self.moved:
            self.waiting_us.clear()
            self.moved = False

    def give_up(self) -> None:
        """Book what waits to nobody, since nobody saw whose it is."""
        if self.waiting_uj:
            self.book(UNOBSERVED, self.waiting_uj)
            self.waiting_uj = 0
        self.waiting_us.clear()


class HostAccount:
    """Books every advance of the zones' counters, in integers that add up to it exactly.

    Energy waits for the CPU times, and they for it, for up to `gap_us`; what spans a longer gap is
    `UNOBSERVED`, as is every advance whose amount is not sure.
    """

    def __init__(self, *, gap_us: int) -> None:
        self._gap_us = gap_us
        self._zones: dict[str, ZoneCounter] = {}
        self._kinds: dict[str, _Kind] = {}
        self._cpu_at_us: int | None = None
        self.doubts: Counter[str] = Counter()  # advances that were not sure, by why

    def advance(self, tick: HostTick) -> None:
        """Book what passed since the tick before."""
        if self._cpu_at_us is None:
            self._cpu_at_us = tick.at_us
        for zone in tick.zones:
            if zone.kind in KINDS:
                self._note_zone(zone, tick.at_us)
        if tick.cpu is not None:
            self._note_cpu(tick.cpu, tick.at_us)
        for kind in self._kinds.values():
            kind.settle()
            if tick.at_us - min(self._cpu_at_us, kind.read_at_us) > self._gap_us:
                kind.give_up()

    def lose_sight(self) -> None:
        """Note that nobody looks until the next tick: what the zones advance by then is nobody's.

        That is what an exporter must say that was down, for the CPU times of its next readings do
        not reach back to the tick before.
        """
        for kind in self._kinds.values():
            kind.give_up()
        for zone in self._zones.values():
            zone.watched = False
        self._cpu_at_us = None

    def balances(self) -> Mapping[str, Mapping[str, int]]:
        """Microjoules by kind and account; a kind that was never read is missing."""
        return {name: dict(kind.balances) for name, kind in self._kinds.items()}

    def booked(self) -> Mapping[str, int]:
        """Microjoules booked by kind, those of forgotten accounts included."""
        return {name: kind.booked_uj for name, kind in self._kinds.items()}

    def waiting(self) -> Mapping[str, int]:
        """Microjoules by kind that the counters advanced and CPU times have yet to split."""
        return {name: kind.waiting_uj for name, kind in self._kinds.items()}

    def forget(self, account: str) -> dict[str, int]:
        """Let an ended account go; what it had, in microjoules by kind."""
        had = {}
        for name, kind in self._kinds.items():
            kind.rounding.forget(account)
            if waiting := kind.waiting_us.pop(account, 0):
                kind.waiting_us[SYSTEM] += waiting
            if balance := kind.balances.pop(account, 0):
                had[name] = balance
        return had

    def as_state(self) -> dict[str, object]:
        """All it knows, as `from_state` takes it."""
        return {
            "zones": {name: asdict(zone) for name, zone in self._zones.items()},
            "cpu_at_us": self._cpu_at_us,
            "doubts": dict(self.doubts),
            "kinds": {name: _kind_as_state(kind) for name, kind in self._kinds.items()},
        }

    @classmethod
    def from_state(cls, state: State, *, gap_us: int) -> "HostAccount":
        """The account as it was kept, of the same boot.

        Raises:
            SeedanceError: the state is of another form.
        """
        account = cls(gap_us=gap_us)
        zones, kinds = table(state, "zones"), table(state, "kinds")
        account._zones = {name: _zone_from(table(zones, name)) for name in zones}
        account._cpu_at_us = optional_whole(state, "cpu_at_us")
        account.doubts = Counter(wholes(state, "doubts"))
        account._kinds = {name: _kind_from(table(kinds, name)) for name in kinds}
        return account

    def _note_cpu(self, cpu: CpuUse, at_us: int) -> None:
        before, self._cpu_at_us = self._cpu_at_us, at_us
        if before is not None and not 0 <= at_us - before <= self._gap_us:
            for kind in self._kinds.values():
                kind.give_up()
            return
        weights = _weights(cpu)
        for kind in self._kinds.values():
            kind.waiting_us.update(weights)

    def _note_zone(self, zone: ZoneReading, at_us: int) -> None:
        kind = self._kinds.setdefault(zone.kind, _Kind())
        kind.read_at_us = at_us
        counter = self._zones.get(zone.name)
        if counter is None:
            self._zones[zone.name] = ZoneCounter(zone.microjoules, at_us)
            kind.moved = True  # the CPU time until now is of energy that nobody read
            return
        elapsed = at_us - counter.at_us
        delta, sure = counter.advance(zone.microjoules, range_uj=zone.range_uj, at_us=at_us)
        if sure is not Advance.KNOWN:
            self.doubts[sure.value] += 1
        known = counter.watched and sure is Advance.KNOWN and 0 <= elapsed <= self._gap_us
        counter.watched = True
        kind.moved = kind.moved or delta > 0 or not known
        if known:
            kind.waiting_uj += delta
        else:
            kind.book(UNOBSERVED, delta)


def _weights(cpu: CpuUse) -> dict[str, int]:
    """The CPU time of all, as positive integers that add up to it.

    Accounts are read at other moments than the host and by a finer clock; where they claim more
    than it was busy, they share what it was.
    """
    used: dict[Hashable, int] = {account: us for account, us in cpu.by_account.items() if us > 0}
    busy = max(0, cpu.busy_us)
    if sum(used.values()) > busy:
        used = Carry().split(busy, in_proportion(busy, used))
    weights = {**used, SYSTEM: busy - sum(used.values())}
    weights[UNALLOCATED] = max(0, cpu.total_us - busy)
    return {str(account): us for account, us in weights.items() if us > 0}


def _zone_from(state: State) -> ZoneCounter:
    watched = bool(whole(state, "watched"))
    return ZoneCounter(whole(state, "microjoules"), whole(state, "at_us"), watched)


def _kind_as_state(kind: _Kind) -> dict[str, object]:
    return {
        "balances": dict(kind.balances),
        "carried": kind.rounding.as_state(),
        "booked_uj": kind.booked_uj,
        "waiting_uj": kind.waiting_uj,
        "waiting_us": dict(kind.waiting_us),
        "read_at_us": kind.read_at_us,
    }


def _kind_from(state: State) -> _Kind:
    return _Kind(
        balances=Counter(wholes(state, "balances")),
        rounding=Carry(numbers(state, "carried")),
        booked_uj=whole(state, "booked_uj"),
        waiting_uj=whole(state, "waiting_uj"),
        waiting_us=Counter(wholes(state, "waiting_us")),
        read_at_us=whole(state, "read_at_us"),
    )
