"""The latencies that NCCL plans by, worked out by hand from its tables."""

import pytest

from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.collectives.fabric import Fabric
from seedance_obs.collectives.latency import latency_us, plateau
from seedance_obs.collectives.tuning import Algorithm, Architecture, CpuVendor, Hardware, Protocol

LL, LL128, SIMPLE = Protocol
RING, TREE, NVLS, NVLS_TREE, DIRECT = Algorithm
NVLINK = Fabric()
PCIE = Fabric(hardware=Hardware.PCIE)
INTEL = Fabric(cpu=CpuVendor.INTEL)
AMD = Fabric(cpu=CpuVendor.AMD)


def of(collective, algorithm, protocol, group, fabric):
    return pytest.approx(latency_us(collective, algorithm, protocol, group, fabric))


@pytest.mark.parametrize(
    ("fabric", "group", "expected"),
    [
        (NVLINK, Group(8), {LL: 15.0, LL128: 40.6, SIMPLE: 56.0}),
        (PCIE, Group(8), {LL: 20.6, LL128: 49.0, SIMPLE: 88.2}),
        (INTEL, Group(16, 2), {LL: 40.0, LL128: 75.2, SIMPLE: 131.6}),
        (AMD, Group(16, 2), {LL: 68.0, LL128: 78.0, SIMPLE: 204.4}),
    ],
)
def test_a_ring_all_reduce_takes_all_its_steps(fabric, group, expected):
    for protocol, us in expected.items():
        assert us == of(Collective.ALL_REDUCE, RING, protocol, group, fabric)


def test_a_cpu_of_an_unknown_vendor_posts_like_intels():
    for protocol in Protocol:
        found = latency_us(Collective.ALL_REDUCE, RING, protocol, Group(16, 2), INTEL)
        assert found == of(Collective.ALL_REDUCE, RING, protocol, Group(16, 2), NVLINK)


@pytest.mark.parametrize(
    ("algorithm", "protocol", "group", "expected"),
    [
        (TREE, LL, Group(8), 15.2),
        (TREE, LL128, Group(8), 31.5),
        (TREE, SIMPLE, Group(8), 64.4),
        (TREE, LL, Group(16, 2), 25.2),
        (TREE, LL, Group(64, 8), 45.2),
        (NVLS, SIMPLE, Group(8), 25.0),
        (NVLS, SIMPLE, Group(16, 2), 43.0),
        (NVLS_TREE, SIMPLE, Group(16, 2), 66.8),
    ],
)
def test_trees_grow_with_the_logarithm_of_nodes(algorithm, protocol, group, expected):
    assert expected == of(Collective.ALL_REDUCE, algorithm, protocol, group, NVLINK)


def test_gathering_and_scattering_take_half_the_steps_of_an_all_reduce():
    for collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER):
        assert of(collective, RING, LL, Group(8), NVLINK) == 10.8
        assert of(collective, RING, LL, Group(16, 2), INTEL) == 6.6 + 14 * 1.0 + 2.7


def test_a_broadcast_passes_every_gpu_and_a_chunk_takes_a_trees_step():
    assert of(Collective.BROADCAST, RING, LL, Group(8), NVLINK) == 6.6 + 8 * 0.6
    assert of(Collective.REDUCE, RING, SIMPLE, Group(8), NVLINK) == 8.4 + 8 * 4.0
    assert of(Collective.BROADCAST, RING, LL, Group(16, 2), NVLINK) == 6.6 + 16 * 2.7


def test_a_node_with_one_gpu_feels_the_whole_network_step():
    assert of(Collective.ALL_REDUCE, RING, LL, Group(4, 4), NVLINK) == 6.6 + 6 * 5.0


def test_the_networks_own_latency_comes_on_top_twice_where_it_is_flushed():
    slow = Fabric(network_latency=3e-6)
    for protocol, crossings in ((LL, 1), (SIMPLE, 2)):
        before = latency_us(Collective.ALL_REDUCE, RING, protocol, Group(16, 2), NVLINK)
        found = latency_us(Collective.ALL_REDUCE, RING, protocol, Group(16, 2), slow)
        assert found - before == pytest.approx(2 * crossings * 3)


def test_an_all_to_all_posts_to_far_peers_what_travels_together():
    assert of(Collective.ALL_TO_ALL, DIRECT, LL, Group(8), NVLINK) == 6.6 + 7 * 0.6
    expected = 6.6 + 7 * 0.6 + 2.7 + 7 * 2.0
    assert expected == of(Collective.ALL_TO_ALL, DIRECT, LL, Group(16, 2), AMD)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [(None, 1.4), (Architecture.VOLTA, 1.9), (Architecture.HOPPER, 1.4)],
)
def test_a_ring_over_nodes_is_slower_once_its_pieces_have_64_bytes(architecture, expected):
    fabric = Fabric(architecture=architecture, channels=4)
    ask = (Collective.ALL_REDUCE, RING, SIMPLE, Group(16, 2), fabric)
    assert plateau(*ask, 64 * 4 * 16) == expected
    assert plateau(*ask, 64 * 4 * 16 - 1) == 1


def test_nothing_else_has_a_plateau():
    large = 1 << 30
    assert plateau(Collective.ALL_REDUCE, RING, SIMPLE, Group(8), NVLINK, large) == 1
    assert plateau(Collective.ALL_REDUCE, RING, LL, Group(16, 2), NVLINK, large) == 1
    assert plateau(Collective.ALL_GATHER, RING, SIMPLE, Group(16, 2), NVLINK, large) == 1
