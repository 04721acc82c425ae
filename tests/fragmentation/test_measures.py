import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.fragmentation import measures

FREE = st.lists(st.integers(0, 1000), min_size=1, max_size=16)
FULL = [0, 0, 0, 0]


def test_a_full_node_has_no_fragmentation_of_any_kind():
    assert measures.external(FULL) is None
    assert measures.external_normalised(FULL) is None
    assert measures.unusable(FULL, [500]) is None
    assert measures.gang(FULL, 2) is None
    assert measures.of_several([FULL, FULL]) is None


def test_a_host_without_gpus_has_none_either():
    assert measures.external([]) is None
    assert measures.unusable([], [500]) is None
    assert measures.gang([], 8) is None
    assert measures.of_several([[], []]) is None


def test_external_is_what_lies_not_on_the_freest_gpu():
    assert measures.external([600, 200, 200]) == pytest.approx(0.4)
    assert measures.external([0, 0, 300]) == 0


def test_nodes_of_two_and_of_eight_gpus_compare_when_normalised():
    assert measures.external([1000] * 8) == 0.875
    assert measures.external_normalised([1000] * 8) == 1
    assert measures.external_normalised([1000] * 2) == 1
    assert measures.external_normalised([1000, 0]) == 0
    assert measures.external_normalised([500]) is None


def test_what_is_as_large_as_the_demand_is_of_use():
    assert measures.unusable([500, 499, 1], [500]) == pytest.approx(0.5)


def test_demands_weigh_alike():
    assert measures.unusable([300, 700], [300, 500]) == pytest.approx(0.15)
    assert measures.unusable([300, 700], []) is None


def test_what_is_free_may_come_from_an_iterator():
    assert measures.unusable(iter([300, 700]), iter([300, 500])) == pytest.approx(0.15)
    assert measures.gang(iter([3, 1]), 2) == 0.5


def test_islands_count_by_what_is_free_on_each():
    assert measures.external([5]) == 0
    assert measures.external([3, 1]) == 0.25
    assert measures.of_several([[5], [3, 1]]) == pytest.approx(1 / 9)


def test_a_gang_finds_only_whole_multiples_of_itself_on_a_node():
    assert measures.gang([4, 4, 3, 1], 4) == pytest.approx(1 / 3)
    assert measures.gang([7, 7], 8) == 1
    assert measures.gang([5, 3], 1) == 0
    with pytest.raises(ValueError, match="at least one GPU"):
        measures.gang([1], 0)


def test_several_nodes_count_by_what_is_free_on_them():
    assert measures.of_several([[1000, 1000], [0, 10]]) == pytest.approx(1000 / 2010)


@given(FREE, st.lists(st.integers(1, 1000), min_size=1, max_size=4))
def test_every_share_lies_between_nothing_and_all(free, demands):
    found = [measures.external(free), measures.external_normalised(free)]
    found += [measures.unusable(free, demands), measures.gang(free, 8), measures.of_several([free])]
    assert all(share is None or 0 <= share <= 1 + 1e-12 for share in found)
    assert (measures.external(free) is None) == (sum(free) == 0)


@given(FREE, st.integers(1, 999))
def test_a_larger_demand_leaves_no_less_unusable(free, demand):
    smaller, larger = (measures.unusable(free, [size]) for size in (demand, demand + 1))
    assert smaller is None or smaller <= larger
