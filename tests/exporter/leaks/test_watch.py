"""What the ticks and probes of a made-up host are joined into."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.opening import leak_parts
from seedance_obs.exporter.leaks.watch import LeakWatch, Prices
from seedance_obs.exporter.view import AttributionView, BoardEvidence, IdleWindowView
from seedance_obs.merge import MergedGpu
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

    def note(self, _boards: object, _accounts: object, _now: float, *, expected: int) -> None:
        assert expected == 1

    def probe(self, _now: float, _owners: object) -> None:
        """Nothing is read."""

    def open_accounts(self) -> frozenset[str]:
        return self.open

    def view(self, _shown: object) -> tuple[IdleWindowView, ...]:
        return ()


class Host:
    """A host of one board, by its files; a shell (10) started a server (20) of another workload."""

    def __init__(self, root: Path, **settings: object) -> None:
        self.tree = HostTree(root)
        self.host_pids: bool | None = True
        self.windows = Windows()
        parts = leak_parts(NodeSettings(node_root=str(root), **settings), wall=lambda: 1e9)
        self.watch = LeakWatch(
            replace(parts, windows=self.windows),
            every_process=False,
            most_shown=10,
            prices=Prices(),
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

    def probe(self, now: float, *pids: int) -> dict[str, int]:
        self.note(now, *pids)
        self.watch.probe(now)
        return dict(self.watch.view.processes)


def seats(gpu: MergedGpu, pids: Sequence[int]) -> Iterator[Seat]:
    for pid, workload, account in ((20, INNER, INNER_ACCOUNT), (10, SHELL, OUTER_ACCOUNT)):
        if pid in pids:
            yield Seat(account, workload, gpu, None, (pid,), 1, None)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_whole_tree_of_who_is_on_a_gpu_is_probed_and_nobody_else(host: Host) -> None:
    host.start(11, parent=10)
    host.start(12, parent=1)
    assert host.probe(0.0, 20) == {"read": 1}
    assert host.probe(15.0, 10) == {"read": 3}


@pytest.mark.parametrize(("on_gpu", "whose"), [((10, 20), "bob"), ((10,), "ann")])
def test_of_two_trees_a_process_is_the_ones_that_has_it_on_a_gpu(
    tmp_path: Path, on_gpu: tuple[int, ...], whose: str
) -> None:
    host = Host(tmp_path, leaks_fd_limit_ratio=0.2)
    for number in range(250):
        host.tree.write(f"proc/20/fd/{number}", "")
    host.probe(0.0, *on_gpu)
    (suspect,) = host.watch.view.suspects
    assert (suspect.finding.kind, suspect.tenant) == ("fd_near_limit", whose)
    assert suspect.finding.process is not None
    assert suspect.finding.process.comm == "python20"


def test_without_the_hosts_pids_nothing_is_read_and_that_is_counted(host: Host) -> None:
    host.host_pids = False
    assert host.probe(0.0, 10, 20) == {"no_host_pids": 2}
    host.host_pids = None
    assert host.probe(15.0, 10, 20) == {"read": 2}


def test_what_cannot_be_read_is_said_once_and_so_is_its_end(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    said = []
    for now, hidden in enumerate((False, True, True, False)):
        caplog.clear()
        host.host_pids = not hidden
        host.probe(15.0 * now, 10)
        said.append([record.getMessage() for record in caplog.records])
    assert said == [
        [],
        ["event=leak_probe_blind reason=no_host_pids processes=1"],
        [],
        ["event=leak_probe_sees reason=no_host_pids"],
    ]


def test_that_a_process_has_ended_is_nothing_to_say(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.tree.end(20)
    assert host.probe(0.0, 10, 20) == {"read": 1, "gone": 1}
    assert caplog.records == []


@pytest.mark.parametrize(
    ("node_open", "open_accounts", "told"),
    [
        (False, (), False),
        (True, (), True),
        (False, (OUTER_ACCOUNT,), True),
        (False, (INNER_ACCOUNT,), False),
    ],
)
def test_memory_is_judged_while_the_node_or_its_owner_is_idle(
    tmp_path: Path, node_open: bool, open_accounts: tuple[str, ...], told: bool
) -> None:
    host = Host(tmp_path, leaks_memory_growth=("fast=1MiB/h,30s",))
    host.windows.node_open, host.windows.open = node_open, frozenset(open_accounts)
    for now in range(0, 300, 5):
        host.hold(10, anonymous_pages=100 + now)
        host.probe(float(now), 10, 20)
    kinds = [suspect.finding.kind for suspect in host.watch.view.suspects]
    assert kinds == (["anonymous_growth"] if told else [])


def test_the_last_probe_in_an_idle_window_is_remembered(host: Host) -> None:
    at = []
    for now, is_open in ((0.0, False), (15.0, True), (30.0, False)):
        host.windows.node_open = is_open
        host.probe(now, 10)
        at.append(host.watch.view.probed_in_window_at)
    assert at == [None, 15.0, 15.0]
    assert host.watch.view.probed_at == 30.0


@pytest.mark.parametrize(("base_watts", "told"), [(None, False), (40.0, True)])
def test_a_board_spins_below_a_tenth_above_what_open_contexts_draw(
    host: Host, base_watts: float | None, told: bool
) -> None:
    evidence = BoardEvidence("GPU-a", "counter", 60.0, "measured", base_watts, {}, 0, 0, None)
    books = AttributionView(evidence=(evidence,))
    told_of = {"utilization_ratio": 1.0, "power_watts": 140.0, "power_limit_watts": 700.0}
    for now in range(0, 700, 10):
        host.note(float(now), 10, books=books, **told_of)
    host.watch.probe(float(now))
    kinds = [suspect.finding.kind for suspect in host.watch.view.suspects]
    assert kinds == (["spinning"] if told else [])


def test_a_fault_of_a_tick_costs_that_tick_only(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.watch.note([object()], [], AttributionView(), 0.0, expected=1)  # no board at all
    assert "fault_started" in caplog.text
    assert host.probe(15.0, 10) == {"read": 2}


def test_a_fault_of_one_board_costs_the_others_nothing(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    for now in range(0, 400, 10):
        broken = board("GPU-0", readings={"memory_used_bytes": reading(float("nan"))})
        gpu = board(
            "GPU-1", listed_at=now, processes=(), readings={"memory_used_bytes": reading(2**33)}
        )
        host.watch.note([broken, gpu], [], AttributionView(), float(now), expected=1)
        host.watch.probe(float(now))
    found = [suspect.finding for suspect in host.watch.view.suspects]
    assert [(each.kind, each.gpu_uuid) for each in found] == [("memory_without_process", "GPU-1")]
    assert [record.getMessage() for record in caplog.records if "fault" in record.getMessage()] == [
        "event=fault_started of='watching GPU-0 for leaks'"
    ]
