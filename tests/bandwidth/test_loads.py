from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.bandwidth.loads import Holders, SharedSegment
from seedance_obs.flow import Channel, Flow, Window
from tests.bandwidth.segment_scenes import (
    ADAPTER,
    ANNA_AND_BERT,
    DOMAIN,
    FULL,
    GB,
    MEMORY,
    NIC,
    ONE,
    SWITCH,
    TWO,
    WITH_NIC,
    flow,
    meters,
    reading,
    seen,
    tenants,
)

STEADY = [10 * GB] * 200


def after(flows, segment=WITH_NIC, holders=ANNA_AND_BERT, now=20.0):
    """The meters of one segment after some flows; GPUs without one were idle."""
    node = meters(segment)
    node.add(seen(flows), holders, now=now)
    return node


def network(rates, direction, via):
    return flow(NIC, rates, medium="network", direction=direction, source=via)


def test_bytes_of_peers_below_a_switch_do_not_cross_its_uplink():
    holders = Holders(ANNA_AND_BERT.shares, peers={ONE: {TWO: 1.0}, TWO: {ONE: 1.0}})
    flows = [flow(ONE, STEADY), flow(TWO, STEADY, direction="receive")]
    node = after(flows, SWITCH, holders)
    assert (reading(node).total, reading(node, "receive").total) == (0, 0)


def test_bytes_that_nobody_knows_to_stay_below_count():
    node = after([flow(ONE, STEADY)], SWITCH)
    assert reading(node).mean == pytest.approx(10 * GB)


def test_bytes_of_peers_below_another_switch_cross_the_uplink_but_not_the_root():
    holders = Holders(ANNA_AND_BERT.shares, peers={ONE: {TWO: 0.75}})
    one = SharedSegment("pcie_switch", "0000:18:00.0", (ONE,), (), FULL)
    root = SharedSegment("pcie_root", "pci0000:15", (ONE, TWO), (), 2 * FULL)
    node = meters(one, root)
    node.add(seen([flow(ONE, STEADY)]), holders, now=20.0)
    assert reading(node, kind="pcie_switch").mean == pytest.approx(10 * GB)
    assert reading(node, kind="pcie_root").mean == pytest.approx(2.5 * GB)


def test_gpudirect_counts_once():
    flows = [flow(ONE, STEADY), network(STEADY, "transmit", "rdma")]
    node = after(flows)
    assert reading(node).mean == pytest.approx(10 * GB)
    assert reading(node, "receive").total == 0


@pytest.mark.parametrize("via", ["rdma", "ethernet"])
def test_an_adapter_that_sends_from_the_hosts_memory_takes_from_the_way_to_the_gpus(via):
    node = after([network(STEADY, "transmit", via)])
    assert reading(node, "receive").mean == pytest.approx(10 * GB)
    assert reading(node).total == 0


@pytest.mark.parametrize("via", ["rdma", "ethernet"])
def test_what_an_adapter_receives_into_the_hosts_memory_goes_the_way_up(via):
    node = after([network(STEADY, "receive", via)])
    assert reading(node).mean == pytest.approx(10 * GB)
    assert reading(node, "receive").total == 0


def test_ethernet_adds_to_what_gpus_move():
    flows = [flow(ONE, STEADY), network(STEADY, "receive", "ethernet")]
    assert reading(after(flows)).mean == pytest.approx(20 * GB)


def test_of_rdma_only_what_exceeds_the_gpus_crosses_to_the_host():
    flows = [
        flow(ONE, [6 * GB] * 200, direction="receive"),
        network(STEADY, "receive", "rdma"),
    ]
    node = after(flows)
    assert reading(node).mean == pytest.approx(4 * GB)
    assert reading(node, "receive").mean == pytest.approx(6 * GB)


def test_gpudirect_that_a_slow_source_tells_counts_about_once():
    bursts = ([50 * GB] + [0.0] * 9) * 60
    told = [flow(ONE, [5 * GB] * 6, every=10.0, source="dcgm"), network(bursts, "transmit", "rdma")]
    node = meters(WITH_NIC)
    node.add(seen(told, seconds=60), ANNA_AND_BERT, now=60.0)
    assert reading(node).mean == pytest.approx(5 * GB)
    assert reading(node, "receive").total < 0.01 * reading(node).total


def test_gpudirect_seen_in_two_phases_counts_about_once():
    bursts = ([20 * GB] * 3 + [0.0] * 7) * 20
    shifted = flow(NIC, bursts, medium="network", source="rdma", since=0.03)
    node = after([flow(ONE, bursts), shifted])
    assert reading(node, "receive").total < 0.05 * reading(node).total


BURSTS = ([45 * GB] * 3 + [0.0] * 7) * 20


def contended(rdma, *, phase: float = 0.0, host: float = 0.0) -> float:
    """The contended part of 20 s in which GPUs send by RDMA through an adapter each, or more."""
    second = "0000:1c:00.0"
    holders = Holders(ANNA_AND_BERT.shares, {NIC: (ONE,), second: (TWO,)})
    told = [
        each
        for gpu, nic in ((ONE, NIC), (TWO, second))
        for each in (
            flow(gpu, [rate + host for rate in rdma]),
            flow(nic, rdma, medium="network", source="rdma", since=phase),
        )
    ]
    node = meters(replace(WITH_NIC, nics=(NIC, second)))
    node.add(seen(told), holders, now=20.5)
    busy = reading(node).busy_seconds[0.8]
    assert busy > 4, "the load stays an upper bound"
    return reading(node).contention_seconds / busy


def test_gpudirect_below_a_switch_is_load_and_no_contention():
    assert contended([40 * GB] * 200) == 0
    assert contended(BURSTS) == 0


@pytest.mark.parametrize("phase", [0.03, 0.1, 0.17])
def test_bursts_by_gpudirect_do_not_contend_whatever_the_phases(phase):
    assert contended(BURSTS, phase=phase) == 0


@pytest.mark.parametrize(
    ("since", "blurred"), [(0.0, [45, 22.5, 0, 0, 0] * 20), (0.1, [45, 0, 0, 0, 22.5] * 20)]
)
def test_bursts_by_gpudirect_that_longer_windows_blur_do_not_contend(since, blurred):
    """Some of the bytes then seem to pass in the second before the adapter's."""
    rates = [rate * GB for rate in blurred]
    told = [flow(gpu, rates, every=0.2, since=since) for gpu in (ONE, TWO)]
    told.append(network([2 * rate for rate in BURSTS], "transmit", "rdma"))
    node = after(told, holders=Holders(ANNA_AND_BERT.shares, {NIC: (ONE, TWO)}))
    assert reading(node).busy_seconds[0.8] > 7
    assert reading(node).contention_seconds == 0


def test_what_gpus_move_beside_gpudirect_contends_still():
    assert contended([10 * GB] * 200, host=22 * GB) == pytest.approx(1)
    assert contended([30 * GB] * 200, host=10 * GB) == 0


def test_gpudirect_of_an_adapter_below_another_switch_contends():
    told = [flow(gpu, [22 * GB] * 200) for gpu in (ONE, TWO)]
    told.append(network([20 * GB] * 200, "transmit", "rdma"))
    assert reading(after(told, SWITCH)).contention_seconds > 18
    assert reading(after(told, WITH_NIC)).contention_seconds == 0


def test_bytes_known_to_go_to_peers_are_no_contention():
    holders = Holders(ANNA_AND_BERT.shares, peers={ONE: {TWO: 1.0}})
    told = [flow(gpu, [30 * GB] * 200) for gpu in (ONE, TWO)]
    assert reading(after(told, SWITCH)).contention_seconds > 18
    assert reading(after(told, SWITCH, holders)).contention_seconds == 0


def test_an_adapter_adds_up_its_protocols():
    told = [network(STEADY, "transmit", "rdma"), network(STEADY, "transmit", "ethernet")]
    assert reading(after(told, ADAPTER)).mean == pytest.approx(20 * GB)


def test_bytes_of_an_adapter_are_those_of_the_tenants_of_the_nearest_gpus():
    holders = Holders({ONE: {"anna": 0.25, "bert": 0.75}, TWO: {"carl": 1.0}}, {NIC: (ONE,)})
    told = [flow(ONE, STEADY), flow(TWO, STEADY), network(STEADY, "transmit", "rdma")]
    found = tenants(after(told, ADAPTER, holders))
    assert {name: each.mean for name, each in found.items()} == {
        "anna": pytest.approx(2.5 * GB),
        "bert": pytest.approx(7.5 * GB),
    }


def test_bytes_of_an_adapter_whose_gpus_are_idle_are_nobodys():
    found = tenants(after([network(STEADY, "transmit", "ethernet")], ADAPTER))
    assert list(found) == ["unallocated"]


def test_an_adapter_that_never_told_is_not_there():
    assert meters(ADAPTER).readings() == ()
    assert after([], ADAPTER).readings() == ()
    assert reading(after([flow(ONE, STEADY)])).mean == pytest.approx(10 * GB)


def test_a_domain_carries_what_leaves_its_gpus():
    told = [
        flow(ONE, STEADY, medium="nvlink"),
        flow(TWO, STEADY, medium="nvlink"),
        flow(ONE, STEADY, medium="nvlink", direction="receive"),
    ]
    node = after(told, DOMAIN)
    assert reading(node).mean == pytest.approx(20 * GB)
    assert [each.segment.direction for each in node.readings()] == ["transmit"]


def test_memory_carries_its_activity_times_its_capacity():
    node = after([flow(ONE, [0.6] * 200, medium="hbm", direction="")], MEMORY)
    assert reading(node, "").mean == pytest.approx(1800 * GB)
    assert reading(node, "").busy_seconds[0.5] == reading(node, "").observed_seconds
    assert reading(node, "").busy_seconds[0.8] == 0


def test_what_tenants_leave_of_a_gpu_is_nobodys_and_more_than_all_is_shared_out():
    some = Holders({ONE: {"anna": 0.25}})
    assert tenants(after([flow(ONE, STEADY)], SWITCH, some))["unallocated"].share == pytest.approx(
        0.75
    )
    more = Holders({ONE: {"anna": 1.0, "bert": 3.0}, TWO: {"anna": 1.0}})
    found = tenants(after([flow(ONE, STEADY)], SWITCH, more))
    assert {name: each.share for name, each in found.items()} == {
        "anna": pytest.approx(0.25),
        "bert": pytest.approx(0.75),
    }


EITHER = ("transmit", "receive")


def made_up(random: Random) -> tuple[list[Flow], Holders]:
    """What two GPUs and an adapter that anybody may share moved in three seconds."""

    def rates() -> list[float]:
        return [random.choice([0.0, random.uniform(0, 50e9)]) for _ in range(30)]

    told = [flow(gpu, rates(), direction=way) for gpu in (ONE, TWO) for way in EITHER]
    phase = random.uniform(0, 0.099)
    told += [
        flow(NIC, rates(), medium="network", direction=way, source=via, since=phase)
        for way in EITHER
        for via in random.sample(["rdma", "ethernet"], random.randint(0, 2))
    ]
    tenants = random.sample(["anna", "bert", "carl"], 3)
    shares = {
        gpu: {name: random.random() for name in tenants[: random.randint(0, 3)]}
        for gpu in (ONE, TWO)
    }
    peers = {ONE: {TWO: random.random()}, TWO: {ONE: random.random()}}
    return told, Holders(shares, {NIC: (ONE, TWO)}, peers)


@given(st.integers(0, 10**6))
@settings(max_examples=50)
def test_tenants_add_up_and_no_byte_counts_twice(seed):
    told, holders = made_up(Random(seed))
    node = meters(WITH_NIC, ADAPTER)
    node.add(told, holders, now=3.2)
    for found in node.readings():
        those = [each.mean for each in node.tenants() if each.segment == found.segment]
        assert sum(those) == pytest.approx(found.mean, abs=1e-3)
    for way, other in (EITHER, EITHER[::-1]):
        crossing = [("pcie", way), ("network", other)]
        most = sum(
            window.amount
            for each in told
            if each.channel[1:] in crossing
            for window in each.windows
        )
        for found in node.readings():
            if found.segment.kind == "pcie_switch" and found.segment.direction == way:
                assert found.total <= most * (1 + 1e-9)


@given(
    st.lists(st.floats(0.02, 0.35), min_size=30, max_size=60),
    st.floats(0, 0.1),
    st.sampled_from([0.1, 0.25, 1.0]),
)
def test_no_byte_is_lost_or_made_however_windows_lie_on_the_grid(lengths, start, interval):
    windows, end = [], start
    for length in lengths:
        windows.append(Window(end, end + length, 7 * GB * length))
        end += length
    node = meters(SharedSegment("pcie_switch", "s", (ONE,), (), FULL), interval_seconds=interval)
    node.add([Flow(Channel(ONE, "pcie", "transmit"), "gpm", tuple(windows))], Holders(), now=end)
    if node.readings():
        found = reading(node)
        assert found.total == pytest.approx(7 * GB * found.observed_seconds)
        assert found.mean == pytest.approx(7 * GB)
        assert found.peak == pytest.approx(7 * GB)
