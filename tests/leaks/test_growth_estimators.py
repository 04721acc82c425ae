"""What the bench of estimators says of ours, on fewer windows."""

import pytest

from tests.bench.leak_estimators import (
    JUDGES,
    RHOS,
    SERIES,
    delays,
    leak_begins,
    leaks,
    noises,
    ours,
    sawtooths,
    share_at_any,
    share_at_ends,
    steps,
)


@pytest.mark.parametrize("rho", RHOS)
def test_at_most_one_window_of_noise_in_a_hundred_is_taken_for_a_leak(rho):
    says = ours(noises(rho, seed=7))
    for first in range(0, len(says), SERIES):  # of each standard deviation on its own
        assert share_at_any(says[first : first + SERIES]) <= 0.01


def test_a_random_walk_is_taken_for_a_leak_at_times_and_seldom():
    share = share_at_ends(ours(noises(1, seed=7)))
    assert 0 < share <= 0.05


@pytest.mark.parametrize("period", [200, 300, 600])
def test_no_sawtooth_is_taken_for_a_leak(period):
    assert not any(map(any, ours(sawtooths(period))))


def test_no_step_is_taken_for_a_leak():
    assert not any(map(any, ours(steps())))


def test_every_leak_is_found_within_nine_minutes():
    found = delays(ours(leaks()), leak_begins())
    assert max(found) <= 540
    assert not any(any(said[:159]) for said in ours(leaks()))


def test_the_others_do_find_the_leak_so_that_they_are_fairly_told():
    batch, begins = leaks()[::24], leak_begins()[::24]
    for judge in JUDGES.values():
        assert max(delays(judge(batch), begins)) < 600
