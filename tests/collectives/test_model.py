import pytest

from seedance_obs.collectives.calibration import Calibration, Curve, Origin, Point
from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.collectives.fabric import Fabric, fabric_at
from seedance_obs.collectives.fastest import best
from seedance_obs.collectives.model import Basis, CollectiveModel

POINTS = ((1024, 30e-6), (2048, 31e-6), (1 << 20, 60e-6), (1 << 30, 4e-3), (1 << 31, 8e-3))
CURVE = Curve(
    Collective.ALL_REDUCE,
    Group(8),
    tuple(Point(*point) for point in POINTS),
    "NV18",
    Origin(tool="nccl-tests 2.17.6"),
)
MODEL = CollectiveModel(Calibration([CURVE]))
FABRIC = fabric_at(370e9, link_class="NV18")


def cost(size, *, model=MODEL, collective=Collective.ALL_REDUCE, gpus=8, fabric=FABRIC):
    return model.cost(collective, size_bytes=size, group=Group(gpus), fabric=fabric)


def test_what_was_measured_is_told_as_measured():
    found = cost(1 << 20)
    assert (found.seconds, found.basis, found.fastest) == (60e-6, Basis.MEASURED, None)
    assert found.why == "all_reduce of 8 GPUs on 1 nodes over NV18, measured by nccl-tests 2.17.6"


def test_what_lies_beyond_the_sizes_measured_says_so():
    found = cost(1 << 32)
    assert (found.seconds, found.basis) == (pytest.approx(16e-3), Basis.EXTRAPOLATED)
    assert found.why.endswith("beyond the sizes measured")
    assert cost(0).basis is Basis.EXTRAPOLATED


@pytest.mark.parametrize(
    "case",
    [
        {"gpus": 4},
        {"collective": Collective.ALL_GATHER},
        {"fabric": fabric_at(20e9, link_class="SYS")},
        {"fabric": fabric_at(370e9)},
        {"model": CollectiveModel()},
    ],
)
def test_all_other_cases_go_by_nccls_constants(case):
    found = cost(1 << 20, **case)
    assert found.basis is Basis.NCCL
    expected = best(
        case.get("collective", Collective.ALL_REDUCE),
        size_bytes=1 << 20,
        group=Group(case.get("gpus", 8)),
        fabric=case.get("fabric", FABRIC),
    )
    assert found.fastest == expected
    assert found.seconds == expected.plan.seconds


def test_a_measured_case_needs_no_bandwidth_and_an_unknown_one_has_no_cost():
    unknown = Fabric(link_class="NV18")
    assert cost(1 << 20, fabric=unknown).basis is Basis.MEASURED
    assert cost(1 << 20, fabric=unknown, gpus=4) is None


def test_a_worse_placement_costs_more():
    times = [
        cost(1 << 26, model=CollectiveModel(), fabric=fabric_at(bandwidth, link_class=link)).seconds
        for bandwidth, link in ((370e9, "NV18"), (50e9, "PIX"), (20e9, "SYS"))
    ]
    assert times == sorted(times)
    assert times[2] > 10 * times[0]


@pytest.mark.parametrize("size", [-1, float("nan"), float("inf")])
def test_what_is_no_size_is_refused_measured_or_not(size):
    for gpus in (8, 4):
        with pytest.raises(ValueError, match="0 bytes or more"):
            cost(size, gpus=gpus)
    with pytest.raises(ValueError, match="0 bytes or more"):
        CURVE.time(size)
