import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.config import NodeSettings
from seedance_obs.merge import distance, merge
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.readings import (
    GpuPlace,
    GpuReadings,
    MigReadings,
    SourceSnapshot,
    VgpuInstance,
)
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.page import render_page

ORDERS = {quantity.name: quantity.sources for quantity in QUANTITIES.values()}


def snapshot(source: str, *gpus: GpuReadings, taken_at: float = 0.0) -> SourceSnapshot:
    return SourceSnapshot(source, taken_at, gpus=gpus)


def test_the_more_trusted_source_wins_and_the_distance_is_told():
    nvml = snapshot("nvml", GpuReadings("GPU-a", values={"power_watts": 200.0}), taken_at=5.0)
    dcgm = snapshot("dcgm", GpuReadings("GPU-a", values={"power_watts": 150.0}), taken_at=2.0)
    for order in ([nvml, dcgm], [dcgm, nvml]):
        (gpu,) = merge(order, ORDERS)
        chosen = gpu.readings["power_watts"]
        assert (chosen.value, chosen.source, chosen.taken_at) == (200.0, "nvml", 5.0)
        assert gpu.disagreement == {"power_watts": 0.25}
        assert gpu.seen_at == 5.0


def test_the_order_can_be_turned_for_one_quantity():
    settings = NodeSettings(merge_order=("power_watts=dcgm,nvml",))
    views = [
        snapshot(name, GpuReadings("GPU-a", values={"power_watts": watts, "fan_speed_ratio": 0.5}))
        for name, watts in (("nvml", 200.0), ("dcgm", 150.0))
    ]
    (gpu,) = merge(views, settings.source_orders())
    assert gpu.readings["power_watts"].source == "dcgm"
    assert gpu.readings["fan_speed_ratio"].source == "nvml"


def test_a_place_comes_from_the_source_that_has_one():
    place = GpuPlace(numa=frozenset((1,)))
    dcgm = snapshot("dcgm", GpuReadings("GPU-a"), GpuReadings("GPU-b"))
    nvml = snapshot("nvml", GpuReadings("GPU-a", place=place))
    assert [gpu.place for gpu in merge([dcgm, nvml], ORDERS)] == [place, None]


def test_what_only_one_source_has_is_there_without_a_distance():
    nvml = snapshot("nvml", GpuReadings("GPU-a", index=3, values={"power_watts": 1.0}))
    dcgm = snapshot("dcgm", GpuReadings("GPU-a", values={"sm_active_ratio": 0.5}))
    (gpu,) = merge([nvml, dcgm], ORDERS)
    assert {name: chosen.source for name, chosen in gpu.readings.items()} == {
        "power_watts": "nvml",
        "sm_active_ratio": "dcgm",
    }
    assert gpu.disagreement == {}
    assert gpu.index == 3


def test_gpus_are_in_index_order_and_those_without_one_come_last():
    gpus = [GpuReadings("GPU-z"), GpuReadings("GPU-b", index=10), GpuReadings("GPU-c", index=9)]
    assert [gpu.uuid for gpu in merge([snapshot("nvml", *gpus)], ORDERS)] == [
        "GPU-c",
        "GPU-b",
        "GPU-z",
    ]


def test_a_page_that_still_shows_a_replaced_board_is_not_believed():
    nvml = snapshot("nvml", GpuReadings("GPU-new", pci_bus_id="0000:3b:00.0"))
    dcgm = snapshot("dcgm", GpuReadings("GPU-old", pci_bus_id="0000:3b:00.0"))
    assert [gpu.uuid for gpu in merge([nvml, dcgm], ORDERS)] == ["GPU-new"]


def test_mig_instances_are_joined_by_gpu_instance():
    nvml = GpuReadings(
        "GPU-a",
        mig=(
            MigReadings(1, 0, "MIG-1", "3g.40gb", {"memory_used_bytes": 5.0}),
            MigReadings(2, 0, "MIG-2", "1g.10gb", {}),
            MigReadings(2, 1, "MIG-3", "1g.10gb", {}),
        ),
    )
    dcgm = GpuReadings(
        "GPU-a",
        mig=(
            MigReadings(1, values={"engine_active_ratio": 0.5}),
            MigReadings(2, values={"engine_active_ratio": 0.9}),
        ),
    )
    (gpu,) = merge([snapshot("nvml", nvml), snapshot("dcgm", dcgm)], ORDERS)
    assert [instance.uuid for instance in gpu.mig] == ["MIG-1", "MIG-2", "MIG-3"]
    assert gpu.mig[0].values == {"memory_used_bytes": 5.0, "engine_active_ratio": 0.5}
    assert gpu.mig[1].values == gpu.mig[2].values == {}, "one value cannot be two instances'"


def test_activity_on_a_page_reaches_the_instance_that_nvml_names():
    nvml = NvmlReader(SimNvml(load_machine("h100-mig"), lambda: 20.0), monotonic=lambda: 0.0)
    nvml.start()
    page = read_page(render_page(load_machine("h100-mig"), 18.0), taken_at=0.0)
    for snapshots in ([nvml.read(), page], [page, nvml.read()]):
        mig = merge(snapshots, ORDERS)[0].mig
        assert [(one.gpu_instance, one.compute_instance, one.slices) for one in mig] == [
            (2, 0, 3),
            (3, 0, 2),
            (9, 0, 1),
            (10, 0, 1),
        ]
        assert all(one.uuid for one in mig)
        assert all({"engine_active_ratio", "sm_active_ratio"} <= one.values.keys() for one in mig)
        assert mig[0].values["engine_active_ratio"] == pytest.approx(0.8)


def test_what_vgpus_hold_comes_from_the_source_that_knows_them():
    vgpus = (VgpuInstance("c0ffee", "vm-17", 2**30, 0.25),)
    nvml = snapshot("nvml", GpuReadings("GPU-a", vgpus=vgpus), GpuReadings("GPU-b", vgpus=()))
    dcgm = snapshot("dcgm", GpuReadings("GPU-a"), GpuReadings("GPU-c"))
    assert [gpu.vgpus for gpu in merge([dcgm, nvml], ORDERS)] == [vgpus, (), None]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.randoms())
def test_distance_is_symmetric_bounded_and_zero_for_equals(values, random):
    shuffled = random.sample(values, len(values))
    assert distance(values) == distance(shuffled)
    assert 0.0 <= distance(values) <= 2.0
    assert distance([values[0]] * 3) == 0.0


@pytest.mark.parametrize(
    ("values", "apart"), [([0.0, 0.0], 0.0), ([0.0, 5.0], 1.0), ([90.0, 100.0], 0.1)]
)
def test_distance_is_a_share_of_the_larger(values, apart):
    assert distance(values) == pytest.approx(apart)
