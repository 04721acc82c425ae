from collections.abc import Mapping

import pytest

from seedance_obs.exporter.link_health import LinkHealth, LinkWatch
from seedance_obs.merge import MergedGpu, merge
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Device, Kind, NvLinkPort

FULL = {
    "pcie_generation": 4.0,
    "pcie_generation_max": 4.0,
    "pcie_width": 16.0,
    "pcie_width_max": 16.0,
}


def gpu(name: str = "GPU-a", *, model: str = "", **values: float) -> MergedGpu:
    readings = GpuReadings(name, model=model, values={**FULL, **values})
    orders: Mapping[str, tuple[str, ...]] = dict.fromkeys(
        (*FULL, "utilization_ratio", "engine_active_ratio"), ("nvml",)
    )
    return merge([SourceSnapshot("nvml", 0.0, gpus=(readings,))], orders)[0]


def linked(up: int, down: int = 0) -> Device:
    ports = (NvLinkPort(n, active=n < up) for n in range(up + down))
    return Device("gpu", Kind.GPU, nvlinks=tuple(ports))


def watched(watch: LinkWatch, *utilizations: float, **values: float) -> LinkHealth:
    for ratio in utilizations:
        health = watch.watch(gpu(utilization_ratio=ratio, **values), linked(0))
    return health


def test_an_idle_link_says_nothing_however_slow_it_is():
    health = watched(LinkWatch(), 0.0, 0.05, 0.0, pcie_generation=1)
    assert health.pcie_degraded is None


def test_a_link_is_judged_from_the_second_loaded_reading_on():
    watch = LinkWatch()
    assert watched(watch, 0.9, pcie_generation=1).pcie_degraded is None
    assert watched(watch, 0.9).pcie_degraded is False
    assert watched(watch, 0.9, pcie_width=8).pcie_degraded is True


def test_the_finding_under_load_stands_while_the_gpu_rests():
    watch = LinkWatch()
    watched(watch, 0.9, 0.9, pcie_generation=3)
    assert watched(watch, 0.0).pcie_degraded is True
    assert watched(watch, 0.5).pcie_degraded is True  # one loaded reading is not enough
    assert watched(watch, 0.5).pcie_degraded is False


def test_mig_boards_are_judged_by_the_activity_that_dcgm_sees():
    health = watched(LinkWatch(), *[0.0] * 2, engine_active_ratio=0.7, pcie_width=4)
    assert health.pcie_degraded is True


@pytest.mark.parametrize("missing", [("pcie_generation", "pcie_width"), tuple(FULL)])
def test_a_link_without_readings_has_no_finding(missing):
    watch = LinkWatch()
    for _ in range(3):
        readings = GpuReadings(
            "GPU-a",
            values={
                "utilization_ratio": 1.0,
                **{name: value for name, value in FULL.items() if name not in missing},
            },
        )
        orders = dict.fromkeys((*FULL, "utilization_ratio"), ("nvml",))
        board = merge([SourceSnapshot("nvml", 0.0, gpus=(readings,))], orders)[0]
        health = watch.watch(board, linked(0))
    assert health.pcie_degraded is None


def test_links_are_counted_against_the_most_that_were_ever_up():
    watch = LinkWatch()
    assert watch.watch(gpu(), linked(4)).nvlinks_expected == 4
    health = watch.watch(gpu(), linked(3, down=1))
    assert (health.nvlinks_active, health.nvlinks_expected) == (3, 4)
    assert watch.watch(gpu("GPU-b"), linked(2)).nvlinks_expected == 2


def test_a_link_that_was_never_up_is_missed_where_the_product_has_it():
    health = LinkWatch().watch(gpu(model="NVIDIA H100 80GB HBM3"), linked(17, down=1))
    assert (health.nvlinks_active, health.nvlinks_expected) == (17, 18)


def test_a_board_that_exists_without_a_bridge_has_lost_nothing():
    health = LinkWatch().watch(gpu(model="NVIDIA A100 80GB PCIe"), linked(0, down=12))
    assert (health.nvlinks_active, health.nvlinks_expected) == (0, 0)


def test_a_host_whose_share_of_the_fabric_is_not_activated_has_lost_nothing():
    watch = LinkWatch()
    board = gpu(model="NVIDIA H100 80GB HBM3")
    assert watch.watch(board, linked(0, down=18)).nvlinks_expected == 0
    watch.watch(gpu("GPU-b", model="NVIDIA H100 80GB HBM3"), linked(18))
    assert watch.watch(board, linked(0, down=18)).nvlinks_expected == 18


@pytest.mark.parametrize("absent", [UNKNOWN, UNSUPPORTED])
def test_links_that_nobody_can_count_are_not_counted(absent):
    watch = LinkWatch()
    watch.watch(gpu(), linked(4))
    health = watch.watch(gpu(), Device("gpu", Kind.GPU, nvlinks=absent))
    assert (health.nvlinks_active, health.nvlinks_expected) == (None, None)
