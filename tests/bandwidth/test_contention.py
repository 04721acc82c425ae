import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.bandwidth.contention import TENANTS_KEPT, SegmentMeter
from seedance_obs.bandwidth.loads import Holders, Part
from seedance_obs.bandwidth.reading import SegmentName
from tests.bandwidth.segment_scenes import (
    ANNA_AND_BERT,
    FULL,
    ONE,
    SWITCH,
    TWO,
    flow,
    meters,
    reading,
    seen,
    tenants,
)

UPLINK = SegmentName("pcie_switch", "0000:18:00.0", "transmit")


def uplink(anna: list[float], bert: list[float], holders: Holders = ANNA_AND_BERT):
    """The uplink after twenty seconds in which two GPUs sent these shares of its capacity."""
    node = meters(SWITCH)
    flows = [
        flow(gpu, [part * FULL for part in parts]) for gpu, parts in ((ONE, anna), (TWO, bert))
    ]
    node.add(seen(flows), holders, now=20.0)
    return node


def test_two_tenants_that_fill_a_segment_together_contend():
    node = uplink([0.45] * 200, [0.45] * 200)
    found = reading(node)
    assert found.mean == pytest.approx(0.9 * FULL)
    assert found.observed_seconds == pytest.approx(20, abs=1.01)
    assert found.contention_seconds == pytest.approx(found.observed_seconds)
    assert found.busy_seconds == {
        0.5: pytest.approx(found.observed_seconds),
        0.8: pytest.approx(found.observed_seconds),
        0.95: 0,
    }
    assert tenants(node)["anna"].contention_seconds == pytest.approx(found.contention_seconds)


def test_a_tenant_alone_makes_a_segment_busy_and_contends_with_nobody():
    node = uplink([0.96] * 200, [0.0] * 200)
    assert reading(node).busy_seconds[0.95] == pytest.approx(reading(node).observed_seconds)
    assert reading(node).contention_seconds == 0


def test_a_tenant_below_a_tenth_takes_no_part_in_contention():
    assert reading(uplink([0.85] * 200, [0.09] * 200)).contention_seconds == 0
    node = uplink([0.85] * 200, [0.11] * 200)
    assert reading(node).contention_seconds > 18
    assert tenants(node)["bert"].contention_seconds > 18


@pytest.mark.parametrize("nobody", ["unallocated", "unobserved"])
def test_what_nobody_holds_contends_with_nobody(nobody):
    holders = Holders({ONE: {"anna": 1.0}, TWO: {nobody: 1.0}})
    node = uplink([0.45] * 200, [0.45] * 200, holders)
    assert reading(node).busy_seconds[0.8] > 18
    assert reading(node).contention_seconds == 0
    assert tenants(node)[nobody].mean == pytest.approx(0.45 * FULL)


def test_two_gpus_of_one_tenant_do_not_contend():
    holders = Holders({ONE: {"anna": 1.0}, TWO: {"anna": 1.0}})
    assert reading(uplink([0.45] * 200, [0.45] * 200, holders)).contention_seconds == 0


def test_tenants_who_share_a_gpu_contend_for_its_link():
    holders = Holders({ONE: {"anna": 0.5, "bert": 0.5}})
    node = uplink([0.9] * 200, [0.0] * 200, holders)
    assert reading(node).contention_seconds == pytest.approx(reading(node).observed_seconds)


def test_bursts_that_a_mean_of_a_second_hides_are_counted():
    bursts = ([0.45] * 2 + [0.0] * 8) * 20
    node = uplink(bursts, bursts)
    found = reading(node)
    assert found.mean == pytest.approx(0.18 * FULL)
    assert found.peak == pytest.approx(0.9 * FULL)
    assert found.contention_seconds == pytest.approx(0.2 * found.observed_seconds)


def test_tenants_who_take_turns_do_not_contend():
    anna, bert = ([0.9] * 5 + [0.0] * 5) * 20, ([0.0] * 5 + [0.9] * 5) * 20
    node = uplink(anna, bert)
    assert reading(node).busy_seconds[0.8] == pytest.approx(reading(node).observed_seconds)
    assert reading(node).contention_seconds == 0


def test_jitter_is_the_standard_deviation_of_the_cells():
    node = uplink([0.2, 0.4] * 100, [0.3] * 200)
    found = tenants(node)
    assert found["anna"].mean == pytest.approx(0.3 * FULL)
    assert found["anna"].jitter == pytest.approx(0.1 * FULL)
    assert found["bert"].jitter == pytest.approx(0, abs=1)
    assert found["anna"].peak == pytest.approx(0.4 * FULL)
    assert [each.share for each in found.values()] == pytest.approx([0.5, 0.5])


def meter(window_blocks: int = 15) -> SegmentMeter:
    return SegmentMeter(UPLINK, FULL, cell_seconds=0.1, window_blocks=window_blocks)


def close(meter: SegmentMeter, number: int, *parts: Part, holes: frozenset[int] = frozenset()):
    return meter.close(number, parts, holes, kept_blocks=300)


def test_what_lies_before_the_window_is_in_totals_only():
    it = meter(window_blocks=3)
    close(it, 0, Part([5e9] * 10, {"anna": 1.0}))
    for number in range(1, 4):
        close(it, number, Part([1e9] * 10, {"anna": 1.0}))
    found = it.reading()
    assert (found.mean, found.peak) == (pytest.approx(1e10), pytest.approx(1e10))
    assert found.total == pytest.approx(80e9)
    assert found.busy_seconds[0.95] == pytest.approx(1)


def test_unobserved_time_pushes_what_was_seen_out_of_the_window():
    it = meter(window_blocks=3)
    close(it, 0, Part([1e9] * 10, {"anna": 1.0}))
    assert close(it, 3, Part([0.0] * 10, {"anna": 1.0}), holes=frozenset(range(10))) is None
    assert it.reading().mean is None
    assert it.reading().total == pytest.approx(10e9)
    assert it.tenants() == []


def test_a_segment_never_observed_has_no_reading():
    it = meter()
    close(it, 0, Part([0.0] * 10, {"anna": 1.0}), holes=frozenset(range(10)))
    assert it.reading() is None
    assert it.tenants() == []


def test_an_idle_segment_is_a_reading_of_zero():
    it = meter()
    close(it, 0, Part([0.0] * 10, {"anna": 1.0}))
    assert (it.reading().mean, it.reading().peak, it.reading().total) == (0, 0, 0)
    assert [(each.mean, each.share) for each in it.tenants()] == [(0, 0)]


def test_holes_are_left_out_of_all_that_is_told():
    it = meter()
    close(it, 0, Part([1e9] * 5 + [9e9] * 5, {"anna": 1.0}), holes=frozenset(range(5, 10)))
    assert it.reading().observed_seconds == pytest.approx(0.5)
    assert it.reading().peak == pytest.approx(1e10)
    assert it.reading().busy_seconds[0.5] == 0


def test_a_tenant_that_has_gone_is_told_for_a_while_and_then_forgotten():
    it = meter()
    half = [Part([0.45 * FULL / 10] * 10, {name: 1.0}) for name in ("anna", "bert")]
    close(it, 0, *half)
    for number in range(1, 301):
        close(it, number, half[0])
    gone = {each.tenant: each for each in it.tenants()}["bert"]
    assert (gone.mean, gone.share, gone.peak) == (0, 0, 0)
    assert gone.contention_seconds == pytest.approx(1)
    close(it, 301, half[0])
    assert [each.tenant for each in it.tenants()] == ["anna"]


def test_tenants_are_bounded_however_many_come():
    it = meter()
    for number in range(3 * TENANTS_KEPT):
        close(it, number, Part([1.0] * 10, {f"job-{number}": 1.0}))
    assert len(it.tenants()) <= TENANTS_KEPT + 1


amounts = st.lists(st.floats(0, 1e10), min_size=4, max_size=4)
names = st.sampled_from(["anna", "bert", "carl"])


@st.composite
def parts(draw: st.DrawFn) -> Part:
    weights = draw(st.dictionaries(names, st.floats(0.01, 1), min_size=1))
    total = sum(weights.values())
    return Part(draw(amounts), {name: weight / total for name, weight in weights.items()})


@given(
    st.lists(st.tuples(st.lists(parts(), min_size=1, max_size=3), st.sets(st.integers(0, 3)))),
)
def test_tenants_add_up_to_the_segment_whatever_is_missing(blocks):
    it = meter()
    for number, (found, holes) in enumerate(blocks):
        close(it, number, *found, holes=frozenset(holes))
    told = it.tenants()
    if told:
        assert sum(each.mean for each in told) == pytest.approx(it.reading().mean)
        shares = sum(each.share for each in told)
        assert shares == pytest.approx(1 if it.reading().mean else 0)
        assert max(each.peak for each in told) <= it.reading().peak * (1 + 1e-9)
    else:
        assert it.reading() is None or it.reading().mean is None


@given(st.lists(amounts, min_size=1, max_size=6))
def test_means_and_jitter_do_not_depend_on_how_cells_are_cut_into_blocks(blocks):
    cut, whole = meter(), meter()
    for number, cells in enumerate(blocks):
        close(cut, number, Part(cells, {"anna": 1.0}))
    close(whole, 0, Part([x for cells in blocks for x in cells], {"anna": 1.0}))
    here, there = cut.tenants()[0], whole.tenants()[0]
    assert here.mean == pytest.approx(there.mean)
    assert here.jitter == pytest.approx(there.jitter, rel=1e-6, abs=1e-3)
    assert cut.reading().busy_seconds == pytest.approx(whole.reading().busy_seconds)
