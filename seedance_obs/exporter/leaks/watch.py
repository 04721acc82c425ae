"""The leak probes of a node: what each tick and each probe tell, joined into one view.

`note` runs on the assembling thread each tick, `probe` on a thread of its own.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from seedance_obs.exporter.books.roster import own_cgroup
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.leaks.costs import Costs
from seedance_obs.exporter.leaks.process_findings import ProcessFindings
from seedance_obs.exporter.leaks.roll import OnGpus, roll_of
from seedance_obs.exporter.leaks.sights import Alive, Sights
from seedance_obs.exporter.leaks.whose import Whose
from seedance_obs.exporter.leaks.windows import Windows
from seedance_obs.exporter.view import AttributionView, BoardEvidence, LeakView
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.suspect import Finding, ProcessName, Suspect
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.cpu_times import CpuOwner
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_probe import ProbeReading, ProcessProbe
from seedance_obs.sources.procfs import read_comm


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
    whose: Whose
    costs: Costs


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
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._parts = parts
        self._every_process = every_process
        self._host_pids = host_pids
        self._cpu_clock = cpu_clock
        self._faults = Faults()
        self._lock = threading.Lock()
        self._roll: Mapping[str, OnGpus] = {}
        self._on_gpus: frozenset[int] = frozenset()
        self._books = AttributionView()
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
            for sight in parts.sights.of(boards, seats, idle_watts):
                parts.boards.note(sight)
            self._roll, self._books = roll, books
            self._on_gpus = frozenset(
                process.pid for board in boards for process in board.processes or ()
            )

    def probe(self, now: float) -> None:
        """Count what processes hold, judge it, and say whose it is."""
        parts, started = self._parts, self._cpu_clock()
        with self._lock:
            roll, books, on_gpus = self._roll, self._books, self._on_gpus
        trusted = self._host_pids() is not False
        members = self._members(roll) if trusted else {}
        account_of = {pid: account for account, pids in members.items() for pid in pids}
        pids = {*account_of, *on_gpus} if trusted else set()
        if self._every_process:
            pids.update(parts.probe.all_pids())
        reading = parts.probe.read(pids)
        parts.sights.know(self._alive(on_gpus, reading), trusted=trusted)
        parts.windows.probe(
            now,
            {
                account: CpuOwner(own_cgroup(on.workload), tuple(members.get(account, ())))
                for account, on in roll.items()
            },
        )
        idle = parts.windows.open_accounts()
        node_idle = parts.windows.node_open

        def is_idle(pid: int) -> bool:
            return node_idle or account_of.get(pid, "") in idle

        findings = parts.processes.advance(reading.counts, is_idle, now)
        with self._lock:
            on_boards = parts.boards.findings(now)
        findings = [self._named(finding, account_of) for finding in (*findings, *on_boards)]
        parts.costs.advance(books, findings, now)
        suspects = parts.whose.suspects(findings, roll, draw_of=parts.costs.draw, now=now)
        outcomes = Counter(reading.outcomes)
        if not trusted and on_gpus:
            outcomes["no_host_pids"] = len(on_gpus)
        shown = {account.account for account in books.workload_accounts}
        self._show(suspects, shown, outcomes, now, cpu_seconds=self._cpu_clock() - started)

    def _members(self, roll: Mapping[str, OnGpus]) -> Mapping[str, frozenset[int]]:
        """The processes of those that hold GPUs, by account."""
        members = self._parts.members
        members.refresh()
        return {account: members.of(on.workload, on.pids) for account, on in roll.items()}

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

    def _show(
        self,
        suspects: tuple[Suspect, ...],
        shown: Container[str],
        outcomes: Mapping[str, int],
        now: float,
        *,
        cpu_seconds: float,
    ) -> None:
        windows, costs = self._parts.windows, self._parts.costs
        self.view = replace(
            self.view,
            suspects=suspects,
            windows=windows.view(shown),
            skipped=dict(windows.skipped),
            probed_at=now,
            probed_in_window_at=now if windows.node_open else self.view.probed_in_window_at,
            probe_seconds=cpu_seconds,
            processes=dict(outcomes),
            gpu_seconds=dict(costs.gpu_seconds),
            gpu_energy_mj=dict(costs.gpu_energy_mj),
        )


def _idle_watts(board: BoardEvidence) -> float | None:
    """What a board draws with contexts open and nothing running, as far as that is known."""
    return None if board.floor_watts is None else board.floor_watts + (board.base_watts or 0.0)
