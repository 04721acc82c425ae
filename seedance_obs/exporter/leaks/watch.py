"""The leak probes of a node: what each tick and each probe tell, joined into one view.

`note` runs on the assembling thread each tick, `probe` on a thread of its own.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from seedance_obs.exporter.books.roster import own_cgroup
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.leaks.census import Census, Count
from seedance_obs.exporter.leaks.costs import Costs
from seedance_obs.exporter.leaks.held import HeldOnBoards
from seedance_obs.exporter.leaks.process_findings import ProcessFindings
from seedance_obs.exporter.leaks.roll import Roll, RollCall
from seedance_obs.exporter.leaks.sights import Sights
from seedance_obs.exporter.leaks.whose import Whose
from seedance_obs.exporter.leaks.windows import Windows
from seedance_obs.exporter.view import AttributionView, BoardEvidence, IdleWindowView, LeakView
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.suspect import GPU_KINDS, KINDS, PROCESS_KINDS, Finding, Suspect
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.cpu_times import CpuOwner
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_probe import ProcessProbe
from seedance_obs.sources.procfs import read_comm

LOG = logging.getLogger(__name__)
MEMORY_KINDS = frozenset({"anonymous_growth"})  # that are judged in idle windows only


@dataclass(frozen=True, slots=True)
class Prices:
    """What energy and GPUs cost; None where that is not known."""

    currency: str = ""
    kwh: float | None = None
    gpu_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LeakParts:
    """What the probes are made of."""

    proc: str  # the folder of processes
    probe: ProcessProbe
    members: ProcessMembers
    windows: Windows
    processes: ProcessFindings
    sights: Sights
    boards: BoardWatch
    held: HeldOnBoards
    whose: Whose
    costs: Costs


@dataclass(frozen=True, slots=True)
class _Tick:
    """What the last tick saw: who is on boards, and what the books say."""

    roll: Roll = field(default_factory=Roll)
    books: AttributionView = field(default_factory=AttributionView)


@dataclass(frozen=True, slots=True)
class _Idle:
    """Whether the node is idle, which accounts are, and what is shown of their windows."""

    node: bool = False
    accounts: frozenset[str] = frozenset()
    windows: tuple[IdleWindowView, ...] = ()


class LeakWatch:
    """Probes processes and watches boards; `every_process`: also those that no GPU concerns.

    Attributes:
        view: What the last probe saw.
    """

    def __init__(
        self,
        parts: LeakParts,
        *,
        every_process: bool,
        most_shown: int,
        prices: Prices,
        judged_after_seconds: Mapping[str, float],
        gap_seconds: float,
        host_pids: Callable[[], bool | None],
        cpu_clock: Callable[[], float],
    ) -> None:
        """Take the parts, and what they need.

        Args:
            parts: What reads and judges.
            every_process: Whether all processes of the host are probed.
            most_shown: Suspects of a kind that get series of their own.
            prices: What energy and GPUs cost.
            judged_after_seconds: For how long something must be watched, by kind.
            gap_seconds: Growth is not judged over a longer time between two probes.
            host_pids: Whether the pids of drivers are those of the `/proc` that is read.
            cpu_clock: Seconds of CPU time of the calling thread.
        """
        self._parts = parts
        self._gap_seconds = gap_seconds
        self._last: float | None = None
        self._host_pids = host_pids
        self._cpu_clock = cpu_clock
        self._roll_call = RollCall()
        self._census = Census(parts.proc, parts.probe, parts.members, every_process=every_process)
        self._faults = Faults()
        self._lock = threading.Lock()
        self._tick = _Tick()
        self._blind: set[str] = set()  # reasons for which processes could not be read last
        self._complete = True  # whether nothing of this probe broke so far
        self._unjudged: set[str] = set()  # kinds that it cannot judge
        self.view = LeakView(
            most_shown=most_shown,
            currency=prices.currency,
            kwh_price=prices.kwh,
            gpu_hour_price=prices.gpu_hour,
            judged_after_seconds=judged_after_seconds,
        )

    def note(
        self,
        boards: Sequence[MergedGpu],
        seats: Sequence[Seat],
        books: AttributionView,
        now: float,
        *,
        expected: int,
    ) -> None:
        """Take what a tick saw of the boards, of which `expected` should be, and who is on them.

        A fault costs no more than what this would have told.
        """
        parts = self._parts
        with self._faults.kept_to("watching boards for leaks"), self._lock:
            roll = self._roll_call.call(boards, seats, now)
            self._tick = _Tick(roll, books)
            idle_watts = {each.gpu_uuid: _idle_watts(each) for each in books.evidence}
            parts.windows.note(boards, roll.accounts, now, expected=expected)
            for board in boards:
                with self._faults.kept_to(f"watching {board.uuid} for leaks"):
                    for sight in parts.sights.of([board], seats, idle_watts):
                        parts.boards.note(sight)
                        parts.held.note(sight)

    def probe(self, now: float) -> None:
        """Count what processes hold, judge it, and say whose it is.

        A part that breaks costs its own findings, not those of others. Such a probe is not
        complete, and the kinds that it could not judge are `unjudged` in the view.
        """
        started, last, self._last = self._cpu_clock(), self._last, now
        if last is None or now - last > self._gap_seconds:
            self.view = replace(self.view, watching_since=now)
        try:
            self._probe(now)
        except Exception:
            # What was found before is not to be shown on as if it was found now.
            self.view = replace(self.view, suspects=(), unjudged=frozenset(KINDS))
            raise
        self.view = replace(self.view, probe_seconds=self._cpu_clock() - started)

    def _probe(self, now: float) -> None:
        parts = self._parts
        with self._lock:
            tick = self._tick
        self._complete, self._unjudged = True, set()
        count, idle, suspects = Count(), _Idle(), tuple[Suspect, ...]()
        with self._kept_to("counting what processes hold", PROCESS_KINDS):
            count = self._count(tick.roll)
        with self._kept_to("idle windows for leaks", MEMORY_KINDS):
            idle = self._idle(tick, count, now)
        findings = self._findings(count, idle, now)
        with self._kept_to("what leaks cost"):
            parts.costs.advance(tick.books, findings, now)
        with self._kept_to("whose leaks are", KINDS):
            suspects = parts.whose.suspects(findings, draw_of=parts.costs.draw, now=now)
        self._show(suspects, idle, count.reading.outcomes, now)

    @contextmanager
    def _kept_to(self, what: str, kinds: Collection[str] = ()) -> Iterator[None]:
        """A context in which a fault costs what would be known of these kinds."""
        done = False
        with self._faults.kept_to(what):
            yield
            done = True
        if not done:
            self._complete = False
            self._unjudged.update(kinds)

    def _count(self, roll: Roll) -> Count:
        """Count the processes of those on GPUs, and tell those who watch boards what lives.

        The pids that a driver tells mean something only where it is certain that they are those of
        this `/proc`.
        """
        trusted = self._host_pids() is True
        count = self._census.take(roll, host_pids=trusted)
        self._say(count.reading.outcomes)
        with self._lock:
            self._parts.sights.know(count.on_gpus, trusted=trusted)
        return count

    def _idle(self, tick: _Tick, count: Count, now: float) -> _Idle:
        """Move the idle windows on."""
        windows = self._parts.windows
        windows.probe(now, _cpu_owners(tick.roll, count))
        shown = {account.account for account in tick.books.workload_accounts}
        return _Idle(windows.node_open, windows.open_accounts(), windows.view(shown))

    def _findings(self, count: Count, idle: _Idle, now: float) -> list[Finding]:
        """What processes and boards show; memory is judged where the node or its owner is idle."""
        parts = self._parts
        found: list[Finding] = []

        def is_idle(account: str) -> bool:
            return idle.node or account in idle.accounts

        # What was not counted must not look to the judge as if it had ended.
        if not self._unjudged >= PROCESS_KINDS:
            with self._kept_to("judging processes for leaks", PROCESS_KINDS):
                counts, account_of = count.reading.counts, count.account_of
                found += parts.processes.advance(counts, account_of, is_idle, now)
        with self._kept_to("judging boards for leaks", GPU_KINDS), self._lock:
            found += parts.boards.findings(now)
        return [self._named(finding, count) for finding in found]

    def _named(self, finding: Finding, count: Count) -> Finding:
        """A finding with the name of its process and the account it belongs to."""
        process = finding.process
        if process is None:
            return finding
        comm = process.comm or read_comm(self._parts.proc, process.pid)
        return replace(
            finding,
            process=replace(process, comm=comm),
            account=finding.account or count.account_of.get(process.pid, ""),
        )

    def _say(self, outcomes: Mapping[str, int]) -> None:
        """Log once what cannot be read and why, and once that it can be read again."""
        blind = {why for why, count in outcomes.items() if count and why not in ("read", "gone")}
        for why in sorted(blind - self._blind):
            LOG.warning("event=leak_probe_blind reason=%s processes=%d", why, outcomes[why])
        for why in sorted(self._blind - blind):
            LOG.warning("event=leak_probe_sees reason=%s", why)
        self._blind = blind

    def _show(
        self, suspects: tuple[Suspect, ...], idle: _Idle, outcomes: Mapping[str, int], now: float
    ) -> None:
        costs, before = self._parts.costs, self.view
        with self._lock:
            held = self._parts.held.by_board()
        self.view = replace(
            before,
            suspects=suspects,
            unjudged=frozenset(self._unjudged),
            windows=idle.windows,
            skipped=self._parts.windows.skipped,
            probed_at=now if self._complete else before.probed_at,
            probed_in_window_at=now if idle.node else before.probed_in_window_at,
            processes=dict(outcomes),
            gpu_seconds=dict(costs.gpu_seconds),
            gpu_energy_mj=dict(costs.gpu_energy_mj),
            held=held,
        )


def _cpu_owners(roll: Roll, count: Count) -> Mapping[str, CpuOwner]:
    """Where the CPU time of each account is found."""
    return {
        account: CpuOwner(own_cgroup(on.workload), tuple(count.members.get(account, ())))
        for account, on in roll.accounts.items()
    }


def _idle_watts(board: BoardEvidence) -> float | None:
    """What a board draws with contexts open and nothing running, as far as that is known."""
    return None if board.floor_watts is None else board.floor_watts + (board.base_watts or 0.0)
