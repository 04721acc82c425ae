"""The leak probes of a node: what each tick and each probe tell, joined into one view.

`note` runs on the assembling thread each tick, `probe` on a thread of its own.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seedance_obs.exporter.books.roster import own_cgroup
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.leaks.costs import Costs
from seedance_obs.exporter.leaks.held import HeldOnBoards
from seedance_obs.exporter.leaks.listed import Alive
from seedance_obs.exporter.leaks.process_findings import ProcessFindings
from seedance_obs.exporter.leaks.roll import OnGpus, roll_of
from seedance_obs.exporter.leaks.sights import Sights
from seedance_obs.exporter.leaks.whose import Whose
from seedance_obs.exporter.leaks.windows import Windows
from seedance_obs.exporter.view import AttributionView, BoardEvidence, LeakView
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.suspect import Finding, ProcessName, Suspect
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.cpu_times import CpuOwner
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_probe import Counts, ProbeReading, ProcessProbe
from seedance_obs.sources.procfs import read_comm

LOG = logging.getLogger(__name__)


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
    """What the last tick saw: who is on boards, by account, what the books say, and all pids."""

    roll: Mapping[str, OnGpus] = field(default_factory=dict)
    books: AttributionView = field(default_factory=AttributionView)
    on_gpus: frozenset[int] = frozenset()


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
        host_pids: Callable[[], bool | None],
        cpu_clock: Callable[[], float],
    ) -> None:
        self._parts = parts
        self._every_process = every_process
        self._host_pids = host_pids
        self._cpu_clock = cpu_clock
        self._faults = Faults()
        self._lock = threading.Lock()
        self._tick = _Tick()
        self._blind: set[str] = set()  # reasons for which processes could not be read last
        self.view = LeakView(
            most_shown=most_shown,
            currency=prices.currency,
            kwh_price=prices.kwh,
            gpu_hour_price=prices.gpu_hour,
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
            roll = roll_of(seats)
            idle_watts = {each.gpu_uuid: _idle_watts(each) for each in books.evidence}
            parts.windows.note(boards, roll, now, expected=expected)
            for board in boards:
                with self._faults.kept_to(f"watching {board.uuid} for leaks"):
                    for sight in parts.sights.of([board], seats, idle_watts):
                        parts.boards.note(sight)
                        parts.held.note(sight)
            pids = (process.pid for board in boards for process in board.processes or ())
            self._tick = _Tick(roll, books, frozenset(pids))

    def probe(self, now: float) -> None:
        """Count what processes hold, judge it, and say whose it is."""
        parts, started = self._parts, self._cpu_clock()
        with self._lock:
            tick = self._tick
        trusted = self._host_pids() is not False
        members = self._members(tick.roll) if trusted else {}
        account_of = {pid: account for account, pids in members.items() for pid in pids}
        # Of two that have a process in their trees it is the one's that has it on a GPU.
        account_of |= {pid: account for account in members for pid in tick.roll[account].pids}
        reading = self._read({*account_of, *tick.on_gpus} if trusted else set())
        parts.sights.know(self._alive(tick.on_gpus, reading), trusted=trusted)
        parts.windows.probe(now, _cpu_owners(tick.roll, members))
        findings = self._findings(reading.counts, account_of, now)
        parts.costs.advance(tick.books, findings, now)
        suspects = parts.whose.suspects(findings, draw_of=parts.costs.draw, now=now)
        if not trusted and tick.on_gpus:
            reading.outcomes["no_host_pids"] = len(tick.on_gpus)
        self._say(reading.outcomes)
        self._show(tick, suspects, reading.outcomes, now)
        self.view = replace(self.view, probe_seconds=self._cpu_clock() - started)

    def _members(self, roll: Mapping[str, OnGpus]) -> Mapping[str, frozenset[int]]:
        """The processes of those that hold GPUs, by account."""
        members = self._parts.members
        members.refresh()
        return {account: members.of(on.workload, on.pids) for account, on in roll.items()}

    def _read(self, pids: set[int]) -> ProbeReading:
        probe = self._parts.probe
        return probe.read({*pids, *probe.all_pids()} if self._every_process else pids)

    def _alive(self, pids: Iterable[int], reading: ProbeReading) -> Mapping[int, Alive]:
        """The processes on GPUs by pid, as far as anything is known of them."""
        found = {}
        for pid in pids:
            if pid in reading.gone:
                found[pid] = Alive(ProcessName(pid, None), alive=False)
            elif pid in reading.counts:
                start_ticks = reading.counts[pid].start_ticks
                name = ProcessName(pid, start_ticks, read_comm(self._parts.proc, pid))
                found[pid] = Alive(name, alive=True)
        return found

    def _findings(
        self, counts: Mapping[int, Counts], account_of: Mapping[int, str], now: float
    ) -> list[Finding]:
        """What processes and boards show; memory is judged where the node or its owner is idle."""
        parts = self._parts
        node_open, open_accounts = parts.windows.node_open, parts.windows.open_accounts()

        def is_idle(pid: int) -> bool:
            return node_open or account_of.get(pid) in open_accounts

        found = parts.processes.advance(counts, is_idle, now)
        with self._lock:
            found += parts.boards.findings(now)
        return [self._named(finding, account_of) for finding in found]

    def _named(self, finding: Finding, account_of: Mapping[int, str]) -> Finding:
        """A finding with the name of its process and the account it belongs to."""
        process = finding.process
        if process is None:
            return finding
        comm = process.comm or read_comm(self._parts.proc, process.pid)
        return replace(
            finding,
            process=replace(process, comm=comm),
            account=finding.account or account_of.get(process.pid, ""),
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
        self,
        tick: _Tick,
        suspects: tuple[Suspect, ...],
        outcomes: Mapping[str, int],
        now: float,
    ) -> None:
        windows, costs = self._parts.windows, self._parts.costs
        shown = {account.account for account in tick.books.workload_accounts}
        with self._lock:
            held = self._parts.held.by_board()
        self.view = replace(
            self.view,
            suspects=suspects,
            windows=windows.view(shown),
            skipped=windows.skipped,
            probed_at=now,
            probed_in_window_at=now if windows.node_open else self.view.probed_in_window_at,
            processes=dict(outcomes),
            gpu_seconds=dict(costs.gpu_seconds),
            gpu_energy_mj=dict(costs.gpu_energy_mj),
            held=held,
        )


def _cpu_owners(
    roll: Mapping[str, OnGpus], members: Mapping[str, frozenset[int]]
) -> Mapping[str, CpuOwner]:
    """Where the CPU time of each account is found."""
    return {
        account: CpuOwner(own_cgroup(on.workload), tuple(members.get(account, ())))
        for account, on in roll.items()
    }


def _idle_watts(board: BoardEvidence) -> float | None:
    """What a board draws with contexts open and nothing running, as far as that is known."""
    return None if board.floor_watts is None else board.floor_watts + (board.base_watts or 0.0)
