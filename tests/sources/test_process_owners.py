"""From a pid to the workload that a scheduler placed, on made-up hosts."""

import itertools
import os
from pathlib import Path

import pytest

from seedance_obs.sources import process_owners
from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.workload_reader import WorkloadReader
from seedance_obs.workload import Workload
from tests.sources.host_tree import BOOT, CID, JOB, POD, SIDECAR, TICKS, UID, HostTree

TRAINER = f"{POD}/cri-containerd-{CID}.scope"
DOCKER = f"/system.slice/docker-{CID}.scope"
SESSION = "/user.slice/user-1001.slice/session-3.scope"


@pytest.fixture
def host(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


def found(owners: ProcessOwners, pid: int) -> Workload:
    workload = owners.owner(pid)
    assert workload is not None
    return workload


def test_a_pods_process_belongs_to_the_pod(host: HostTree) -> None:
    host.containerd(CID, "trainer")
    host.start(42, TRAINER, ticks=60 * TICKS)
    assert found(ProcessOwners(host.root), 42) == Workload(
        kind="pod",
        uid=UID,
        started_at=BOOT + 60,
        namespace="ml",
        pod="train-0",
        container="trainer",
        image="registry.example/train:1",
        cgroup=POD,
    )


def test_a_pod_whose_runtime_cannot_be_read_is_named_by_its_logs(host: HostTree) -> None:
    (host.root / f"var/log/pods/ml_train-0_{UID}").mkdir(parents=True)
    host.start(42, TRAINER)
    workload = found(ProcessOwners(host.root), 42)
    assert (workload.namespace, workload.pod, workload.container) == ("ml", "train-0", "")


def test_a_pod_that_nothing_names_still_has_its_uid(host: HostTree) -> None:
    host.start(42, TRAINER)
    workload = found(ProcessOwners(host.root), 42)
    assert (workload.kind, workload.uid, workload.pod, workload.user) == ("pod", UID, "", "")


def test_a_container_that_its_runtime_places_in_a_pod_is_the_pods(host: HostTree) -> None:
    host.containerd(CID, "trainer")
    host.start(42, f"/../cri-containerd-{CID}.scope")  # seen from another cgroup namespace
    workload = found(ProcessOwners(host.root), 42)
    assert (workload.kind, workload.uid, workload.pod) == ("pod", UID, "train-0")


def test_a_job_belongs_to_its_account_and_user(host: HostTree) -> None:
    told = ("SLURM_JOB_ID=42", "SLURM_JOB_ACCOUNT=physics", "SLURM_JOB_USER=anna-ldap")
    host.start(7, f"{JOB}/step_0/user/task_0", ticks=900, environment=told)
    assert found(ProcessOwners(host.root), 7) == Workload(
        kind="slurm",
        uid="42",
        started_at=BOOT + 9,
        slurm_job="42",
        slurm_account="physics",
        user="anna-ldap",
        cgroup=JOB,
    )


def test_the_first_process_of_a_job_tells_its_account_not_a_later_one(host: HostTree) -> None:
    host.start(6, f"{JOB}/step_batch/slurm", ticks=100, uid=0)
    told = ("SLURM_JOB_ID=42", "SLURM_JOB_ACCOUNT=physics")
    host.start(7, f"{JOB}/step_batch/user/task_0", ticks=110, environment=told)
    claimed = ("SLURM_JOB_ID=42", "SLURM_JOB_ACCOUNT=somebody-else")
    host.start(8, f"{JOB}/step_batch/user/task_0", ticks=500, environment=claimed)
    assert found(ProcessOwners(host.root), 8).slurm_account == "physics"


def test_an_environment_of_another_job_tells_nothing(host: HostTree) -> None:
    told = ("SLURM_JOB_ID=41", "SLURM_JOB_ACCOUNT=physics", "SLURM_JOB_USER=berta")
    host.start(7, f"{JOB}/step_0/user/task_0", environment=told)
    workload = found(ProcessOwners(host.root), 7)
    assert (workload.slurm_job, workload.slurm_account, workload.user) == ("42", "", "anna")


def test_a_job_named_by_its_sluid_shows_its_number(host: HostTree) -> None:
    told = ("SLURM_JOB_ID=42", "SLURM_JOB_SLUID=s5K1KKYAYG5D00")
    scope = "/system.slice/slurmstepd.scope"
    host.start(7, f"{scope}/s5K1KKYAYG5D00/step_0/user/task_0", environment=told)
    workload = found(ProcessOwners(host.root), 7)
    assert (workload.uid, workload.slurm_job) == ("s5K1KKYAYG5D00", "42")


def test_a_job_without_cgroups_of_its_own_is_told_by_its_environment(host: HostTree) -> None:
    host.start(5, "/system.slice/slurmd.service", ticks=10, uid=0)
    told = ("SLURM_JOB_ID=42", "SLURM_JOB_ACCOUNT=physics")
    host.start(7, "/system.slice/slurmd.service", ticks=900, environment=told)
    workload = found(ProcessOwners(host.root), 7)
    assert (workload.kind, workload.uid, workload.started_at) == ("slurm", "42", BOOT + 9)
    assert workload.slurm_account == "physics"


def test_outside_slurms_daemon_an_environment_claims_no_job(host: HostTree) -> None:
    host.start(7, SESSION, environment=("SLURM_JOB_ID=42",))
    assert found(ProcessOwners(host.root), 7).kind == "process"


def test_with_cgroup_v1_a_job_is_found_by_whichever_controller_has_it(tmp_path: Path) -> None:
    host = HostTree(tmp_path, v1="freezer")
    host.start(7, None, ticks=700)
    job = "/slurm/uid_1001/job_42"
    lines = f"9:memory:/system.slice/slurmd.service\n5:freezer:{job}/step_0\n0::/\n"
    host.write("proc/7/cgroup", lines)
    host.start(6, f"{job}/step_batch", ticks=200, uid=0)
    workload = found(ProcessOwners(host.root), 7)
    assert (workload.kind, workload.uid, workload.cgroup) == ("slurm", "42", job)
    assert (workload.started_at, workload.user) == (BOOT + 2, "anna")


def test_a_docker_container_goes_by_its_name_and_user(host: HostTree) -> None:
    host.docker(CID, "jupyter", "jupyter/gpu:2")
    host.start(42, DOCKER, ticks=1200)
    assert found(ProcessOwners(host.root), 42) == Workload(
        kind="container",
        uid=CID,
        started_at=BOOT + 12,
        container="jupyter",
        image="jupyter/gpu:2",
        user="anna",
        cgroup=DOCKER,
    )


def test_a_users_own_container_is_that_users_whatever_its_mapped_uid(host: HostTree) -> None:
    manager = "/user.slice/user-1001.slice/user@1001.service/user.slice"
    host.start(42, f"{manager}/libpod-{CID}.scope/container", uid=100_999)
    assert found(ProcessOwners(host.root), 42).user == "anna"


def test_a_service_goes_by_its_unit(host: HostTree) -> None:
    host.start(41, "/system.slice/ollama.service", ticks=300)
    host.start(42, "/system.slice/ollama.service", ticks=800)
    workload = found(ProcessOwners(host.root), 42)
    assert (workload.kind, workload.uid) == ("service", "ollama.service")
    assert (workload.started_at, workload.user) == (BOOT + 3, "anna")


def test_anything_else_is_its_process_group_from_its_leader_on(host: HostTree) -> None:
    host.start(41, SESSION, ticks=300)
    host.start(42, SESSION, ticks=800, group=41)
    owners = ProcessOwners(host.root)
    workload = found(owners, 42)
    assert (workload.kind, workload.uid, workload.started_at) == ("process", "41", BOOT + 3)
    assert (workload.user, workload.cgroup) == ("anna", SESSION)
    assert found(owners, 41) == workload


def test_a_group_outlives_its_leader_with_the_same_key(host: HostTree) -> None:
    host.start(41, SESSION, ticks=300)
    host.start(42, SESSION, ticks=800, group=41)
    host.start(43, SESSION, ticks=900, group=41)
    owners = ProcessOwners(host.root)
    before = found(owners, 42)
    host.end(41)
    owners.keep([42])
    assert found(owners, 43) == before


def test_a_group_whose_leader_went_unseen_keeps_one_key_for_all(host: HostTree) -> None:
    host.start(42, SESSION, ticks=800, group=41)
    host.start(43, SESSION, ticks=700, group=41)
    owners = ProcessOwners(host.root)
    assert found(owners, 42).key == found(owners, 43).key


def test_processes_whose_group_is_hidden_are_not_thrown_together(host: HostTree) -> None:
    host.start(42, SESSION, group=0)
    host.start(43, SESSION, group=0)
    owners = ProcessOwners(host.root)
    assert [found(owners, pid).uid for pid in (42, 43)] == ["42", "43"]


def test_a_process_in_a_cgroup_nobody_has_seen_is_its_process_group(host: HostTree) -> None:
    host.start(42, "/martian.slice/pod-of-whales")
    assert found(ProcessOwners(host.root), 42).kind == "process"
    (host.root / "proc/42/cgroup").unlink()
    assert found(ProcessOwners(host.root), 42).kind == "process"


WORKLOADS = {
    "pod": (f"{POD}/cri-containerd-{SIDECAR}.scope", TRAINER),
    "slurm": (f"{JOB}/step_extern/user/task_special", f"{JOB}/step_0/user/task_0"),
    "container": (DOCKER, f"{DOCKER}/worker"),
    "service": ("/system.slice/ollama.service", "/system.slice/ollama.service/runner"),
}


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("order", list(itertools.permutations([11, 12, 13])))
def test_a_workload_has_one_start_in_whatever_order_its_processes_are_seen(
    host: HostTree, kind: str, order: tuple[int, ...]
) -> None:
    first, second = WORKLOADS[kind]
    host.start(10, first, ticks=1000)  # holds no GPU, so nobody asks for it
    for pid in (11, 12, 13):
        host.start(pid, second, ticks=pid * 1000)
    owners = ProcessOwners(host.root)
    assert {found(owners, pid) for pid in order} == {found(owners, 11)}
    assert found(owners, 11).key.endswith(f"-{BOOT + 10}")
    assert found(owners, 11).kind == kind


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_keeps_its_start_when_its_first_process_ends(host: HostTree, kind: str) -> None:
    first, second = WORKLOADS[kind]
    host.start(10, first, ticks=1000)
    host.start(11, second, ticks=2000)
    owners = ProcessOwners(host.root)
    before = found(owners, 11)
    host.end(10)
    host.start(12, second, ticks=3000)
    assert found(owners, 12) == before
    owners.keep([12])
    assert found(owners, 12) == before


@pytest.mark.parametrize("kind", WORKLOADS)
def test_unreadable_cgroups_cost_the_start_of_what_was_not_asked_for(
    host: HostTree, kind: str
) -> None:
    _, second = WORKLOADS[kind]
    host.start(11, None, ticks=2000)
    host.start(12, None, ticks=1000)
    for pid in (11, 12):
        host.write(f"proc/{pid}/cgroup", f"0::{second}\n")
    owners = ProcessOwners(host.root)
    assert found(owners, 11).started_at == BOOT + 20
    assert found(owners, 12) == found(owners, 11)


def test_a_pod_between_two_programs_is_still_the_same(host: HostTree) -> None:
    host.start(11, TRAINER, ticks=2000)
    owners = ProcessOwners(host.root)
    before = found(owners, 11)
    host.end(11)
    owners.keep([])
    host.start(12, TRAINER, ticks=3000)
    assert found(owners, 12) == before


def test_a_job_between_two_steps_is_still_the_same(host: HostTree) -> None:
    host.start(10, f"{JOB}/step_batch/user/task_0", ticks=1000)
    host.start(11, f"{JOB}/step_0/user/task_0", ticks=2000)
    owners = ProcessOwners(host.root)
    before = found(owners, 11)
    host.end(11)
    owners.keep([])
    host.start(12, f"{JOB}/step_1/user/task_0", ticks=3000)
    assert found(owners, 12).key == before.key


@pytest.mark.parametrize("pruned", [True, False])
@pytest.mark.parametrize("kind", ["slurm", "container", "service"])
def test_a_requeued_job_or_restarted_service_is_another_workload(
    host: HostTree, kind: str, pruned: bool
) -> None:
    first, second = WORKLOADS[kind]
    host.start(10, first, ticks=1000)
    host.start(11, second, ticks=2000)
    owners = ProcessOwners(host.root)
    before = found(owners, 11)
    host.end(10)
    host.end(11)
    if pruned:
        owners.keep([])
    host.start(12, second, ticks=5000)
    again = found(owners, 12)
    assert (again.uid, again.started_at) == (before.uid, BOOT + 50)


def test_a_reused_pid_inherits_nothing(host: HostTree) -> None:
    host.start(42, DOCKER, ticks=500)
    owners = ProcessOwners(host.root)
    assert found(owners, 42).kind == "container"
    host.end(42)
    host.start(42, SESSION, ticks=900)
    assert found(owners, 42) == Workload("process", "42", BOOT + 9, user="anna", cgroup=SESSION)


def test_a_reused_group_number_inherits_nothing(host: HostTree) -> None:
    host.start(41, SESSION, ticks=300)
    owners = ProcessOwners(host.root)
    assert found(owners, 41).started_at == BOOT + 3
    host.end(41)
    host.start(42, SESSION, ticks=900, group=41)  # its leader came and went unseen
    assert found(owners, 42).started_at == BOOT + 9


def test_a_process_that_is_gone_belongs_to_nobody(host: HostTree) -> None:
    host.start(42, TRAINER)
    owners = ProcessOwners(host.root)
    assert owners.owner(43) is None
    assert owners.owner(42) is not None
    host.end(42)
    assert owners.owner(42) is None


@pytest.mark.parametrize("text", ["", "42", "42 (x", "42 (x) R 1 1", "42 (x) R 1 b " + "0 " * 40])
def test_a_process_whose_state_is_garbled_belongs_to_nobody(host: HostTree, text: str) -> None:
    host.start(42, TRAINER)
    host.write("proc/42/stat", text)
    assert ProcessOwners(host.root).owner(42) is None


@pytest.mark.parametrize(("reader", "step"), [(ProcessOwners, "_facts"), (WorkloadReader, "read")])
def test_a_process_that_dies_between_two_reads_belongs_to_nobody(
    host: HostTree, monkeypatch: pytest.MonkeyPatch, reader: type, step: str
) -> None:
    host.start(42, TRAINER)
    real = getattr(reader, step)

    def dying(*args: object, **options: object) -> object:
        host.end(42)
        monkeypatch.setattr(reader, step, real)
        return real(*args, **options)

    monkeypatch.setattr(reader, step, dying)
    owners = ProcessOwners(host.root)
    assert owners.owner(42) is None
    host.start(42, SESSION, ticks=900)
    assert found(owners, 42).kind == "process"


def test_a_pid_reused_between_two_reads_belongs_to_nobody_yet(
    host: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.start(42, TRAINER, ticks=500)
    real = process_owners.read_process

    def reused(proc: str, pid: int) -> object:
        monkeypatch.setattr(process_owners, "read_process", real)
        host.end(42)
        host.start(42, SESSION, ticks=900)
        return real(proc, pid)

    monkeypatch.setattr(process_owners, "read_process", reused)
    owners = ProcessOwners(host.root)
    owners._host_pids = True
    assert owners.owner(42) is None
    assert found(owners, 42).kind == "process"


def test_a_pid_reused_at_the_last_moment_belongs_to_nobody_yet(
    host: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.start(41, TRAINER, ticks=400)
    host.start(42, TRAINER, ticks=500)
    owners = ProcessOwners(host.root)
    pod = found(owners, 41)
    real = ProcessOwners._facts

    def reused(self: ProcessOwners, *args: object) -> object:
        facts = real(self, *args)
        host.end(42)
        host.start(42, SESSION, ticks=900)
        return facts

    monkeypatch.setattr(ProcessOwners, "_facts", reused)
    assert owners.owner(42) is None
    monkeypatch.undo()
    assert found(owners, 42).kind == "process"
    assert found(owners, 41) == pod


def test_a_known_process_costs_one_read(host: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    host.start(42, TRAINER)
    owners = ProcessOwners(host.root)
    before = found(owners, 42)
    opened: list[object] = []
    real_open = os.open

    def counted(file: str, flags: int) -> int:
        opened.append(file)
        return real_open(file, flags)

    monkeypatch.setattr(os, "open", counted)
    monkeypatch.setattr(Path, "read_text", None)  # any other read would fail
    assert owners.owner(42) is before
    assert opened == [f"{host.root}/proc/42/stat"]


def test_ended_processes_are_forgotten(host: HostTree) -> None:
    owners = ProcessOwners(host.root)
    for pid in range(100, 150):
        host.start(pid, SESSION)
        owners.owner(pid)
    owners.keep([149, 7])
    assert list(owners._owners) == [149]
    assert list(owners._known) == [("process", "149")]


def test_memory_is_bounded_over_births_and_deaths(
    host: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_owners, "_WORKLOADS_KEPT", 5)
    monkeypatch.setattr(process_owners, "_PROCESSES_KEPT", 3)
    owners = ProcessOwners(host.root)
    for pid in range(100, 140):
        host.start(pid, f"/kubepods/pod{UID[:-3]}{pid}/{CID}")
        assert found(owners, pid).uid == f"{UID[:-3]}{pid}"
    assert len(owners._owners) == 3
    assert len(owners._known) == 5


def test_starts_are_counted_from_the_boot_that_accounts_were_kept_by(host: HostTree) -> None:
    host.start(42, SESSION, ticks=500)
    assert found(ProcessOwners(host.root, boot_unix=BOOT + 1), 42).started_at == BOOT + 6


def test_a_clock_that_is_set_moves_no_start(host: HostTree) -> None:
    host.start(42, SESSION, ticks=500)
    host.start(43, SESSION, ticks=500)
    owners = ProcessOwners(host.root)
    before = found(owners, 42)
    host.write("proc/stat", f"btime {BOOT + 3600}\n")
    assert found(owners, 43).started_at == before.started_at
    assert owners.boot_unix == BOOT


def test_without_a_boot_time_no_start_is_made_up(host: HostTree) -> None:
    host.start(42, SESSION)
    host.write("proc/stat", "cpu 1 2 3\n")
    assert ProcessOwners(host.root).owner(42) is None


def name_pid_namespace(host: HostTree, name: str) -> None:
    host.start(1, None, uid=0)
    (host.root / "proc/1/ns").mkdir()
    (host.root / "proc/1/ns/pid").symlink_to(name)


def test_the_hosts_pid_namespace_is_known_by_its_inode(host: HostTree) -> None:
    name_pid_namespace(host, "pid:[4026531836]")
    assert ProcessOwners(host.root).host_pids is True


def test_in_a_containers_pid_namespace_no_pid_of_a_driver_has_an_owner(host: HostTree) -> None:
    name_pid_namespace(host, "pid:[4026532469]")
    host.start(42, SESSION)
    owners = ProcessOwners(host.root)
    assert owners.host_pids is False
    assert owners.owner(42) is None


@pytest.mark.parametrize(("second", "shown"), [("kthreadd", True), ("bash", False)])
def test_where_namespaces_are_hidden_the_kernels_own_thread_tells(
    host: HostTree, second: str, shown: bool
) -> None:
    host.start(1, None, uid=0)
    host.start(2, None, uid=0)
    stat = host.root / "proc/2/stat"
    stat.write_text(stat.read_text().replace("python3 -m", second))
    assert ProcessOwners(host.root).host_pids is shown


@pytest.mark.parametrize(("own", "shown"), [("pid:[4026531836]", True), ("pid:[4026532469]", None)])
def test_where_others_are_hidden_this_processs_own_namespace_tells_if_it_is_the_hosts(
    host: HostTree, own: str, shown: bool | None
) -> None:
    (host.root / "proc/self/ns").mkdir(parents=True)
    (host.root / "proc/self/ns/pid").symlink_to(own)
    assert ProcessOwners(host.root).host_pids is shown


def test_the_first_processs_namespace_counts_more_than_this_ones(host: HostTree) -> None:
    name_pid_namespace(host, "pid:[4026532469]")
    (host.root / "proc/self/ns").mkdir(parents=True)
    (host.root / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert ProcessOwners(host.root).host_pids is False


def test_where_not_even_the_first_process_shows_nobody_can_tell(host: HostTree) -> None:
    host.start(42, SESSION)
    owners = ProcessOwners(host.root)
    assert owners.host_pids is None
    assert owners.owner(42) is not None
