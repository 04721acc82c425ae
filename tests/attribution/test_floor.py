"""The idle draw of a board, measured where nobody is there."""

import json

import pytest

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import Holder
from tests.attribution.board_scripts import GAP_US, board, played, seen

A = Holder("a", 1, 0.5)


def idle(seconds, watts=70.0, *, first_s=0, start_mj=0, **more):
    return [
        seen(first_s + second, start_mj + round(second * watts * 1000), **more)
        for second in range(seconds + 1)
    ]


def test_a_floor_is_known_ten_seconds_after_an_empty_board_was_first_seen():
    account = played(idle(9))
    assert (account.floor_watts, account.floor_source) == (None, None)
    account.advance(seen(10, 10 * 70_000))
    assert account.floor_watts == pytest.approx(70.0)
    assert account.floor_source == "measured"


def test_a_configured_floor_serves_until_one_is_measured():
    account = board(floor_watts=55.0)
    assert (account.floor_watts, account.floor_source) == (55.0, "configured")
    played(idle(30), account)
    assert account.floor_source == "measured"
    assert account.floor_watts == pytest.approx(70.0)


def test_a_board_that_still_cools_down_is_not_idle():
    account = played([seen(0, 0, A), seen(1, 400_000, A)])
    played(idle(20, watts=150, first_s=2, start_mj=800_000), account)
    played(idle(10, first_s=22, start_mj=800_000 + 20 * 150_000), account)
    assert account.floor_watts == pytest.approx(70.0)


def test_a_short_visit_starts_the_wait_anew():
    ticks = idle(60)
    for second in (3, 25, 50):
        ticks[second] = seen(second, second * 70_000, A)
    assert played(ticks).floor_watts is None


def test_nothing_is_learned_over_a_gap_or_while_holders_are_unknown():
    ticks = [seen(40 * tick, tick * 40 * 70_000) for tick in range(20)]
    assert played(ticks).floor_watts is None
    counter = idle(100)
    unlisted = [type(tick)(tick.at_us, None, energy=tick.energy) for tick in counter]
    assert played(unlisted).floor_watts is None


def test_work_that_nobody_could_list_is_no_floor():
    assert played(idle(100, watts=500, power_limit_watts=700.0)).floor_watts is None


def test_a_floor_that_changes_is_followed_in_about_ten_minutes():
    account = played(idle(600))
    played(idle(1_200, watts=100, first_s=600, start_mj=600 * 70_000), account)
    assert 94 < account.floor_watts < 99


def test_a_floor_is_measured_from_power_where_there_is_no_counter():
    account = played(seen(second, None, power_watts=42.0) for second in range(32))
    assert account.floor_watts == pytest.approx(42.0)


def test_a_floor_outlives_a_restart_and_a_reboot():
    kept = json.loads(json.dumps(played(idle(40)).as_state()))
    for same_boot in (True, False):
        account = BoardAccount.from_state(kept, gap_us=GAP_US, same_boot=same_boot)
        assert account.floor_watts == pytest.approx(70.0)
        assert account.floor_source == "measured"


def test_a_quiet_time_begins_anew_after_a_reboot():
    kept = played([seen(0, 0, A), *idle(25, first_s=1)]).as_state()
    account = BoardAccount.from_state(kept, gap_us=GAP_US, same_boot=False)
    played(idle(12), account)
    assert account.as_state()["floor"]["seconds"] == kept["floor"]["seconds"] == 5.0
