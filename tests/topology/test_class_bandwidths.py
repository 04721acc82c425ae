"""What each class of link carries, on hosts whose numbers follow from their drawing."""

import pytest

from seedance_obs.topology.class_bandwidths import class_bandwidths
from seedance_obs.topology.model import UNKNOWN, PcieLevel, Topology
from tests.topology.hosts_by_hand import bridged_pairs, dgx1, gpu, host, ports

GEN3_X16 = 8e9 * 128 / 130 * 16 / 8
BEHIND_A_HOST_BRIDGE = 5 / 6


def test_classes_are_those_of_nvlinks_and_of_the_pcie_beside_them_nearest_first():
    expected = {
        "NV2": 2 * 25e9,
        "NV1": 25e9,
        "PIX": GEN3_X16,
        "PHB": GEN3_X16 * BEHIND_A_HOST_BRIDGE,
        "SYS": 6e9,
    }
    found = class_bandwidths(dgx1())
    assert found == pytest.approx(expected)
    assert [*found] == [*expected]


def test_a_class_that_no_pair_has_is_left_out_but_for_the_way_to_the_cpu():
    assert [*class_bandwidths(bridged_pairs())] == ["NV4", "PHB", "SYS"]
    assert [*class_bandwidths(host([gpu(0)], lambda _one, _other: UNKNOWN))] == ["PHB"]
    assert class_bandwidths(Topology()) == {}


def test_the_slowest_pair_of_a_class_counts():
    rates = (25_000, 25_000, 20_000, 25_000)
    gpus = [gpu(index, nvlinks=ports(2, rate)) for index, rate in enumerate(rates)]
    links = {(0, 1): 2, (2, 3): 2}
    found = class_bandwidths(
        host(gpus, lambda *_pair: PcieLevel.SYS, lambda *pair: links.get(pair, 0))
    )
    assert found["NV2"] == 2 * 20e9


def test_nvlinks_that_nobody_knows_of_leave_the_pcie_class():
    gpus = [gpu(0), gpu(1)]
    found = class_bandwidths(host(gpus, lambda *_pair: PcieLevel.PIX, lambda *_pair: UNKNOWN))
    assert [*found] == ["PIX", "PHB"]
