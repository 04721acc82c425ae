"""All processes by parent and group, from real ones and from plain folders."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from seedance_obs.sources import process_table
from seedance_obs.sources.process_table import ProcessStat, ProcessTable, read_stat
from tests.chosen_pid import stranger
from tests.no_descriptors import no_descriptors
from tests.sources.family import Family, family
from tests.sources.host_tree import HostTree


def looked(table: ProcessTable, *, times: int = 1) -> ProcessTable:
    for _ in range(times):
        table.refresh()
        table.stat(os.getpid())
    return table


def of(table: ProcessTable, pid: int) -> ProcessStat:
    stat = table.stat(pid)
    assert stat is not None
    return stat


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """The pids whose stat was read."""
    pids: set[int] = set()

    def read(proc: str, pid: int) -> ProcessStat | None:
        pids.add(pid)
        return read_stat(proc, pid)

    monkeypatch.setattr(process_table, "read_stat", read)
    return pids


def test_a_process_has_its_parent_group_session_and_name() -> None:
    with family("tell(leaf=child()); rest()") as parents:
        leaf = parents.told()["leaf"]
        stat = read_stat("/proc", leaf)
        assert stat is not None
        assert (stat.parent, stat.group, stat.session) == (parents.pid,) * 3
        assert not stat.kernel
        assert stat.comm == Path(f"/proc/{leaf}/comm").read_text().removesuffix("\n")
        table = ProcessTable("/")
        assert table.stat(leaf) == stat
        assert table.children(parents.pid) == [leaf]
        assert set(table.group(parents.pid)) == {parents.pid, leaf}


def test_nothing_is_read_twice_that_cannot_have_changed(reads: set[int]) -> None:
    with family("tell(leaf=child()); rest()") as parents:
        ours = {parents.pid, parents.told()["leaf"]}
        table = ProcessTable("/")
        looked(table, times=2)
        assert ours <= reads, "of the young what they choose after their start may change"
        reads.clear()
        looked(table)
        assert not ours & reads
        assert {pid for pid in ours if table.stat(pid)} == ours


def test_between_two_refreshes_the_answers_are_of_one_moment() -> None:
    table = looked(ProcessTable("/"))
    with family("tell(); rest()") as later:
        later.told()
        assert table.stat(later.pid) is None
        table.refresh()
        assert table.stat(later.pid) is not None
    assert table.stat(later.pid) is not None
    table.refresh()
    assert table.stat(later.pid) is None


def test_a_session_that_begins_soon_after_the_start_is_seen() -> None:
    program = """
def act():
    os.read(0, 1); os.setsid(); tell(); rest()
tell(leaf=child(act)); os.wait()
"""
    with family(program) as parents:
        leaf = parents.told()["leaf"]
        table = ProcessTable("/")
        assert of(table, leaf).session == parents.pid
        parents.poke()
        parents.told()
        assert of(looked(table), leaf).session == leaf


ORPHAN = """
adopt_orphans()
def middle():
    tell(leaf=child(), middle=os.getpid()); rest()
os.waitpid(child(middle), 0)
tell(); rest()
"""


def orphaned(parents: Family, table: ProcessTable) -> int:
    """A grandchild that was seen below its parent, and is the first process's now."""
    told = parents.told()
    looked(table, times=3)
    assert of(table, told["leaf"]).parent == told["middle"]
    os.kill(told["middle"], signal.SIGKILL)
    parents.told()
    return told["leaf"]


def test_whoever_took_over_an_orphan_is_its_parent_from_then_on() -> None:
    with family(ORPHAN) as parents:
        table = ProcessTable("/")
        leaf = orphaned(parents, table)
        assert of(looked(table), leaf).parent == parents.pid
        assert table.children(parents.pid) == [leaf]


def test_the_next_process_with_a_pid_is_another() -> None:
    with family("tell(); rest()") as first:
        first.told()
        table = looked(ProcessTable("/"), times=3)
        before = of(table, first.pid)
    with stranger(first.pid):
        now = of(looked(table), first.pid)
        assert (before.parent, now.parent) == (os.getpid(), os.getpid())
        assert now.comm == "sleep" != before.comm


def test_while_nothing_can_be_opened_the_processes_are_those_of_before() -> None:
    with family("tell(leaf=child()); rest()") as parents:
        leaf = parents.told()["leaf"]
        table = looked(ProcessTable("/"))
        with no_descriptors():
            looked(table)
        assert table.children(parents.pid) == [leaf]
    assert looked(table).stat(parents.pid) is None


def test_threads_are_not_listed() -> None:
    program = """
for _ in range(3): threading.Thread(target=rest, daemon=True).start()
tell(thread=threading.enumerate()[1].native_id); rest()
"""
    with family(program) as many:
        thread = many.told()["thread"]
        table = ProcessTable("/")
        assert Path(f"/proc/{many.pid}/task/{thread}").exists()
        assert table.stat(thread) is None
        assert table.group(many.pid) == [many.pid]


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


def test_plain_folders_are_read_each_time(host: HostTree) -> None:
    host.start(41, None, comm="old")
    table = looked(ProcessTable(host.root), times=3)
    host.start(41, None, comm="new", parent=7, ticks=900)
    assert of(looked(table), 41) == ProcessStat(900, "new", 7, 41, 41, kernel=False)


def test_group_0_is_nobodys(host: HostTree) -> None:
    host.start(41, None, group=0)
    assert ProcessTable(host.root).group(0) == ()


@pytest.mark.parametrize("comm", ["a) S 1 (b", "two words", "((", ")", "", "n\nl", "\x1b[2J"])
def test_no_name_moves_a_field(host: HostTree, comm: str) -> None:
    host.start(41, None, comm=comm, parent=7)
    stat = read_stat(f"{host.root}/proc", 41)
    assert stat is not None
    assert (stat.comm, stat.parent, stat.start_ticks) == (comm, 7, 500)


@pytest.mark.parametrize("text", ["", "41 (x", "41 (x) S 1 2", "41 (x) S 1 b 3 " + "0 " * 40])
def test_a_garbled_process_is_missing_and_costs_no_other(host: HostTree, text: str) -> None:
    host.start(41, None)
    host.start(42, None)
    host.write("proc/41/stat", text)
    table = ProcessTable(host.root)
    assert table.stat(41) is None
    assert table.children(1) == [42]


def test_threads_of_the_kernel_are_told_apart(host: HostTree) -> None:
    host.start(41, None, flags=0x208040)
    assert of(ProcessTable(host.root), 41).kernel


def test_without_a_proc_there_is_no_process(tmp_path: Path) -> None:
    table = ProcessTable(tmp_path)
    assert (table.stat(1), table.children(1), table.group(1)) == (None, (), ())
