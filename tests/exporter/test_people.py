"""Whose the processes and pods of a pass are."""

from seedance_obs.exporter.people import REMEMBERED_SECONDS, People
from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.readings import GpuProcess, GpuReadings, SourceSnapshot
from seedance_obs.workload import Workload


def pod(uid: str, started_at: int) -> Workload:
    return Workload("pod", uid, started_at, namespace="research", pod="train-0")


OLD, NEW = pod("a", 100), pod("b", 200)


class Owners(ProcessOwners):
    """Two processes of pods of one name; the files of the host know of no pod."""

    def owner(self, pid):
        return {1: NEW, 2: OLD}.get(pid)

    def pod(self, _namespace, _pod, _container=""):
        return None


def seen(taken_at: float, *pids: int) -> SourceSnapshot:
    gpu = GpuReadings("GPU-0", processes=tuple(map(GpuProcess, pids)))
    return SourceSnapshot("nvml", taken_at, gpus=(gpu,))


def test_a_pod_that_runs_something_is_told_by_that_and_the_newest_of_one_name(tmp_path):
    people = People(Owners(tmp_path))
    people.observe(seen(0.0, 1, 2))
    assert people.pod("research", "train-0", "main") == NEW
    assert people.pod("research", "train-1", "main") is None
    people.observe(seen(1.0, 2))
    assert people.pod("research", "train-0", "main") == OLD
    people.observe(seen(2.0))
    assert people.pod("research", "train-0", "main") is None


def test_a_process_keeps_its_owner_for_a_moment_after_its_end(tmp_path):
    people = People(Owners(tmp_path))
    people.observe(seen(0.0, 1))
    people.observe(seen(REMEMBERED_SECONDS))
    assert people.owned() == {1: NEW}
    people.observe(seen(REMEMBERED_SECONDS + 1))
    assert people.owned() == {}
