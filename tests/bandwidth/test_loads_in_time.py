import pickle
from dataclasses import replace

import pytest

from seedance_obs.bandwidth.loads import Holders, SharedSegment
from seedance_obs.bandwidth.reading import SegmentReading
from seedance_obs.flow import Channel, Flow, Window
from tests.bandwidth.segment_scenes import (
    ADAPTER,
    ANNA_AND_BERT,
    FULL,
    GB,
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

EITHER = ("transmit", "receive")


def second(number: int, rate: float, gpu: str = ONE, **more) -> Flow:
    return flow(gpu, [rate] * 10, since=float(number), **more)


def play(node, seconds, *, holders=ANNA_AND_BERT, one=10 * GB, two=10 * GB):
    """Second after second of two GPUs that send; None for one that does not answer."""
    for number in seconds:
        told = [second(number, rate, gpu) for gpu, rate in ((ONE, one), (TWO, two)) if rate]
        node.add(told, holders, now=number + 1.0)


def test_the_phases_of_loops_do_not_matter():
    node = meters(SWITCH)
    told = [flow(ONE, [20 * GB] * 200), flow(TWO, [20 * GB] * 200, since=0.037)]
    node.add(told, ANNA_AND_BERT, now=20.1)
    assert reading(node).mean == pytest.approx(40 * GB)
    assert reading(node).peak == pytest.approx(40 * GB)
    assert reading(node).busy_seconds[0.8] == pytest.approx(reading(node).observed_seconds)


def test_how_often_flows_are_handed_over_does_not_matter():
    told = [
        flow(gpu, [((number * 7 + place) % 5) * 10 * GB for number in range(200)])
        for place, gpu in enumerate((ONE, TWO))
    ]
    at_once, bit_by_bit = meters(SWITCH), meters(SWITCH)
    at_once.add(told, ANNA_AND_BERT, now=20.0)
    for number in range(0, 200, 3):
        part = [Flow(f.channel, f.source, f.windows[number : number + 3]) for f in told]
        bit_by_bit.add(part, ANNA_AND_BERT, now=(number + 3) / 10)
    assert bit_by_bit.readings() == at_once.readings()
    assert bit_by_bit.tenants() == at_once.tenants()


def test_a_block_waits_for_the_slowest_member():
    node = meters(SWITCH)
    node.add([second(0, GB), second(0, GB, TWO)], ANNA_AND_BERT, now=1.0)
    for number in range(1, 11):
        node.add([second(number, 20 * GB)], ANNA_AND_BERT, now=number + 1.0)
    assert reading(node).observed_seconds == pytest.approx(1)
    late = flow(TWO, [20 * GB], since=1.0, every=10.0, source="dcgm")
    node.add([late], ANNA_AND_BERT, now=11.5)
    assert reading(node).observed_seconds == pytest.approx(11)
    assert reading(node).busy_seconds[0.8] == pytest.approx(10)


def by_name(node) -> dict[str, SegmentReading]:
    return {e.segment.name: e for e in node.readings() if e.segment.direction == "transmit"}


def test_a_member_that_is_silent_makes_its_segment_unobserved_and_no_other():
    alone = SharedSegment("pcie_switch", "other", (ONE,), (), FULL)
    node = meters(SWITCH, alone)
    play(node, range(10))
    play(node, range(10, 100), two=None)
    shared, other = by_name(node)[SWITCH.name], by_name(node)["other"]
    assert shared.observed_seconds == pytest.approx(10)
    assert shared.total == pytest.approx(200 * GB)
    assert (shared.mean, shared.peak) == (None, None)
    assert other.observed_seconds == pytest.approx(100)
    play(node, range(100, 110))
    assert by_name(node)[SWITCH.name].observed_seconds == pytest.approx(20)
    assert by_name(node)[SWITCH.name].mean == pytest.approx(20 * GB)


def test_a_member_that_is_gone_for_good_is_not_missed():
    node = meters(SWITCH)
    play(node, range(10))
    play(node, range(10, 20), two=None)
    node.follow([replace(SWITCH, gpus=(ONE,))])
    play(node, range(20, 30), two=None)
    assert reading(node).observed_seconds == pytest.approx(30)
    assert reading(node).total == pytest.approx(400 * GB)
    assert tenants(node)["bert"].mean == 0


def test_a_gpu_that_never_told_leaves_its_segment_without_a_reading():
    node = meters(SWITCH)
    play(node, range(100), two=None)
    assert node.readings() == ()
    assert node.tenants() == ()


def test_an_adapter_that_falls_silent_is_missed_for_five_seconds_and_welcome_back():
    node = meters(WITH_NIC, ADAPTER)

    def seconds(*numbers: int, nic: bool) -> tuple[float, float]:
        for number in numbers:
            told = [second(number, GB, gpu, direction=way) for gpu in (ONE, TWO) for way in EITHER]
            if nic:
                told.append(second(number, GB, NIC, medium="network", source="ethernet"))
            node.add(told, ANNA_AND_BERT, now=number + 1.0)
        uplink = reading(node, "receive", kind="pcie_switch")
        return uplink.observed_seconds, reading(node, kind="nic").observed_seconds

    assert seconds(*range(10), nic=True) == pytest.approx((10, 10))
    assert seconds(*range(10, 15), nic=False) == pytest.approx((10, 10))
    assert seconds(15, nic=False) == pytest.approx((16, 10))
    assert seconds(*range(16, 40), nic=False) == pytest.approx((40, 10))
    assert reading(node, "receive", kind="pcie_switch").mean == pytest.approx(2 * GB)
    assert reading(node, kind="nic").mean is None
    assert seconds(*range(40, 50), nic=True) == pytest.approx((50, 20))
    assert reading(node, "receive", kind="pcie_switch").peak == pytest.approx(3 * GB)


def page(number: int, gpu: str, way: str = "transmit") -> Flow:
    return flow(gpu, [GB], direction=way, since=number - 30.0, every=30.0, source="dcgm")


def test_an_adapters_silence_is_known_when_a_slow_page_tells_of_it_later():
    node = meters(WITH_NIC)
    for now in range(30, 91):
        told = []
        if not 40 < now <= 50:
            told.append(second(now - 1, GB, NIC, medium="network", source="ethernet"))
        if now % 30 == 0:
            told += [page(now, gpu, way) for gpu in (ONE, TWO) for way in EITHER]
        node.add(told, ANNA_AND_BERT, now=float(now))
    assert reading(node, "receive").observed_seconds == pytest.approx(90)
    assert reading(node, "receive").total == pytest.approx((2 * 90 + 61 - 10) * GB)


def test_a_fast_loop_is_waited_for_as_long_as_was_asked_and_a_slow_page_three_times():
    slow, fast = meters(SWITCH, patience_seconds=20.0), meters(SWITCH, patience_seconds=20.0)
    for now in range(30, 150):
        ones = [second(now - 1, GB)] if now > 30 else [flow(ONE, [GB] * 300)]
        twos = now == 30
        slow.add([*ones, *([page(30, TWO)] * twos)], ANNA_AND_BERT, now=float(now))
        fast.add([*ones, *([flow(TWO, [GB] * 300)] * twos)], ANNA_AND_BERT, now=float(now))
        assert (reading(fast).mean is None) == (now > 30 + 20)
        assert (reading(slow).mean is None) == (now > 30 + 3 * 30)


def test_a_tenant_is_shown_from_zero_as_soon_as_it_sits_on_a_gpu():
    node = meters(SWITCH)
    play(node, range(10))
    node.add([], Holders({ONE: {"anna": 1.0, "carl": 1.0}}), now=10.05)
    assert (tenants(node)["carl"].mean, tenants(node)["carl"].contention_seconds) == (0, 0)


def test_a_page_alone_tells_means_as_long_as_its_interval():
    node = meters(SWITCH)
    for number in range(6):
        told = [
            flow(gpu, [rate], since=number * 30.0, every=30.0, source="dcgm")
            for gpu, rate in ((ONE, 30 * GB), (TWO, 15 * GB))
        ]
        node.add(told, ANNA_AND_BERT, now=number * 30 + 33.0)
    found = reading(node)
    assert found.observed_seconds == pytest.approx(180)
    assert found.total == pytest.approx(180 * 45 * GB)
    assert found.contention_seconds == pytest.approx(180)
    assert tenants(node)["anna"].share == pytest.approx(2 / 3)


def test_a_burst_that_a_link_can_carry_is_a_burst():
    node = meters(SWITCH)
    node.add(seen([flow(ONE, ([0.0] * 4 + [FULL]) * 40)]), ANNA_AND_BERT, now=20.0)
    assert reading(node).busy_seconds[0.95] == pytest.approx(reading(node).observed_seconds / 5)


def test_what_two_sources_tell_of_one_time_counts_once():
    node = meters(SWITCH)
    told = [flow(ONE, [10 * GB] * 100), flow(ONE, [10 * GB] * 2, every=10.0, source="dcgm")]
    node.add([*told, flow(TWO, [0.0] * 200)], ANNA_AND_BERT, now=20.0)
    assert reading(node).total == pytest.approx(200 * GB)


def test_bytes_are_of_those_who_held_the_gpu_then():
    node = meters(SWITCH)
    anna, bert = (Holders({ONE: {name: 1.0}, TWO: {name: 1.0}}) for name in ("anna", "bert"))
    play(node, range(6), holders=anna)
    for number in range(6, 12):
        node.add([second(number, 10 * GB)], bert, now=number + 1.0)
    node.add([flow(TWO, [10 * GB] * 60, since=6.0)], bert, now=12.5)
    found = tenants(node)
    assert found["anna"].share == pytest.approx(0.5)
    assert found["bert"].mean == pytest.approx(10 * GB)


def test_a_segment_that_comes_back_goes_on_counting():
    node = meters(SWITCH)
    play(node, range(10))
    node.follow([])
    play(node, range(10, 20))
    assert node.readings() == ()
    node.follow([SWITCH])
    play(node, range(20, 30))
    assert reading(node).total == pytest.approx(400 * GB)


def test_a_changed_capacity_counts_from_then_on():
    node = meters(SWITCH)
    play(node, range(10))
    node.follow([replace(SWITCH, capacity=22 * GB)])
    play(node, range(10, 20))
    assert reading(node).busy_seconds[0.8] == pytest.approx(10)


def test_half_minutes_are_told_once_if_most_of_one_was_observed():
    node = meters(SWITCH)
    play(node, range(5, 35))  # 25 of 30 seconds
    play(node, range(35, 60), two=None)
    play(node, range(60, 91), one=20 * GB)
    told = [each for each in node.take_windows() if each.segment.direction == "transmit"]
    assert [each.start for each in told] == [0, 60]
    assert told[0].tenants == {"anna": pytest.approx(10 * GB), "bert": pytest.approx(10 * GB)}
    assert told[1].load == pytest.approx(30 * GB)
    assert told[1].capacity == FULL
    assert node.take_windows() == ()


def test_a_pause_of_hours_costs_neither_time_nor_memory():
    node = meters(SWITCH, ADAPTER)
    play(node, range(10))
    play(node, range(36_000, 36_010))
    assert reading(node, kind="pcie_switch").observed_seconds == pytest.approx(20)


def test_memory_stays_flat():
    """Of hundreds of jobs that come and go, each with a name of its own."""
    node = meters(WITH_NIC, ADAPTER)
    sizes = []
    for number in range(450):
        holders = Holders({ONE: {f"job-{number}": 1.0}, TWO: {"bert": 1.0}}, {NIC: (ONE,)})
        told = [second(number, GB, gpu, direction=way) for gpu in (ONE, TWO) for way in EITHER]
        told.append(second(number, GB, NIC, medium="network", source="rdma"))
        node.add(told, holders, now=number + 1.0)
        node.take_windows()
        if number in (249, 449):
            sizes.append(len(pickle.dumps(node)))
    assert sizes[1] < 1.1 * sizes[0]


def test_windows_before_anything_is_followed_harm_nothing():
    node = meters()
    node.add([Flow(Channel(ONE, "power"), "sensor", (Window(0.0, 0.1, 30.0),))], Holders(), now=1.0)
    play(node, range(1, 5))
    assert (node.readings(), node.tenants(), node.take_windows()) == ((), (), ())
