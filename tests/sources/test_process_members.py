"""All processes of a workload, given those on GPUs: of cgroups, and of trees of real processes."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from seedance_obs.sources import cgroup_tree
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.workload import Workload
from tests.chosen_pid import stranger
from tests.sources.family import family
from tests.sources.host_tree import CID, JOB, POD, SIDECAR, UID, HostTree

TRAINER = f"{POD}/cri-containerd-{CID}.scope"
DOCKER = f"/system.slice/docker-{CID}.scope"
SERVICE = "/system.slice/ollama.service"
SESSION = "/user.slice/user-1001.slice/session-3.scope"
V1_JOB = "/slurm/uid_1001/job_42"


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


def owner(host: HostTree, pid: int) -> Workload:
    """The workload as the exporter knows it."""
    workload = ProcessOwners(host.root).owner(pid)
    assert workload is not None
    return workload


def members(host: HostTree, workload: Workload, *pids: int) -> set[int]:
    return set(ProcessMembers(host.root).of(workload, pids))


OWN = {
    "pod": (TRAINER, f"{POD}/cri-containerd-{SIDECAR}.scope", f"{TRAINER}/a/b"),
    "slurm": (f"{JOB}/step_0/user/task_1", f"{JOB}/step_extern/user/task_0", f"{JOB}/step_1/x/y/z"),
    "container": (DOCKER, f"{DOCKER}/worker", f"{DOCKER}/init.scope/deep/er"),
    "service": (SERVICE, f"{SERVICE}/runner", f"{SERVICE}/runner/1"),
}


@pytest.mark.parametrize("v1", ["", "memory", "pids", "cpu,cpuacct", "systemd", "unified"])
@pytest.mark.parametrize("kind", OWN)
def test_a_workload_with_a_cgroup_has_all_that_runs_in_it(
    tmp_path: Path, kind: str, v1: str
) -> None:
    host = HostTree(tmp_path, v1=v1)
    for pid, cgroup in enumerate(OWN[kind], start=41):
        host.start(pid, cgroup)
    host.start(50, "/system.slice/other.service", parent=41)
    host.start(51, "/", parent=41)
    workload = owner(host, 41)
    assert workload.kind == kind
    assert members(host, workload, 41) == {41, 42, 43}


def test_a_pod_without_a_process_on_a_gpu_is_found_by_its_uid(host: HostTree) -> None:
    host.start(41, TRAINER)
    assert members(host, Workload("pod", UID, 0)) == {41}
    assert members(host, Workload("pod", "ml.train-0", 0)) == set()
    assert members(host, Workload("slurm", "42", 0)) == set()


def test_with_cgroup_v1_a_tree_that_holds_nobody_is_passed_over(tmp_path: Path) -> None:
    host = HostTree(tmp_path, v1="freezer")
    (tmp_path / f"sys/fs/cgroup/memory{V1_JOB}/step_0").mkdir(parents=True)
    for pid in (41, 42):
        host.start(pid, f"{V1_JOB}/step_0")
    assert members(host, owner(host, 41), 41) == {41, 42}


def test_processes_of_other_namespaces_and_what_is_no_pid_are_left_out(host: HostTree) -> None:
    host.start(41, TRAINER)
    procs = host.cgroups / TRAINER.strip("/") / "cgroup.procs"
    procs.write_text("41\n0\n0\n-7\nodd\n99999999999\n1\n")
    assert members(host, owner(host, 41), 41) == {41}


def test_a_cgroup_is_read_as_far_as_a_workload_goes(
    host: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup_tree, "_FOLDERS_OF_ALL", 10)
    monkeypatch.setattr(cgroup_tree, "_MOST_PROCESSES", 25)
    for pid in range(100, 160):
        host.join(pid, f"{DOCKER}/{pid}")
    workload = Workload("container", CID, 0, cgroup=DOCKER)
    assert members(host, workload) == set(range(100, 109))
    for pid in range(200, 260):
        host.join(pid, DOCKER)
    assert len(members(host, workload)) == 25


@pytest.mark.parametrize("kind", OWN)
def test_where_no_cgroup_can_be_read_what_descends_from_the_given_is_found(
    host: HostTree, kind: str
) -> None:
    for pid, parent in ((41, 1), (42, 41), (43, 42), (44, 1)):
        host.start(pid, None, parent=parent, session=41)
        host.write(f"proc/{pid}/cgroup", f"0::{OWN[kind][0]}\n")
    assert members(host, owner(host, 41), 41) == {41, 42, 43}


def test_a_slurm_job_without_a_cgroup_is_all_below_the_steps_daemon(host: HostTree) -> None:
    slurmd = "/system.slice/slurmd.service"
    host.start(30, slurmd, comm="slurmd", uid=0)
    host.start(31, slurmd, comm="slurmstepd", uid=0, parent=30)
    host.start(41, slurmd, comm="bash", parent=31, environment=("SLURM_JOB_ID=42",))
    for pid in (42, 43):
        host.start(pid, slurmd, parent=41, session=41, environment=("SLURM_JOB_ID=42",))
    host.start(51, slurmd, comm="slurmstepd", uid=0, parent=30)
    host.start(52, slurmd, parent=51, environment=("SLURM_JOB_ID=43",))
    workload = owner(host, 42)
    assert (workload.kind, workload.uid) == ("slurm", "42")
    assert members(host, workload, 42) == {41, 42, 43}


def of(group: int, pids: Iterable[int], *, members: ProcessMembers | None = None) -> set[int]:
    """The members of the workload that a real process group is."""
    return set((members or ProcessMembers("/")).of(Workload("process", str(group), 0), pids))


def test_a_plain_process_has_its_tree() -> None:
    program = """
def loader(): tell(deep=child()); rest()
tell(one=child(), two=child(loader)); rest()
"""
    with family(program) as tree, family("tell(); rest()") as beside:
        told = {**tree.told(), **tree.told()}
        beside.told()
        expected = {tree.pid, *told.values()}
        assert of(tree.pid, [tree.pid]) == expected
        assert of(tree.pid, [told["one"]]) == expected, "the leader need not be on a GPU"
        assert of(tree.pid, []) == expected
        assert os.getpid() not in expected


def test_threads_are_one_process() -> None:
    program = """
def fork(): tell(leaf=child()); rest()
for _ in range(3): threading.Thread(target=rest, daemon=True).start()
threading.Thread(target=fork, daemon=True).start(); rest()
"""
    with family(program) as many:
        leaf = many.told()["leaf"]
        assert of(many.pid, [many.pid]) == {many.pid, leaf}


def test_an_orphan_of_the_group_is_still_the_workloads() -> None:
    with family("tell(leaf=child(), lost=child_of_child()); rest()") as tree:
        told = tree.told()
        assert of(tree.pid, [told["leaf"]]) == {tree.pid, *told.values()}
        tree.first.kill()
        tree.first.wait()
        assert of(tree.pid, [told["leaf"]]) == set(told.values()), "its leader too may have gone"


def test_a_session_of_the_same_user_stays_in_the_tree() -> None:
    with family("tell(leaf=child(lambda: (os.setsid(), tell(), rest()))); rest()") as tree:
        told = {**tree.told(), **tree.told()}
        assert of(tree.pid, [tree.pid]) == {tree.pid, told["leaf"]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_session_of_another_user_is_the_end_of_a_tree() -> None:
    program = """
def guest():
    os.setsid(); os.setresuid(65534, 65534, 65534); tell(below=child()); rest()
def sudo():
    os.setresuid(65534, 65534, 65534); tell(same=os.getpid()); rest()
tell(guest=child(guest), same=child(sudo)); rest()
"""
    with family(program) as tree:
        told = {**tree.told(), **tree.told(), **tree.told()}
        assert of(tree.pid, [tree.pid]) == {tree.pid, told["same"]}
        assert of(told["guest"], [told["guest"]]) == {told["guest"], told["below"]}


def test_one_look_serves_a_probe_and_the_next_probe_looks_again() -> None:
    with family("tell(first=child()); os.wait(); tell(second=child()); rest()") as tree:
        first = tree.told()["first"]
        known = ProcessMembers("/")
        assert of(tree.pid, [tree.pid], members=known) == {tree.pid, first}
        os.kill(first, signal.SIGKILL)
        second = tree.told()["second"]
        assert of(tree.pid, [tree.pid], members=known) == {tree.pid, first}
        known.refresh()
        assert second in of(tree.pid, [tree.pid], members=known)


def test_the_next_process_with_a_members_pid_is_no_member() -> None:
    known = ProcessMembers("/")
    program = "tell(leaf=child()); os.wait(); tell(); rest()"
    with family(program) as tree:
        leaf = tree.told()["leaf"]
        assert of(tree.pid, [tree.pid], members=known) == {tree.pid, leaf}
        os.kill(leaf, signal.SIGKILL)
        tree.told()
        with stranger(leaf):
            known.refresh()
            assert of(tree.pid, [tree.pid], members=known) == {tree.pid}


@pytest.mark.parametrize("cgroup", [TRAINER, DOCKER, f"{JOB}/step_0", SERVICE])
def test_what_was_placed_elsewhere_is_the_end_of_a_tree(host: HostTree, cgroup: str) -> None:
    host.start(41, SESSION)
    host.start(42, cgroup, parent=41)
    host.start(43, cgroup, parent=42, session=42)
    host.start(44, SESSION.replace("3", "4"), parent=41)
    assert members(host, owner(host, 41), 41) == {41, 44}


def test_whose_a_session_is_is_asked_again_in_the_next_probe(host: HostTree) -> None:
    host.start(41, SESSION)
    host.start(42, SESSION, parent=41)
    workload = owner(host, 41)
    known = ProcessMembers(host.root)
    assert known.of(workload, [41]) == {41, 42}
    host.start(42, SESSION, parent=41, uid=1002)
    known.refresh()
    assert known.of(workload, [41]) == {41}


def test_a_session_whose_user_cannot_be_read_is_left_out(host: HostTree) -> None:
    host.start(41, SESSION)
    host.start(42, SESSION, parent=41)
    (host.root / "proc/42/status").unlink()
    assert members(host, owner(host, 41), 41) == {41}


@pytest.fixture
def booted(host: HostTree) -> HostTree:
    host.start(1, "/init.scope", comm="systemd", parent=0)
    host.start(2, None, comm="kthreadd", parent=0, group=0, session=0, flags=0x208040)
    host.start(3, None, comm="kworker", parent=2, group=0, session=0, flags=0x208040)
    host.start(41, SESSION, group=0)
    return host


@pytest.mark.parametrize("group", ["0", "1", "2", "unknown", "-1", "", "٣"])
def test_init_and_the_kernel_head_no_tree(booted: HostTree, group: str) -> None:
    workload = Workload("process", group, 0)
    assert members(booted, workload, 41) == {41}
    assert members(booted, workload, 1, 2) == {1, 2}, "no more than was given"


def test_a_child_that_is_older_than_its_parent_is_anothers(host: HostTree) -> None:
    host.start(41, SESSION, ticks=900)
    host.start(42, SESSION, ticks=800, parent=41, session=41)
    host.start(43, SESSION, ticks=900, parent=41, session=41)
    assert members(host, owner(host, 41), 41) == {41, 43}


def test_parents_in_a_circle_end(host: HostTree) -> None:
    host.start(41, SESSION, parent=42, session=9)
    host.start(42, SESSION, parent=41, session=9)
    assert members(host, owner(host, 41), 41) == {41, 42}
    assert members(host, Workload("slurm", "7", 0), 41) == {41, 42}


def test_those_given_are_in_the_answer_though_nobody_sees_them(host: HostTree) -> None:
    host.start(41, TRAINER)
    workload = owner(host, 41)
    assert members(host, workload, 41, 77) == {41, 77}
    assert members(host, Workload("vgpu", "vm-1", 0), 77) == {77}
    assert members(host, Workload("vgpu", "vm-1", 0)) == set()
