"""Who processes and pods are: looked up while they live, remembered for a while, then forgotten."""

import threading

import pytest

from seedance_obs.exporter.books.people import PODS_REMEMBERED, REMEMBERED_SECONDS, People
from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.readings import GpuProcess, GpuReadings, ProcessUse, SourceSnapshot
from seedance_obs.workload import Workload
from tests.sources.host_tree import CID, POD, UID, HostTree

PATIENCE_SECONDS = 20.0


class Owners:
    """Owners that say what the test puts into them."""

    def __init__(self) -> None:
        self.owners: dict[int, Workload] = {}
        self.pods: dict[tuple[str, str], Workload] = {}
        self.kept: set[int] = set()
        self.odd: set[int] = set()
        self.go_on = threading.Event()
        self.go_on.set()
        self.asked = threading.Event()

    def owner(self, pid: int) -> Workload | None:
        self.asked.set()
        assert self.go_on.wait(PATIENCE_SECONDS)
        if pid in self.odd:
            raise ValueError(f"process {pid} is odd")
        return self.owners.get(pid)

    def keep(self, pids: set[int]) -> None:
        self.kept = set(pids)

    def pod(self, namespace: str, pod: str, _container: str) -> Workload | None:
        return self.pods.get((namespace, pod))


@pytest.fixture
def owners() -> Owners:
    return Owners()


@pytest.fixture
def people(owners: Owners) -> People:
    return People(owners, owners)


def seen(taken_at: float, *pids: int) -> SourceSnapshot:
    processes = tuple(GpuProcess(pid, memory_bytes=1) for pid in pids)
    return SourceSnapshot("nvml", taken_at, gpus=(GpuReadings("GPU-0", processes=processes),))


def pod(uid: str, started_at: int = 5) -> Workload:
    return Workload("pod", uid, started_at, "ml", f"pod-{uid}")


def test_an_ended_process_keeps_its_owner_for_a_moment_and_is_then_forgotten(owners, people):
    owners.owners = {7: pod("a"), 8: pod("b")}
    people.observe(seen(100.0, 7, 8))
    people.observe(seen(100.0 + REMEMBERED_SECONDS, 8))
    assert people.owned() == {7: pod("a"), 8: pod("b")}
    assert owners.kept == {8}
    people.observe(seen(100.1 + REMEMBERED_SECONDS, 8))
    assert people.owned() == {8: pod("b")}


def test_a_process_that_has_used_a_board_is_looked_up_though_it_is_not_listed(owners, people):
    owners.owners = {7: pod("a")}
    gpu = GpuReadings("GPU-0", process_use=(ProcessUse(7, 0.5),))
    people.observe(SourceSnapshot("nvml", 1.0, gpus=(gpu,)))
    assert people.owned() == {7: pod("a")}


def test_an_odd_process_costs_its_own_owner_and_is_reported(owners, people):
    owners.owners = {7: pod("a"), 8: pod("b"), 9: pod("c")}
    owners.odd = {8}
    with pytest.raises(ValueError, match="process 8 is odd"):
        people.observe(seen(1.0, 7, 8, 9))
    assert people.owned() == {7: pod("a"), 9: pod("c")}
    assert owners.kept == {7, 8, 9}


def test_a_look_up_that_hangs_holds_nobody_else_up(owners, people):
    owners.owners = {7: pod("a")}
    people.observe(seen(1.0, 7))
    owners.go_on.clear()
    owners.asked.clear()
    hanging = threading.Thread(target=people.observe, args=(seen(2.0, 7),), daemon=True)
    hanging.start()
    assert owners.asked.wait(PATIENCE_SECONDS)
    told: list[object] = []
    done = threading.Event()

    def ask() -> None:
        told.extend((people.owned(), people.pod("ml", "pod-a", ""), people.pod("ml", "no", "")))
        done.set()

    threading.Thread(target=ask, daemon=True).start()
    answered = done.wait(PATIENCE_SECONDS / 2)
    owners.go_on.set()
    hanging.join(PATIENCE_SECONDS)
    assert answered
    assert told == [{7: pod("a")}, pod("a"), None]


def test_of_pods_of_one_name_the_one_that_runs_now_is_meant(owners, people):
    owners.pods["ml", "pod-a"] = pod("old")
    owners.owners = {7: Workload("pod", "new", 9, "ml", "pod-a")}
    people.observe(seen(1.0, 7))
    assert people.pod("ml", "pod-a", "").uid == "new"
    people.observe(seen(2.0))
    assert people.pod("ml", "pod-a", "").uid == "old"


def test_a_pod_has_one_start_though_its_first_process_has_ended_before_it_used_a_board(tmp_path):
    host = HostTree(tmp_path)
    host.write(f"var/log/pods/ml_train-0_{UID}/main/0.log", "")
    people = People(ProcessOwners(tmp_path), ProcessOwners(tmp_path))
    host.start(7, f"{POD}/cri-containerd-{CID}.scope", ticks=500)
    host.start(8, f"{POD}/cri-containerd-{CID}.scope", ticks=900)
    by_name = people.pod("ml", "train-0", "main")
    assert by_name is not None
    host.end(7)
    people.observe(seen(1.0, 8))
    assert people.owned()[8].key == by_name.key == f"pod-{UID}-1732960005"


def test_a_pod_that_was_first_seen_by_a_process_keeps_that_start_by_its_name(tmp_path):
    host = HostTree(tmp_path)
    host.write(f"var/log/pods/ml_train-0_{UID}/main/0.log", "")
    people = People(ProcessOwners(tmp_path), ProcessOwners(tmp_path))
    host.start(7, f"{POD}/cri-containerd-{CID}.scope", ticks=500)
    people.observe(seen(1.0, 7))
    host.start(8, f"{POD}/cri-containerd-{CID}.scope", ticks=900)
    host.end(7)
    people.observe(seen(2.0))
    by_name = people.pod("ml", "train-0", "main")
    assert by_name is not None
    assert by_name.key == f"pod-{UID}-1732960005"


def test_pods_that_came_and_went_are_not_remembered_for_ever(owners, people):
    for number in range(PODS_REMEMBERED + 10):
        owners.owners = {7: pod(str(number))}
        people.observe(seen(float(number), 7))
    assert len(people._starts) == PODS_REMEMBERED


def test_a_pod_that_runs_something_is_told_by_that_and_the_newest_of_one_name(owners, people):
    old, new = (Workload("pod", uid, at, "ml", "train-0") for uid, at in (("a", 100), ("b", 200)))
    owners.owners = {1: new, 2: old}
    people.observe(seen(0.0, 1, 2))
    assert people.pod("ml", "train-0", "main") == new
    people.observe(seen(1.0, 2))
    assert people.pod("ml", "train-0", "main") == old
