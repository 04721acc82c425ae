from random import Random

import pytest

from seedance_obs.attribution.base_power import BasePower
from seedance_obs.attribution.moments import Moments
from tests.attribution.made_up_board import Board, Sharer, burst, levels, steady
from tests.attribution.test_intensity import MINUTES


def fitted(board, seconds):
    base, moments = BasePower(), Moments(fade_seconds=240.0, limit=8)
    for activities, _, watts in board.ticks(seconds):
        base.see(activities, held=1.0, watts=watts, seconds=1.0)
        moments.add(activities, parts=1.0, watts=watts, seconds=1.0)
    base.fit(moments, residual=None)
    first = base.watts
    base.fit(moments, residual=4.0)
    return first, base.watts


def test_a_base_is_seen_while_a_held_board_rests():
    base = BasePower()
    for _ in range(12):
        base.see({"a": 0.0}, held=0.5, watts=24.0, seconds=1.0)
    assert base.watts == pytest.approx(48)


def test_ten_seconds_of_rest_are_needed():
    base = BasePower()
    for _ in range(10):
        base.see({"a": 0.0}, held=1.0, watts=48.0, seconds=1.0)
    assert base.watts is None


def test_the_first_tick_of_a_rest_may_still_hold_activity():
    base = BasePower()
    for _ in range(12):
        base.see({"a": 0.5}, held=1.0, watts=300.0, seconds=1.0)
        base.see({"a": 0.0}, held=1.0, watts=100.0, seconds=1.0)
        base.see({"a": 0.0}, held=1.0, watts=48.0, seconds=1.0)
    assert base.watts == pytest.approx(48)


def test_where_everybody_varies_the_base_is_known_without_rest():
    sharers = [Sharer(burst(37, 0.5, 0.5), 300), Sharer(burst(11.3, 0.5, 0.4), 200)]
    board = Board([*sharers, Sharer(steady(0.0), 1)], 48.0, noise=0.002)
    for base in fitted(board, 10 * MINUTES):
        assert base == pytest.approx(48, rel=0.03)


def test_what_a_steady_account_draws_is_not_taken_for_base():
    sharers = [Sharer(steady(0.13), 220), Sharer(burst(9.7, 0.5, 0.32), 110)]
    assert fitted(Board(sharers, 25.0, noise=0.003), 10 * MINUTES) == (None, None)


def test_a_curve_above_the_seen_base_is_not_taken_for_more_base():
    sharers = [Sharer(levels(Random(3), 4, 0.05, 0.45), 300, 0.6), Sharer(steady(0.0), 1)]
    board = Board(sharers, 30.0, noise=0.002, rest_s=20)
    for base in fitted(board, 10 * MINUTES):
        assert base == pytest.approx(30, rel=0.03)


def test_the_start_of_a_curve_is_not_taken_for_a_base_that_nobody_saw():
    sharers = [
        Sharer(burst(67, 0.28, 0.46), 260, 0.82),
        Sharer(levels(Random(1), 5, 0.11, 0.16), 390, 0.82),
    ]
    for base in fitted(Board(sharers, 16.0), 10 * MINUTES):
        assert base is None or base == pytest.approx(16, abs=5)
