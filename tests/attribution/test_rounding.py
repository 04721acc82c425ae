"""Integers that add up at every step, and drift from nobody's exact share."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.attribution.rounding import Carry, Columns, Shares

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), min_size=1)
PORTIONS = st.tuples(st.integers(0, 50) | st.integers(0, 10**9), WEIGHTS)


def exact(total, weights):
    whole = sum(weights.values())
    return {key: total * weight / whole for key, weight in weights.items()}


@given(st.lists(PORTIONS.filter(lambda portion: sum(portion[1].values()) > 1e-3), max_size=40))
def test_splits_add_up_and_nobody_drifts_from_its_exact_sum(portions):
    carry = Carry()
    due, given_out = dict.fromkeys("abcdef", 0.0), dict.fromkeys("abcdef", 0)
    for total, weights in portions:
        shares = exact(total, weights)
        parts = carry.split(total, shares)
        assert sum(parts.values()) == total
        assert min(parts.values(), default=0) >= 0
        for key, part in parts.items():
            given_out[key] += part
        for key, share in shares.items():
            due[key] += share
    assert all(abs(due[key] - given_out[key]) < 2 for key in due)


def test_thirds_of_many_wholes_are_thirds_of_their_sum():
    carry, sums = Carry(), dict.fromkeys("abc", 0)
    for _ in range(10_000):
        for key, part in carry.split(100, dict.fromkeys("abc", 100 / 3)).items():
            sums[key] += part
    assert sorted(sums.values()) == [333_333, 333_333, 333_334]


def test_who_is_due_nothing_gets_nothing_though_units_are_left():
    assert Carry().split(7, {"a": 0.0, "b": 7.0}) == {"b": 7}
    assert Carry().split(0, {"a": 0.0}) == {}
    with pytest.raises(ValueError, match="nobody to give 1 to"):
        Carry().split(1, {"a": 0.0})


def test_many_that_leave_early_do_not_run_up_a_debt_for_the_one_that_stays():
    carry, due, given_out = Carry(), 0.0, 0
    chance = random.Random(7)
    for birth in range(20_000):
        share = chance.random() * 3
        parts = carry.split(3, {"stays": share, f"short-{birth}": 3 - share})
        carry.forget(f"short-{birth}")
        due, given_out = due + share, given_out + parts["stays"]
        assert abs(due - given_out) < 2
    assert len(carry.as_state()) == 1


def test_kinds_and_accounts_add_up_together():
    columns, kinds = Columns(), {"active": 0, "reserved": 0, "free": 0}
    for _ in range(1_000):
        shares = Shares({"a": 0.3, "b": 0.3}, {"a": 0.15, "b": 0.15}, 0.1, 0.0)
        parts = columns.split(1, shares)
        kinds["active"] += sum(parts.active.values())
        kinds["reserved"] += sum(parts.reserved.values())
        kinds["free"] += parts.unallocated
    assert kinds == {"active": 600, "reserved": 300, "free": 100}
