"""What users of other tools found wrong, each with the right value here.

The reference is the thread in which it was reported.
"""

import json
from dataclasses import replace

import pytest

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from tests.attribution.board_scripts import (
    GAP_US,
    board,
    booked_mj,
    booked_us,
    energy_mj,
    played,
    seen,
    time_us,
)

HOUR_S = 3_600


def minutes(count, *holders, first=0, watts=300, parts=1):
    """One tick a second of a steady board, as many minutes of it."""
    seconds = range(first * 60 + 1, (first + count) * 60 + 1)
    return [seen(second, second * watts * 1000, *holders, parts=parts) for second in seconds]


def test_idle_cost_does_not_vanish_when_nobody_used_the_gpu():
    """opencost PR 883: weights that are all zero."""
    idle = [Holder("a", 1, 0.0), Holder("b", 1, 0.0)]
    account = played([seen(0, 0), *minutes(1, *idle, parts=2)], floor_watts=70.0)
    assert energy_mj(account) == dict.fromkeys(("a", "b"), (6900000, 2100000))


def test_four_quarters_of_a_gpu_for_an_hour_are_exactly_one_gpu_hour():
    """opencost#3828, HAMi#3073."""
    quarters = [Holder(f"pod-{n}", 1, 0.05 * n) for n in range(4)]
    account = played(seen(second, None, *quarters, parts=4) for second in range(HOUR_S + 1))
    assert booked_us(account) == HOUR_S * 10**6
    for balance in (account.forget(quarter.account) for quarter in quarters):
        assert balance.active_us + balance.reserved_us == pytest.approx(900 * 10**6, abs=2)


def test_a_restarted_pod_of_the_same_name_pays_for_its_own_minutes_only():
    """opencost#991: 600 minutes instead of 480."""
    first, second = Holder("pod-uid1-100", 1, 1.0), Holder("pod-uid2-400", 1, 1.0)
    ticks = [seen(0, 0), *minutes(8, first), *minutes(2, second, first=8)]
    account = played(ticks)
    assert time_us(account) == {"pod-uid1-100": (480 * 10**6, 0), "pod-uid2-400": (120 * 10**6, 0)}
    assert energy_mj(account)["pod-uid1-100"] == (480 * 300_000, 0)


def test_a_gap_is_seen_as_a_gap_and_neither_lost_nor_charged():
    """opencost#3018, kubecost#1825: days that were missing, in bills that allow no gaps."""
    a = Holder("a", 1, 1.0)
    account = played([seen(0, 0), *minutes(1, a), *minutes(1, a, first=10)])
    assert time_us(account) == {"a": (119 * 10**6, 0), "unobserved": (0, 541 * 10**6)}
    assert energy_mj(account) == {"a": (119 * 300_000, 0), "unobserved": (0, 541 * 300_000)}


def test_joules_do_not_grow_with_the_number_of_commands_that_were_run():
    """kepler#956: each process of a container had the container's joules."""
    account, count = board(), 0
    account.advance(seen(0, 0))
    for second in range(1, 301):
        count += 300_000
        ended = [Holder(f"command-{second - 1}", 0, 0.2)] if second > 1 else []
        account.advance(seen(second, count, Holder(f"command-{second}", 1, 0.6), *ended))
    assert booked_mj(account) == 300 * 300_000
    assert energy_mj(account)["command-150"] == (225_000 + 75_000, 0)


@pytest.mark.parametrize("absurd_mj", [10**18, 9_000_000])
def test_an_absurd_value_is_charged_to_nobody(absurd_mj):
    """kepler#1344, #897: 9 kW from a desktop, and petajoules."""
    a = Holder("a", 1, 1.0)
    ticks = [seen(0, 0, a), seen(1, 300_000, a), seen(2, 300_000 + absurd_mj, a)]
    account = played(replace(tick, power_limit_watts=350.0) for tick in ticks)
    assert energy_mj(account) == {"a": (300_000, 0), "unobserved": (0, absurd_mj)}
    assert account.implausible == 1


def test_the_instances_of_a_board_add_up_to_the_board_not_to_a_board_each():
    """dcgm-exporter#257: every MIG instance showed the board's watts."""
    instances = [Holder(f"mig-{n}", 1, 1 / 7) for n in range(7)]
    account = played([seen(0, 0), *minutes(1, *instances, watts=350, parts=7)])
    assert energy_mj(account) == {f"mig-{n}": (3_000_000, 0) for n in range(7)}


def test_time_sliced_pods_do_not_all_show_the_board():
    """dcgm-exporter#582, #642."""
    pods = [Holder("busy", 1, 0.75), Holder("less", 1, 0.25), Holder("idle", 1, 0.0)]
    account = played([seen(0, 0), *minutes(1, *pods, parts=3)], floor_watts=60.0)
    assert energy_mj(account) == {
        "busy": (10_800_000, 1_200_000),
        "less": (3_600_000, 1_200_000),
        "idle": (0, 1_200_000),
    }


@pytest.mark.parametrize("every_s", [1, 4, 20])
def test_energy_does_not_depend_on_how_often_power_is_sampled(every_s):
    """dcgm-exporter PR 146: 120 samples of 41 W were summed to 4.9 kW."""
    a = Holder("a", 1, 1.0)
    ticks = [seen(at, None, a, power_watts=41.0) for at in range(0, 121, every_s)]
    assert energy_mj(played(ticks)) == {"a": (4_920_000, 0)}


def test_a_driver_reload_is_flagged_and_what_it_burned_since_is_not_lost():
    """aitra-meter PR 59: the interval was clamped to zero."""
    a = Holder("a", 1, 1.0)
    ticks = [seen(0, 50_000_000, a), seen(1, 50_300_000, a), seen(5, 900_000, a)]
    account = played([*ticks, seen(6, 1_200_000, a)])
    assert energy_mj(account) == {"a": (600_000, 0), "unobserved": (0, 900_000)}
    assert account.counter_restarts == 1
    assert account.implausible == 0


def test_eight_holders_of_a_board_do_not_each_pay_for_all_of_it():
    """codecarbon#544, #936: eight processes reported the whole machine each."""
    ranks = [Holder(f"rank-{n}", 1, None) for n in range(8)]
    account = played([seen(0, 0), *minutes(1, *ranks, watts=400, parts=8)])
    assert energy_mj(account) == {f"rank-{n}": (3_000_000, 0) for n in range(8)}
    assert account.estimators()["residency"] == 24_000_000


def test_a_board_without_a_counter_has_used_energy_all_the_same():
    """codecarbon#1316: no counter, so 0 kWh for the whole run."""
    a = Holder("a", 1, 1.0)
    ticks = [seen(second, None, a, power_watts=250.0) for second in range(61)]
    account = played(ticks)
    assert energy_mj(account) == {"a": (15_000_000, 0)}
    assert account.energy_source == "integrated_power"


def test_without_counter_and_power_nothing_is_claimed():
    account = played(seen(second, None, Holder("a", 1, 1.0)) for second in range(61))
    assert account.energy_source is None
    assert energy_mj(account) == {}


def test_no_holder_has_more_than_its_board_and_all_have_as_much():
    """scaphandre#20, #163, #436: processes that exceed their host, and a sum that is not it."""
    greedy = [Holder("a", 1, 1.0), Holder("b", 1, 1.0), Holder("c", 1, 0.7)]
    account = played([seen(0, 0), *minutes(1, *greedy, parts=3)])
    assert booked_mj(account) == 60 * 300_000
    assert booked_us(account) == 60 * 10**6


def test_a_restart_of_the_exporter_does_not_double_joules():
    """susql-operator#68: base and current were added twice."""
    a = Holder("a", 1, 1.0)
    account = played([seen(0, 7_000_000)])
    count = 7_000_000
    for second in range(1, 61):
        if second % 10 == 0:
            kept = json.loads(json.dumps(account.as_state()))
            account = BoardAccount.from_state(kept, gap_us=GAP_US)
        count += 300_000
        account.advance(seen(second, count, a))
    assert energy_mj(account) == {"a": (60 * 300_000, 0)}


def test_what_burned_while_the_exporter_was_down_is_unobserved():
    a = Holder("a", 1, 1.0)
    kept = played([seen(0, 0, a), seen(1, 300_000, a)]).as_state()
    account = BoardAccount.from_state(kept, gap_us=GAP_US)
    played([seen(601, 601 * 300_000, a), seen(602, 602 * 300_000, a)], account)
    assert energy_mj(account) == {"a": (600_000, 0), "unobserved": (0, 600 * 300_000)}
    assert time_us(account) == {"a": (2_000_000, 0), "unobserved": (0, 600_000_000)}


def test_after_a_reboot_clock_and_counter_begin_anew_and_nothing_is_booked_for_it():
    a = Holder("a", 1, 1.0)
    kept = played([seen(5_000, 10**9, a), seen(5_001, 10**9 + 300_000, a)]).as_state()
    account = BoardAccount.from_state(kept, gap_us=GAP_US, same_boot=False)
    played([seen(60, 18_000_000, a), seen(61, 18_300_000, a)], account)
    assert energy_mj(account) == {"a": (600_000, 0)}
    assert time_us(account) == {"a": (2_000_000, 0)}
    assert account.counter_restarts == 0


def test_a_counter_that_is_stuck_and_then_jumps_is_charged_to_nobody():
    """zeus#113, ROCm#180."""
    a = Holder("a", 1, 1.0)
    stuck = [seen(second, 5_000, a) for second in range(60)]
    account = played([*stuck, seen(60, 5_000 + 60 * 300_000, a)])
    assert energy_mj(account) == {"unobserved": (0, 60 * 300_000)}


def test_mig_reshuffled_in_the_middle_of_an_interval_is_charged_by_what_was_held_when():
    ticks = [Tick(0, (), 7, EnergyReading(0, 0))]
    for second in range(1, 11):
        holders = (
            (Holder("a", 7, 0.5),) if second <= 5 else (Holder("a", 3, 0.2), Holder("b", 4, 0.3))
        )
        count = 0 if second < 10 else 4_200_000
        ticks.append(Tick(second * 10**6, holders, 7, EnergyReading(count, second * 10**6)))
    account = played(ticks, floor_watts=70.0)
    assert energy_mj(account) == {"a": (2_450_000, 500_000), "b": (1_050_000, 200_000)}
