"""A whole node: who was given what, who runs what, and what is free besides."""

import dataclasses

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.fragmentation import watch
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.sources.readings import GpuProcess, GpuReadings, Pod, SourceSnapshot
from seedance_obs.sources.sim.fleet import load_machine
from tests.attribution.simulated_node import simulated_node
from tests.exporter.books.test_workloads import Host, holds
from tests.sources.host_tree import CID, POD

STALE = 31  # seconds after which a source that fell silent is believed no more


@pytest.fixture
def host(clock, tmp_path) -> Host:
    host = Host(clock, tmp_path)
    host.driver.on = {"GPU-0": {}, "GPU-1": {}}
    return host


def scraped(host: Host) -> dict[str, float]:
    """The page's samples by name, with the one label that tells them apart."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CollectorSet(lambda: host.node.view, host.settings, monotonic=host.clock))
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            own = [sample.labels.get(name) for name in ("gpu_uuid", "gpus", "level")]
            found["/".join([sample.name, *filter(None, own)])] = sample.value
    return found


def free(host: Host) -> float | None:
    return scraped(host).get("seedance_node_free_gpus")


def test_a_pod_that_was_given_a_board_and_runs_nothing_has_taken_it(host):
    host.kubelet.containers = (holds("red", "idle", "GPU-1"),)
    host.run(2)
    page = scraped(host)
    assert page["seedance_gpu_free_ratio/GPU-0"] == 1.0
    assert page["seedance_gpu_free_ratio/GPU-1"] == 0.0
    assert page["seedance_node_free_gpus"] == page["seedance_node_gang_free_gpus/1"] == 1.0
    assert page["seedance_node_gang_free_gpus/2"] == 0.0
    assert page["seedance_node_placements_remembered"] == 1
    assert page["seedance_node_fragmentation_fgd_ratio"] == 0.0
    host.kubelet.containers = ()
    host.run(6)
    assert free(host) == 2.0


def test_a_process_that_nobody_placed_has_taken_the_board_it_runs_on(host):
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 0.0}
    host.run(2)
    assert free(host) == 1.0


def test_on_a_full_node_the_numbers_are_0_and_the_ratios_are_absent(host):
    host.kubelet.containers = tuple(holds("red", gpu, gpu) for gpu in ("GPU-0", "GPU-1"))
    host.run(2)
    page = scraped(host)
    assert page["seedance_node_free_gpus"] == 0.0
    assert page["seedance_node_fragmentation_fgd_gpus"] == 0.0
    assert page["seedance_node_stranded_free_gpus"] == 0.0
    assert not [name for name in page if name.startswith("seedance_node_frag") and "ratio" in name]


def test_while_the_kubelet_has_not_answered_nothing_is_called_free(host):
    host.kubelet.containers = None
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 0.0}
    host.run(2)
    page = scraped(host)
    assert "seedance_node_free_gpus" not in page
    assert page["seedance_node_holders_unknown_gpus"] == 1
    assert page["seedance_gpu_free_ratio/GPU-0"] == 0.0  # a process is there, whoever was given it
    assert "seedance_gpu_free_ratio/GPU-1" not in page
    host.kubelet.containers = ()
    host.run(6)
    assert free(host) == 1.0


def test_a_page_that_names_pods_stands_in_for_a_kubelet_that_never_answered(host, monkeypatch):
    """A page that names none may be of an exporter that is not told of pods."""
    host.kubelet.containers = None
    pods: tuple[Pod, ...] = ()
    real = host.driver.read

    def read() -> SourceSnapshot:
        told = real()
        first, second = told.gpus
        of_page = (dataclasses.replace(first, pods=()), dataclasses.replace(second, pods=pods))
        return dataclasses.replace(told, gpus=of_page)

    monkeypatch.setattr(host.driver, "read", read)
    host.run(2)
    assert free(host) is None
    pods = (Pod("red", "idle", "main"),)
    host.run(2)
    assert free(host) == 1.0


def test_what_the_kubelet_told_outlives_it_for_a_while(host):
    host.kubelet.containers = (holds("red", "idle", "GPU-1"),)
    host.run(2)
    host.kubelet.containers = None
    host.run(60)
    assert free(host) == 1.0
    host.clock.advance(1800.0)
    host.run(1)
    assert free(host) is None


def test_a_held_device_in_an_unknown_spelling_may_be_any_that_looks_free(host, monkeypatch):
    def read() -> SourceSnapshot:
        return SourceSnapshot("podresources", host.clock(), dropped={"device": 1})

    monkeypatch.setattr(host.kubelet, "read", read)
    host.run(2)
    assert host.node.view.fragmentation.unknown == 2
    assert free(host) is None


def test_a_job_map_that_cannot_be_read_may_have_named_any_board(clock, tmp_path):
    host = Host(clock, tmp_path, slurm_job_map_directory="/run/jobs")
    host.run(2)
    assert free(host) is None
    host.tree.write("run/jobs/0", "42\n")
    host.driver.on["GPU-1"] = {}
    host.run(6)
    assert scraped(host)["seedance_gpu_free_ratio/GPU-0"] == 0.0
    assert free(host) == 1.0


def test_a_lost_board_is_neither_free_nor_held(host):
    host.run(2)
    assert free(host) == 2.0
    del host.driver.on["GPU-1"]
    host.run(2)
    page = scraped(host)
    assert page["seedance_node_free_gpus"] == 1.0
    assert page["seedance_node_holders_unknown_gpus"] == 0
    assert "seedance_gpu_free_ratio/GPU-1" not in page


class Page:
    """Goes on naming both boards, as a page does whose exporter has not noticed."""

    name = "dcgm"

    def __init__(self, clock) -> None:
        self._clock = clock

    def read(self) -> SourceSnapshot:
        boards = tuple(GpuReadings(f"GPU-{number}", index=number) for number in range(2))
        return SourceSnapshot("dcgm", self._clock(), gpus=boards)


def test_a_lost_board_that_a_page_goes_on_listing_leaves_the_others_their_numbers(host):
    host.node.sources["dcgm"] = Page(host.clock)
    host.kubelet.containers = (holds("red", "train", "GPU-1"),)
    host.run(2)
    del host.driver.on["GPU-1"]
    for _ in range(3):
        host.run(1)
        assert host.node.view.fragmentation.unknown == 0
        assert free(host) == 1.0
        assert "seedance_gpu_free_ratio/GPU-1" not in scraped(host)
    host.driver.on["GPU-1"] = {}
    host.run(1)
    assert scraped(host)["seedance_gpu_free_ratio/GPU-1"] == 0.0


def test_a_board_that_the_driver_never_listed_may_be_anybodys(host):
    del host.driver.on["GPU-1"]
    host.node.sources["dcgm"] = Page(host.clock)
    host.run(2)
    assert host.node.view.fragmentation.unknown == 1
    assert free(host) is None


def test_a_process_that_only_draws_holds_nothing(host, monkeypatch):
    real = host.driver.read

    def read() -> SourceSnapshot:
        told = real()
        drawing = (GpuProcess(7, memory_bytes=1000, graphics=True),)
        boards = [dataclasses.replace(board, processes=drawing) for board in told.gpus]
        return dataclasses.replace(told, gpus=tuple(boards))

    monkeypatch.setattr(host.driver, "read", read)
    host.run(2)
    assert free(host) == 2.0


@pytest.mark.parametrize("limit", [0, 200])
def test_what_is_free_does_not_depend_on_how_many_workloads_are_shown(clock, tmp_path, limit):
    host = Host(clock, tmp_path, attribution_workload_limit=limit)
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope", ticks=500)
    host.tree.containerd(CID, "trainer")
    host.tree.write(f"sys/fs/cgroup{POD}/cri-containerd-{CID}.scope/cgroup.gpu-quota", ":40%\n")
    host.driver.on["GPU-0"] = {7: 0.5}
    host.run(8)
    assert len(host.workloads()) == min(limit, 1)
    assert free(host) == 0.6


def test_a_silent_driver_leaves_no_number_behind(host, monkeypatch):
    host.run(2)

    def silent() -> SourceSnapshot:
        raise SourceUnavailableError("the driver hangs")

    monkeypatch.setattr(host.driver, "read", silent)
    assert free(host) == 2.0
    host.run(STALE)
    assert not [name for name in scraped(host) if "free" in name or "frag" in name]


def test_a_fault_costs_these_measures_alone(host, monkeypatch, caplog):
    def broken(*_args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(watch, "free_gpus", broken)
    host.run(2)
    assert host.node.view.fragmentation is None
    assert len(host.node.view.gpus) == 2
    assert [r.message for r in caplog.records] == ["event=fault_started of='fragmentation'"]
    monkeypatch.undo()
    host.run(1)
    assert free(host) == 2.0


def test_a_pod_first_known_by_name_is_one_placement(host):
    host.kubelet.containers = (holds("ml", "train-0", "GPU-0"),)
    host.run(2)
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope", ticks=500)
    host.tree.containerd(CID, "trainer")
    host.driver.on["GPU-0"] = {7: 0.5}
    host.run(8)
    assert host.workloads()[-1].startswith("pod-72f7f152")
    assert host.node.view.fragmentation.placements == 1


@pytest.mark.parametrize(("t", "expected"), [(3895, 1.0), (3905, 0.0)])
def test_the_simulated_holder_counts_from_its_start(tmp_path, t, expected):
    machine = load_machine("leaky")
    with simulated_node(machine, tmp_path) as simulated:
        for second in (t, t + 1):
            simulated.step(float(second))
        view = simulated.node.view.fragmentation
    assert view.unknown == 0
    assert view.boards[machine.gpu_uuid(3)] == expected
    assert view.free.gpus == expected


def test_mig_instances_of_a_simulated_board_are_free_or_taken_one_by_one(tmp_path):
    machine = load_machine("h100-mig")
    with simulated_node(machine, tmp_path) as simulated:
        for second in range(2):
            simulated.step(float(second))
        view = simulated.node.view.fragmentation
    assert view.boards[machine.gpu_uuid(0)] == pytest.approx(1 / 7)
    assert view.free.gpus == pytest.approx(5 + 1 / 7)
    assert (view.free.whole, view.free.gang[4], view.free.island["nvlink_domain"]) == (5, 4, 5)
    assert view.placements == 3
