import dataclasses

import pytest

from seedance_obs.exporter.link_health import LinkHealth, LinkWatch
from seedance_obs.merge import MergedGpu, merge
from seedance_obs.sources.readings import GpuReadings, NvLink, SourceSnapshot
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Device,
    FabricMembership,
    Kind,
    NvLinkPort,
)

FULL = {
    "pcie_generation": 4.0,
    "pcie_generation_max": 4.0,
    "pcie_width": 16.0,
    "pcie_width_max": 16.0,
}


QUANTITIES = (*FULL, "utilization_ratio", "engine_active_ratio")


class Clock:
    """The time at which a test's readings are taken; each is a second after the one before."""

    now = 0.0


@pytest.fixture(autouse=True)
def clock() -> None:
    Clock.now = 0.0


def gpu(name: str = "GPU-a", *, up: int | None = None, down: int = 0, **values: float) -> MergedGpu:
    """A board as just read; `up` and `down` count its NVLinks."""
    Clock.now += 1.0
    links = tuple(NvLink(n, "switch", active=n < (up or 0)) for n in range((up or 0) + down))
    readings = GpuReadings(name, values={**FULL, **values}, nvlinks=None if up is None else links)
    snapshot = SourceSnapshot("nvml", Clock.now, gpus=(readings,))
    return merge([snapshot], dict.fromkeys(QUANTITIES, ("nvml",)))[0]


def watch_links(
    watch: LinkWatch, name: str = "GPU-a", *, up: int, down: int = 0, model: str = ""
) -> LinkHealth:
    ports = tuple(NvLinkPort(n, active=n < up) for n in range(up + down))
    device = Device(name, Kind.GPU, model=model, nvlinks=ports)
    return watch.watch(gpu(name, up=up, down=down), device)


PLAIN = Device("gpu", Kind.GPU)


def watched(watch: LinkWatch, *utilizations: float, **values: float) -> LinkHealth:
    for ratio in utilizations:
        health = watch.watch(gpu(utilization_ratio=ratio, **values), PLAIN)
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


def test_one_reading_that_is_looked_at_twice_is_one():
    watch, once = LinkWatch(), gpu(utilization_ratio=0.9, pcie_generation=1.0)
    for _ in range(3):
        assert watch.watch(once, PLAIN).pcie_degraded is None


def test_mig_boards_are_judged_by_the_activity_that_dcgm_sees():
    watch = LinkWatch()
    for _ in range(2):
        health = watch.watch(gpu(engine_active_ratio=0.7, pcie_width=4.0), PLAIN)
    assert health.pcie_degraded is True


def test_a_page_that_is_behind_does_not_make_an_idle_link_a_slow_one():
    watch = LinkWatch()
    idle = {"utilization_ratio": 0.0, "pcie_generation": 1.0}
    for _ in range(3):
        assert watch.watch(gpu(engine_active_ratio=0.9, **idle), PLAIN).pcie_degraded is None


def test_a_link_that_was_read_at_another_time_than_the_load_is_not_judged():
    watch = LinkWatch()
    for _ in range(3):
        board = gpu(engine_active_ratio=0.9, pcie_generation=1.0)
        late = {
            name: dataclasses.replace(chosen, taken_at=chosen.taken_at - 30)
            for name, chosen in board.readings.items()
            if name == "engine_active_ratio"
        }
        board = dataclasses.replace(board, readings={**board.readings, **late})
        assert watch.watch(board, PLAIN).pcie_degraded is None


@pytest.mark.parametrize("missing", [("pcie_generation", "pcie_width"), tuple(FULL)])
def test_a_link_without_readings_has_no_finding(missing):
    watch = LinkWatch()
    for _ in range(3):
        board = gpu(utilization_ratio=1.0)
        readings = {name: value for name, value in board.readings.items() if name not in missing}
        health = watch.watch(dataclasses.replace(board, readings=readings), PLAIN)
    assert health.pcie_degraded is None


def test_links_are_counted_against_the_most_that_were_ever_up():
    watch = LinkWatch()
    assert watch_links(watch, up=4).nvlinks_expected == 4
    health = watch_links(watch, up=3, down=1)
    assert (health.nvlinks_active, health.nvlinks_expected) == (3, 4)
    assert watch_links(watch, "GPU-b", up=2).nvlinks_expected == 2


def test_a_link_that_was_never_up_is_missed_where_the_product_has_it():
    health = watch_links(LinkWatch(), up=17, down=1, model="NVIDIA H100 80GB HBM3")
    assert (health.nvlinks_active, health.nvlinks_expected) == (17, 18)


def test_a_board_that_exists_without_a_bridge_has_lost_nothing():
    health = watch_links(LinkWatch(), up=0, down=12, model="NVIDIA A100 80GB PCIe")
    assert (health.nvlinks_active, health.nvlinks_expected) == (0, 0)


def test_a_host_whose_share_of_the_fabric_is_not_activated_has_lost_nothing():
    watch, model = LinkWatch(), "NVIDIA H100 80GB HBM3"
    assert watch_links(watch, up=0, down=18, model=model).nvlinks_expected == 0
    watch_links(watch, "GPU-b", up=18, model=model)
    assert watch_links(watch, up=0, down=18, model=model).nvlinks_expected == 18


@pytest.mark.parametrize("absent", [UNKNOWN, UNSUPPORTED])
def test_links_that_nobody_can_count_are_not_counted(absent):
    watch = LinkWatch()
    watch_links(watch, up=4)
    health = watch.watch(gpu(up=4), Device("gpu", Kind.GPU, nvlinks=absent))
    assert (health.nvlinks_active, health.nvlinks_expected) == (None, None)


def test_what_is_remembered_of_a_silent_driver_is_not_its_health():
    watch = LinkWatch()
    ports = tuple(NvLinkPort(n, active=True) for n in range(4))
    fabric = FabricMembership(state=3, status=0, healthy=True)
    remembered = Device("GPU-a", Kind.GPU, nvlinks=ports, fabric=fabric)
    assert watch.watch(gpu(up=4), remembered).nvlinks_active == 4
    health = watch.watch(gpu(), remembered)
    assert (health.nvlinks_active, health.nvlinks_expected, health.fabric) == (None, None, None)


def test_one_link_that_does_not_say_leaves_the_count_unknown():
    board = gpu(up=18)
    links = board.nvlinks or ()
    unsure = (dataclasses.replace(links[0], active=None), *links[1:])
    ports = tuple(NvLinkPort(n, active=True) for n in range(18))
    health = LinkWatch().watch(
        dataclasses.replace(board, nvlinks=unsure), Device("GPU-a", Kind.GPU, nvlinks=ports)
    )
    assert health.nvlinks_active is None
