"""A made-up host of one board, watched for leaks, whose idle windows are as a test says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.opening import leak_parts
from seedance_obs.exporter.leaks.watch import LeakParts, LeakWatch, Prices
from seedance_obs.exporter.view import AttributionView, IdleWindowView
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.cpu_times import CpuOwner
from seedance_obs.workload import Workload
from tests.exporter.books.boards import board, reading, running
from tests.sources.host_tree import HostTree

SHELL = Workload("process", "10", 1)
INNER = Workload("process", "20", 1)
OUTER_ACCOUNT, INNER_ACCOUNT = account_name("ann", "process-10"), account_name("bob", "process-20")


class Windows:
    """Idle windows that are as a test says."""

    skipped = MappingProxyType[str, int]({})

    def __init__(self) -> None:
        self.node_open = False
        self.open: frozenset[str] = frozenset()
        self.owners: Mapping[str, CpuOwner] = {}  # that the last probe was for

    def note(self, _boards: object, _accounts: object, _now: float, *, expected: int) -> None:
        assert expected == 1

    def probe(self, _now: float, owners: Mapping[str, CpuOwner]) -> None:
        self.owners = owners

    def open_accounts(self) -> frozenset[str]:
        return self.open

    def view(self, _shown: object) -> tuple[IdleWindowView, ...]:
        return ()


class Host:
    """A host of one board, by its files; a shell (10) started a server (20) of another workload."""

    def __init__(
        self,
        root: Path,
        change: Callable[[LeakParts], LeakParts] = lambda parts: parts,
        **settings: object,
    ) -> None:
        """Take what makes other parts of the probes' own, and settings."""
        self.tree = HostTree(root)
        self.host_pids: bool | None = True
        self.windows = Windows()
        made = leak_parts(NodeSettings(node_root=str(root), **settings), wall=lambda: 1e9)
        self.watch = LeakWatch(
            change(replace(made, windows=self.windows)),
            every_process=False,
            most_shown=10,
            prices=Prices(),
            judged_after_seconds={},
            gap_seconds=45.0,
            host_pids=lambda: self.host_pids,
            cpu_clock=lambda: 0.0,
        )
        self.start(10, parent=1)
        self.start(20, parent=10)

    def start(self, pid: int, *, parent: int, fds: int = 3) -> None:
        self.tree.start(pid, None, parent=parent, group=pid, session=10)
        self.tree.write(f"proc/{pid}/comm", f"python{pid}\n")
        self.tree.write(f"proc/{pid}/limits", "Max open files            1000   1000  files\n")
        self.hold(pid, anonymous_pages=100)
        for number in range(fds):
            self.tree.write(f"proc/{pid}/fd/{number}", "")

    def hold(self, pid: int, *, anonymous_pages: int) -> None:
        self.tree.write(f"proc/{pid}/statm", f"{anonymous_pages + 50} {anonymous_pages} 0 0 0 0\n")

    def note(self, now: float, *pids: int, books: AttributionView | None = None, **told: float):
        readings = {name: reading(value, now) for name, value in told.items()}
        gpu = board(processes=running(*pids), readings=readings, listed_at=now)
        self.watch.note([gpu], list(seats(gpu, pids)), books or AttributionView(), now, expected=1)

    def fall_silent(self, now: float) -> None:
        """A tick at which the driver says nothing."""
        self.watch.note([], [], AttributionView(), now, expected=1)

    def probe(self, now: float, *pids: int) -> dict[str, int]:
        self.note(now, *pids)
        self.watch.probe(now)
        return dict(self.watch.view.processes)

    def kinds(self) -> list[str]:
        """The kinds of the suspects that are shown."""
        return [suspect.finding.kind for suspect in self.watch.view.suspects]


def seats(gpu: MergedGpu, pids: Sequence[int]) -> Iterator[Seat]:
    for pid, workload, account in ((20, INNER, INNER_ACCOUNT), (10, SHELL, OUTER_ACCOUNT)):
        if pid in pids:
            yield Seat(account, workload, gpu, None, (pid,), 1, None)
