"""Which processes are counted and for whom, and what is said of those that cannot be."""

from dataclasses import replace
from pathlib import Path

import pytest

from seedance_obs.exporter.leaks.census import Census
from seedance_obs.exporter.leaks.listed import Alive
from seedance_obs.exporter.leaks.roll import OnGpus, Roll
from seedance_obs.leaks.suspect import OTHERS_HIDDEN
from seedance_obs.process_tree import ProcessName
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_probe import ProcessProbe
from seedance_obs.workload import Workload
from tests.sources.host_tree import HostTree

JOB = Workload("process", "10", 1)
LISTED = frozenset({10})


class Host:
    """A host on which 10, with a child 11, was on a GPU, and was counted there."""

    def __init__(self, root: Path) -> None:
        self.tree = HostTree(root)
        self.census = Census(
            str(root / "proc"), ProcessProbe(root), ProcessMembers(root), every_process=False
        )
        self.start(10, parent=1)
        self.start(11, parent=10)
        self.count(remembered=False)

    def start(self, pid: int, *, parent: int, ticks: int = 500) -> None:
        self.tree.start(pid, None, parent=parent, group=pid, session=pid, ticks=ticks)
        self.tree.write(f"proc/{pid}/statm", "150 100 0 0 0 0\n")
        self.tree.write(f"proc/{pid}/comm", f"python{pid}\n")
        self.tree.write(f"proc/{pid}/fd/0", "")

    def count(self, *, remembered: bool):
        accounts = {"job": OnGpus(JOB, {10}, {"GPU-a": None})}
        roll = Roll(accounts, LISTED, LISTED if remembered else frozenset())
        return self.census.take(roll, host_pids=True)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_who_lives_on_a_silent_board_is_counted_as_before(host: Host) -> None:
    count = host.count(remembered=True)
    assert count.account_of == {10: "job", 11: "job"}
    assert count.on_gpus == {10: Alive(ProcessName(10, 500, "python10"), alive=True)}


@pytest.mark.parametrize("ticks", [500, 900], ids=["of that start", "of another"])
def test_who_has_the_pid_of_one_on_a_silent_board_is_nobodys(host: Host, ticks: int) -> None:
    host.tree.end(10)
    host.start(10, parent=1, ticks=ticks)
    owned = {} if ticks == 900 else {10: "job", 11: "job"}
    assert host.count(remembered=True).account_of == owned


def test_one_that_was_never_counted_is_not_taken_on_trust(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.start(20, parent=1)
    roll = Roll({"new": OnGpus(JOB, {20}, {})}, frozenset({20}), frozenset({20}))
    assert 20 not in host.census.take(roll, host_pids=True).account_of


def test_one_that_could_not_be_read_for_once_is_still_known(host: Host) -> None:
    stat = host.tree.root / "proc/10/stat"
    text = stat.read_text()
    stat.write_text("")
    assert host.count(remembered=False).reading.outcomes["unreadable"] == 1
    stat.write_text(text)
    assert host.count(remembered=True).account_of == {10: "job", 11: "job"}


def test_without_the_hosts_pids_every_listed_one_counts_as_unread(host: Host) -> None:
    roll = Roll({"job": OnGpus(JOB, {10}, {})}, LISTED)
    count = host.census.take(roll, host_pids=False)
    assert (count.members, count.account_of, count.on_gpus) == ({}, {}, {})
    assert dict(count.reading.outcomes) == {"no_host_pids": 1}
    assert not host.census.take(Roll(), host_pids=False).reading.outcomes


@pytest.mark.parametrize("host_pids", [True, False])
def test_where_all_are_asked_for_those_who_may_not_be_seen_are_mentioned(
    tmp_path: Path, host_pids: bool
) -> None:
    root = Host(tmp_path).tree.root
    every, few = (
        Census(str(root / "proc"), ProcessProbe(root), ProcessMembers(root), every_process=each)
        for each in (True, False)
    )
    hidden = every.take(Roll(), host_pids=host_pids).reading.outcomes
    assert hidden == {"read": 2, **({} if host_pids else {OTHERS_HIDDEN: 1})}
    assert few.take(Roll(), host_pids=host_pids).reading.outcomes == {}


def test_a_mount_that_hides_others_is_mentioned(tmp_path: Path) -> None:
    root = Host(tmp_path).tree.root
    probe = ProcessProbe(root)
    probe.mount = replace(probe.mount, shows_all=None)
    census = Census(str(root / "proc"), probe, ProcessMembers(root), every_process=True)
    assert census.take(Roll(), host_pids=True).reading.outcomes == {"read": 2, OTHERS_HIDDEN: 1}
