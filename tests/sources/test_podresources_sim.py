"""The simulated kubelet tells the truth about its machine, to the source that reads a real one."""

from pathlib import Path
from typing import Any

import pytest

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources.pods import PodContainer
from seedance_obs.sources.podresources.source import PodResourcesSource
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.kubelet import SimulatedKubelet
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import boards
from tests.sim.one_gpu import machine_with

POD = {"namespace": "vision", "name": "job-0", "container": "main"}


def listed(
    socket: Path, machine: Machine, t: float = 0.0, **options: float
) -> tuple[PodContainer, ...]:
    with SimulatedKubelet(machine, socket, now=lambda: t, **options):
        return PodResourcesSource(socket, timeout_seconds=30).read().containers


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


def one_pod(**changes: Any) -> Machine:
    return machine_with({"pod": POD, **changes}, kubernetes=True)


def test_a_pod_holds_its_boards_by_uuid_with_their_numa_node(socket: Path) -> None:
    machine = one_pod()
    (found,) = listed(socket, machine)
    assert (found.namespace, found.pod, found.container) == ("vision", "job-0", "main")
    (device,) = found.devices
    assert (device.gpu_uuid, device.replica) == (machine.gpu_uuid(0), None)
    assert device.numa == frozenset({0})


def test_a_pod_holds_its_mig_instances_by_uuid(socket: Path) -> None:
    machine = load_machine("h100-mig")
    held = {each.pod: [one.mig_uuid for one in each.devices] for each in listed(socket, machine)}
    assert held["search-ranking-0"] == [machine.mig_uuid(0, 0)]
    assert held["wake-word-0"] == [machine.mig_uuid(0, 1), machine.mig_uuid(0, 2)]
    assert held["detector-train-0"] == [None, None]


def test_pods_that_share_a_board_hold_one_replica_each(socket: Path) -> None:
    def sharer(number: int) -> dict[str, Any]:
        return {"name": f"job-{number}", "share": 0.5, "pod": POD | {"name": f"job-{number}"}}

    machine = machine_with(sharer(0), sharer(1), kubernetes=True)
    devices = {each.pod: each.devices[0] for each in listed(socket, machine)}
    assert {device.gpu_uuid for device in devices.values()} == {machine.gpu_uuid(0)}
    assert {pod: device.replica for pod, device in devices.items()} == {"job-0": 0, "job-1": 1}


def test_pods_that_hold_a_board_after_each_other_do_not_share_it(socket: Path) -> None:
    first = {"name": "a", "duration_s": 10, "pod": POD}
    second = {"name": "b", "start_s": 10, "pod": POD | {"name": "job-1"}}
    (found,) = listed(socket, machine_with(first, second, kubernetes=True), 20.0)
    assert (found.pod, found.devices[0].replica) == ("job-1", None)


def test_containers_of_one_pod_are_listed_in_it(socket: Path) -> None:
    machine = machine_with(
        {"name": "a", "share": 0.5, "pod": POD},
        {"name": "b", "share": 0.5, "pod": POD | {"container": "helper"}},
        kubernetes=True,
    )
    with SimulatedKubelet(machine, socket, now=lambda: 0.0):
        found = PodResourcesSource(socket, timeout_seconds=30).get("vision", "job-0")
    assert found is not None
    assert [each.container for each in found] == ["main", "helper"]


@pytest.mark.parametrize(
    ("t", "lag_s", "stale_s", "is_listed"),
    [
        (99.9, 0, 0, False),
        (100.0, 0, 0, True),
        (149.9, 0, 0, True),
        (150.0, 0, 0, False),
        (250.0, 0, 0, False),
        (300.0, 0, 0, True),  # the second run
        (109.9, 10, 0, False),
        (110.0, 10, 0, True),
        (150.0, 10, 0, False),
        (309.9, 10, 0, False),
        (310.0, 10, 0, True),
        (179.9, 0, 30, True),
        (180.0, 0, 30, False),
        (179.9, 10, 30, True),
        (305.0, 10, 160, True),  # the first run, still
    ],
)
def test_a_pod_is_listed_while_it_runs_late_or_too_long_as_asked(
    socket: Path, t: float, lag_s: float, stale_s: float, is_listed: bool
) -> None:
    machine = one_pod(start_s=100, duration_s=50, repeat_every_s=200)
    assert bool(listed(socket, machine, t, lag_s=lag_s, stale_s=stale_s)) is is_listed


def test_the_list_follows_the_clock(socket: Path) -> None:
    moments = iter([0.0, 5.0, 20.0])
    machine = one_pod(start_s=5, duration_s=10)
    with SimulatedKubelet(machine, socket, now=lambda: next(moments)):
        source = PodResourcesSource(socket, timeout_seconds=30)
        assert [len(source.read().containers) for _ in range(3)] == [0, 1, 0]


def test_a_machine_without_kubernetes_lists_nothing(socket: Path) -> None:
    assert listed(socket, machine_with({"pod": POD}, kubernetes=False)) == ()
    assert listed(socket, machine_with({}, kubernetes=True)) == ()


def test_a_pod_that_is_not_there_is_not_found(socket: Path) -> None:
    with SimulatedKubelet(one_pod(), socket, now=lambda: 0.0):
        assert PodResourcesSource(socket, timeout_seconds=30).get("vision", "job-1") is None


def test_every_board_and_instance_can_be_handed_out(socket: Path) -> None:
    machine = load_machine("h100-mig")
    with SimulatedKubelet(machine, socket, now=lambda: 0.0):
        found = PodResourcesSource(socket, timeout_seconds=30).allocatable()
    migs = {machine.mig_uuid(0, index) for index in range(4)}
    assert {device.mig_uuid for device in found if device.is_mig} == migs
    whole = {device.gpu_uuid for device in found if not device.is_mig}
    assert whole == {machine.gpu_uuid(index) for index in range(1, 8)}


@pytest.mark.parametrize("name", machine_names())
@pytest.mark.parametrize("t", [0.0, 61.0, 1000.0])
def test_every_process_of_a_pod_is_on_a_device_that_its_pod_holds(
    socket: Path, name: str, t: float
) -> None:
    machine = load_machine(name)
    held = {
        (each.pod, each.container, device.gpu_uuid, device.mig_uuid)
        for each in listed(socket, machine, t)
        for device in each.devices
    }
    running = set()
    for board in boards(machine):
        for process in board.processes(t):
            pod, mig = process.workload.pod, process.holding.mig
            if pod is not None and machine.kubernetes:
                gpu_uuid = machine.gpu_uuid(board.gpu.index) if mig is None else None
                mig_uuid = None if mig is None else machine.mig_uuid(board.gpu.index, mig)
                running.add((pod.pod, pod.container, gpu_uuid, mig_uuid))
    assert running <= held
    if not machine.faults:
        assert running == held


def test_the_socket_is_free_again_after_the_block(socket: Path) -> None:
    for _ in range(3):
        assert len(listed(socket, one_pod())) == 1
    with pytest.raises(SourceUnavailableError):
        PodResourcesSource(socket, timeout_seconds=30).read()
