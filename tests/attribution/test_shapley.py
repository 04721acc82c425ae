from itertools import pairwise, permutations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.attribution.power_curve import PowerCurve
from seedance_obs.attribution.shapley import ShapleySplit, shapley_values

ACTIVITIES = st.lists(st.floats(0, 1), min_size=1, max_size=5)


def concave(total):
    return 120 * total + 200 * sqrt(total)


def averaged_over_orders(activities, power):
    found = dict.fromkeys(activities, 0.0)
    orders = list(permutations(activities))
    for order in orders:
        before = 0.0
        for key in order:
            after = before + activities[key]
            found[key] += (power(after) - power(before)) / len(orders)
            before = after
    return found


@given(ACTIVITIES)
def test_values_are_the_mean_gain_over_all_orders_of_arrival(values):
    activities = dict(enumerate(values))
    expected = averaged_over_orders(activities, concave)
    assert shapley_values(activities, concave) == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_values_add_up_to_what_all_draw(values):
    found = shapley_values(dict(enumerate(values)), concave)
    assert sum(found.values()) == pytest.approx(concave(sum(values)), rel=1e-12, abs=1e-9)


@given(ACTIVITIES, st.randoms(use_true_random=False))
def test_a_value_does_not_depend_on_the_order_of_the_sharers(values, random):
    activities = dict(enumerate(values))
    shuffled = list(activities.items())
    random.shuffle(shuffled)
    found = shapley_values(dict(shuffled), concave)
    assert found == pytest.approx(shapley_values(activities, concave), abs=1e-9)


def test_equals_owe_the_same_and_who_does_nothing_owes_nothing():
    found = shapley_values({"a": 0.3, "b": 0.3, "idle": 0.0, "c": 0.1}, concave)
    assert found["a"] == pytest.approx(found["b"])
    assert found["idle"] == 0
    assert found["a"] > found["c"] > 0


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=7))
def test_on_a_straight_line_the_split_is_by_activity(values):
    found = shapley_values(dict(enumerate(values)), lambda total: 300 * total)
    assert found == pytest.approx({i: 300 * value for i, value in enumerate(values)})


def test_on_a_concave_curve_the_small_owe_more_than_by_activity():
    found = shapley_values({"large": 0.8, "small": 0.1}, concave)
    assert found["small"] / sum(found.values()) > 0.1 / 0.9


def test_what_burns_without_anybody_is_nobodys():
    found = shapley_values({"a": 0.5, "b": 0.5}, lambda total: 70 + 100 * total)
    assert found == pytest.approx({"a": 50, "b": 50})


def test_nobody_owes_nothing_and_eight_are_refused():
    assert shapley_values({}, concave) == {}
    with pytest.raises(ValueError, match="at most 7"):
        shapley_values(dict.fromkeys(range(8), 0.1), concave)


def learned(ticks=200, power=concave, levels=(0.1, 0.3, 0.6, 0.95)):
    split = ShapleySplit()
    for tick in range(ticks):
        total = levels[tick % len(levels)]
        split.learn(total, power(total), 1.0)
    return split


def test_a_curve_of_the_family_is_found():
    curve = learned().curve
    assert curve.identified
    for total in (0.0, 0.05, 0.5, 1.0):
        assert curve.at(total) == pytest.approx(concave(total), rel=1e-6)


def test_a_power_of_activity_is_met_within_two_percent():
    curve = learned(power=lambda total: 400 * total**0.7).curve
    for total in (0.2, 0.5, 0.9):
        assert curve.at(total) == pytest.approx(400 * total**0.7, rel=0.02)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 700)), min_size=2, max_size=30))
def test_whatever_was_seen_the_curve_is_concave_and_rises(ticks):
    curve = PowerCurve()
    for total, watts in ticks:
        curve.learn(total, watts, 1.0)
    points = [curve.at(step / 20) for step in range(21)]
    gains = [after - before for before, after in pairwise(points)]
    assert points[0] == 0
    assert min(gains) >= 0
    rounding = 1e-9 * points[-1] + 1e-300
    assert all(a >= b - rounding for a, b in pairwise(gains))


@pytest.mark.parametrize(
    ("why", "split"),
    [
        ("too few ticks", learned(ticks=30)),
        ("activity that does not vary", learned(levels=(0.4,))),
        (
            "watts that follow no curve",
            learned(levels=(0.2, 0.21), power=lambda u: 9e4 * (u - 0.2)),
        ),
    ],
)
def test_without_a_known_curve_there_is_no_split(why, split):
    assert split.split({"a": 0.2, "b": 0.3}) is None, why


def test_the_curve_follows_a_change():
    split = learned(ticks=600)
    for tick in range(3600):
        total = (0.1, 0.3, 0.6, 0.95)[tick % 4]
        split.learn(total, 0.5 * concave(total), 1.0)
    assert split.curve.at(0.5) == pytest.approx(0.5 * concave(0.5), rel=0.01)


def test_a_split_counts_the_active_and_lists_everybody():
    split = learned()
    seven = dict.fromkeys("abcdefg", 0.1)
    found = split.split(seven | {"idle": 0.0})
    assert found is not None
    assert found["idle"] == 0
    assert sum(found.values()) == pytest.approx(concave(0.7), rel=1e-6)
    assert split.split(seven | {"h": 0.1}) is None
    assert split.split({"idle": 0.0}) is None
