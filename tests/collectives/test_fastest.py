from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.collectives.collective import Collective, Group, bus_bandwidth
from seedance_obs.collectives.fabric import Fabric, fabric_at
from seedance_obs.collectives.fastest import best, candidates, plan
from seedance_obs.collectives.plan_bandwidth import tree_correction
from seedance_obs.collectives.tuning import Algorithm, Architecture, CpuVendor, Hardware, Protocol

GB = 1e9
EIGHT = Group(8)
LL, LL128, SIMPLE = Protocol
RING, TREE, NVLS, NVLS_TREE, DIRECT = Algorithm
# 18 links of 20.6 GB/s, as NCCL counts them, and eight adapters of 50 GB/s
HOPPER = Fabric(
    in_node=370.8 * GB, between_nodes=400 * GB, architecture=Architecture.HOPPER, nvls=True
)
PLANNED = [each for each in Collective if best(each, size_bytes=8, group=Group(8), fabric=HOPPER)]

groups = st.builds(
    lambda nodes, each: Group(nodes * each, nodes), st.integers(1, 32), st.integers(2, 16)
)
fabrics = st.builds(
    Fabric,
    in_node=st.floats(1 * GB, 900 * GB),
    between_nodes=st.floats(1 * GB, 900 * GB),
    hardware=st.sampled_from((Hardware.NVLINK, Hardware.PCIE)),
    architecture=st.sampled_from((None, *Architecture)),
    cpu=st.sampled_from((None, *CpuVendor)),
    nvls=st.booleans(),
)


def all_reduce_gbps(algorithm, protocol, group=EIGHT, fabric=HOPPER, size=1 << 40):
    found = plan(
        Collective.ALL_REDUCE, algorithm, protocol, size_bytes=size, group=group, fabric=fabric
    )
    bandwidth = bus_bandwidth(Collective.ALL_REDUCE, size, found.transfer_seconds, gpus=group.gpus)
    return pytest.approx(bandwidth / GB)


def test_protocols_keep_their_share_of_a_rings_bandwidth():
    assert all_reduce_gbps(RING, SIMPLE) == 370.8
    assert all_reduce_gbps(RING, LL128) == 370.8 * 0.92
    slow = fabric_at(20 * GB, link_class="SYS")
    assert all_reduce_gbps(RING, LL, fabric=slow) == 10


def test_ll_is_capped_by_the_gpu_in_a_node_and_by_the_cpu_beyond():
    assert all_reduce_gbps(RING, LL) == 141
    assert all_reduce_gbps(RING, LL, group=Group(16, 2)) == 39
    assert all_reduce_gbps(RING, LL, group=Group(32, 4)) == 20.4
    amd = Fabric(in_node=370 * GB, between_nodes=400 * GB, cpu=CpuVendor.AMD)
    assert all_reduce_gbps(RING, LL, group=Group(16, 2), fabric=amd) == 22.5


def test_a_tree_passes_everything_up_and_down():
    assert all_reduce_gbps(TREE, SIMPLE) == 370.8 * 0.92 * 0.5 * 14 / 8
    assert all_reduce_gbps(TREE, LL128) == 370.8 * 0.92 * 7 / 9 * 0.5 * 14 / 8
    two = 370.8 * 0.92 * 120 / 128 * 0.5 * 30 / 16
    assert all_reduce_gbps(TREE, LL128, group=Group(16, 2)) == two


def test_nvls_reaches_what_a_dgx_with_nvlink_sharp_measures():
    measured = 482.3  # GB/s busbw of 8 H200, 16 GiB
    found = best(Collective.ALL_REDUCE, size_bytes=1 << 34, group=Group(8), fabric=HOPPER)
    assert found.plan.algorithm is NVLS
    busbw = bus_bandwidth(Collective.ALL_REDUCE, 1 << 34, found.plan.seconds, gpus=8)
    assert busbw / GB == pytest.approx(measured, rel=0.05)


def test_nvls_by_generation_and_over_slow_adapters():
    blackwell = Fabric(in_node=721.8 * GB, architecture=Architecture.BLACKWELL, nvls=True)
    assert all_reduce_gbps(NVLS, SIMPLE, fabric=blackwell) == 721.8 * 8 / 9 * 0.74 * 7 / 8 * 2
    slow = Fabric(in_node=370 * GB, between_nodes=100 * GB, architecture=Architecture.HOPPER)
    assert all_reduce_gbps(NVLS_TREE, SIMPLE, group=Group(16, 2), fabric=slow) == 200
    assert all_reduce_gbps(NVLS_TREE, SIMPLE, group=Group(32, 4), fabric=slow) == 100


def test_nvls_gathers_without_overlap():
    found = plan(
        Collective.ALL_GATHER, NVLS, SIMPLE, size_bytes=1 << 40, group=EIGHT, fabric=HOPPER
    )
    gbps = (1 << 40) / found.transfer_seconds / GB
    assert gbps == pytest.approx(370.8 * 8 / 9 * 0.85 * (7 / 8) ** 2)


def test_an_all_to_all_is_as_slow_as_the_links_of_a_node_where_those_are_slower():
    slow = Fabric(in_node=1 * GB, between_nodes=400 * GB)
    found = best(Collective.ALL_TO_ALL, size_bytes=1 << 40, group=Group(16, 2), fabric=slow)
    assert found.plan.transfer_seconds == pytest.approx((1 << 40) * 7 / 16 / GB)


def test_an_all_to_all_with_ll_carries_flags_for_half_of_what_it_sends():
    ll, simple = (
        plan(Collective.ALL_TO_ALL, DIRECT, each, size_bytes=1 << 30, group=EIGHT, fabric=HOPPER)
        for each in (LL, SIMPLE)
    )
    assert ll.transfer_seconds == pytest.approx(2 * simple.transfer_seconds)


def test_an_all_to_all_between_nodes_is_as_slow_as_their_adapters():
    found = best(Collective.ALL_TO_ALL, size_bytes=1 << 40, group=Group(16, 2), fabric=HOPPER)
    assert found.plan.transfer_seconds == pytest.approx((1 << 40) * 8 * 8 / 16 / (400 * GB))


def test_a_small_operation_goes_by_latency_and_a_large_one_by_bandwidth():
    def chosen(size, group, fabric=HOPPER):
        found = best(Collective.ALL_REDUCE, size_bytes=size, group=group, fabric=fabric).plan
        return found.algorithm, found.protocol

    assert chosen(8, Group(8)) == (RING, LL)
    assert chosen(1 << 30, Group(8)) == (NVLS, SIMPLE)
    assert chosen(8, Group(64, 8)) == (TREE, LL)
    assert chosen(1 << 34, Group(64, 8), fabric_at(50 * GB, link_class="NV18")) == (RING, SIMPLE)


def test_the_choice_says_what_its_time_is_made_of_and_what_came_next():
    found = best(Collective.ALL_REDUCE, size_bytes=8, group=Group(8), fabric=HOPPER)
    assert found.why == (
        "ring with ll, 15.0 us latency and 0.0 us transfer; next tree with ll, 15.2 us in all"
    )


def test_ll128_runs_over_nvlink_only_and_nvls_where_switches_reduce():
    def ways(fabric, group=EIGHT):
        return set(candidates(Collective.ALL_REDUCE, group, fabric))

    assert (RING, LL128) in ways(HOPPER)
    assert (RING, LL128) not in ways(fabric_at(1 * GB, link_class="PIX"))
    assert (NVLS, SIMPLE) in ways(HOPPER)
    assert (NVLS_TREE, SIMPLE) in ways(HOPPER, Group(16, 2))
    assert {algorithm for algorithm, _ in ways(HOPPER, Group(4, 4))} == {RING, TREE}
    for without in (
        Fabric(architecture=Architecture.HOPPER),
        Fabric(architecture=Architecture.AMPERE, nvls=True),
        Fabric(nvls=True),
    ):
        assert {algorithm for algorithm, _ in ways(without)} == {RING, TREE}


def test_a_bandwidth_that_is_unknown_leaves_no_time():
    def seconds(collective, group, fabric):
        return best(collective, size_bytes=8, group=group, fabric=fabric)

    unknown = Fabric()
    for collective in Collective:
        assert seconds(collective, Group(8), unknown) is None
        assert seconds(collective, Group(16, 2), Fabric(in_node=1 * GB)) is None
    for collective in PLANNED:
        assert seconds(collective, Group(4, 4), Fabric(between_nodes=1 * GB)) is not None


def test_what_nccl_has_no_model_of_has_no_time():
    for collective in (Collective.GATHER, Collective.SCATTER, Collective.SEND_RECV):
        assert best(collective, size_bytes=8, group=Group(8), fabric=HOPPER) is None


@given(st.sampled_from(PLANNED), groups, fabrics, st.integers(0, 1 << 36), st.floats(1, 64))
def test_a_larger_operation_never_takes_less(collective, group, fabric, size, more):
    found = best(collective, size_bytes=size, group=group, fabric=fabric)
    larger = best(collective, size_bytes=size * more, group=group, fabric=fabric)
    assert larger.plan.seconds >= found.plan.seconds * (1 - 1e-12)


@given(
    st.sampled_from([each for each in PLANNED if each is not Collective.ALL_TO_ALL]),
    st.sampled_from(Protocol),
    st.integers(2, 500),
    fabrics,
    st.integers(0, 1 << 36),
)
def test_a_ring_through_more_gpus_takes_more(collective, protocol, gpus, fabric, size):
    times = [
        plan(collective, RING, protocol, size_bytes=size, group=Group(count), fabric=fabric).seconds
        for count in (gpus, gpus + 1)
    ]
    assert times[1] > times[0]


@settings(max_examples=200)
@given(st.sampled_from(PLANNED), groups, fabrics, st.integers(1, 1 << 36))
def test_no_link_carries_more_than_it_can(collective, group, fabric, size):
    found = best(collective, size_bytes=size, group=group, fabric=fabric)
    for each in (found.plan, *found.others):
        if each.algorithm in (RING, TREE):
            busbw = bus_bandwidth(collective, size, each.seconds, gpus=group.gpus)
            assert busbw <= fabric.bottleneck(group)
        elif each.algorithm is NVLS:
            through_own_link = (group.gpus + 1) / group.gpus
            assert size / each.seconds * through_own_link <= fabric.in_node
        elif each.algorithm is DIRECT and group.nodes == 1:
            assert bus_bandwidth(collective, size, each.seconds, gpus=group.gpus) <= fabric.in_node


@given(groups, fabrics, st.integers(0, 1 << 36))
def test_the_best_is_the_least_and_the_others_follow_in_order(group, fabric, size):
    found = best(Collective.ALL_REDUCE, size_bytes=size, group=group, fabric=fabric)
    times = [found.plan.seconds, *(each.seconds for each in found.others)]
    assert times == sorted(times)
    assert len(times) == len(list(candidates(Collective.ALL_REDUCE, group, fabric)))


def test_a_trees_correction_is_nccls_at_powers_of_two_and_straight_between():
    assert [tree_correction(LL, 64 << doubling) for doubling in (0, 4, 11, 12, 13, 23)] == (
        pytest.approx([1.0, 0.9, 0.5, 0.4, 0.4, 1.0])
    )
    assert tree_correction(SIMPLE, 8) == 0.9
    assert tree_correction(SIMPLE, 1 << 30) == tree_correction(SIMPLE, 1 << 40) == 1.0
    between = tree_correction(LL, 64 * 2**11.5)
    assert between == pytest.approx(0.45)
    paces = [(64 << step) / tree_correction(LL, 64 << step) for step in range(30)]
    assert all(later > earlier for earlier, later in pairwise(paces))


@pytest.mark.parametrize(
    ("protocol", "tenths"),
    [
        (LL, "XXXX98777765445678 9XXXXXX"),
        (LL128, "XXXXX988876666668 9999XXXX"),
        (SIMPLE, "99999998766555567 8778999X"),
    ],
)
def test_the_whole_table_of_a_trees_correction_is_nccls(protocol, tenths):
    """In tenths from 64 bytes on, X for ten, in two rows of NCCL's table."""
    found = [tree_correction(protocol, 64 << doubling) for doubling in range(25)]
    expected = [10 if digit == "X" else int(digit) for digit in tenths.replace(" ", "")]
    assert [round(10 * each, 6) for each in found] == expected


@pytest.mark.parametrize("size", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize("collective", [Collective.ALL_REDUCE, Collective.GATHER])
def test_what_is_no_size_is_refused(collective, size):
    with pytest.raises(ValueError, match="a size of 0 bytes or more is wanted"):
        best(collective, size_bytes=size, group=EIGHT, fabric=HOPPER)
    with pytest.raises(ValueError, match="a size of 0 bytes or more is wanted"):
        plan(collective, RING, LL, size_bytes=size, group=EIGHT, fabric=HOPPER)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: Fabric(in_node=0),
        lambda: Fabric(between_nodes=-1.0),
        lambda: Fabric(in_node=float("nan")),
        lambda: Fabric(channels=0),
        lambda: Fabric(network_latency=-1e-6),
        lambda: Fabric(hardware=Hardware.NET),
    ],
)
def test_nonsense_is_refused(asked):
    with pytest.raises(ValueError, match="wanted"):
        asked()


def test_a_bottleneck_alone_makes_a_fabric_of_the_links_class():
    assert fabric_at(1 * GB, link_class="NV18").hardware is Hardware.NVLINK
    assert fabric_at(1 * GB, link_class="NODE").hardware is Hardware.PCIE
    assert fabric_at(1 * GB).hardware is Hardware.PCIE
    assert fabric_at(1 * GB).bottleneck(Group(16, 2)) == 1 * GB
