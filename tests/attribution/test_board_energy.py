"""What an advance of the energy counter means, and whose it is."""

import json
from dataclasses import replace

import pytest

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from tests.attribution.board_scripts import GAP_US, board, booked_mj, energy_mj, played, seen

A = Holder("a", 1, 0.6)
B = Holder("b", 1, 0.2)


class ByWatts:
    """A weigher that knows the watts of each account at full activity, and notes its lessons."""

    def __init__(self, watts, *, learned=True):
        self._watts, self._learned = watts, learned
        self.lessons = []

    def learn(self, activities, parts, watts, seconds):
        self.lessons.append((dict(activities), dict(parts), watts, seconds))

    def weights(self, activities, parts):
        assert activities.keys() == parts.keys()
        expected = {name: self._watts[name] * share for name, share in activities.items()}
        return expected, self._learned


def test_one_holder_pays_for_all_of_it():
    account = played([seen(0, 1_000, A), seen(1, 1_600, A)])
    assert energy_mj(account) == {"a": (600, 0)}
    assert account.estimators()["exclusive"] == 600


def test_sharers_pay_the_floor_by_part_and_the_rest_by_activity():
    account = played([seen(0, 0), seen(1, 400_000, A, B, parts=2)], floor_watts=80.0)
    assert energy_mj(account) == {"a": (240_000, 40_000), "b": (80_000, 40_000)}
    assert account.estimators() == {
        "exclusive": 0,
        "activity": 320_000,
        "intensity": 0,
        "residency": 80_000,
        "unallocated": 0,
        "unobserved": 0,
    }


def test_a_board_below_its_floor_is_idle_and_never_negative():
    account = played([seen(0, 0), seen(1, 60_000, A, B, parts=2)], floor_watts=80.0)
    assert energy_mj(account) == {"a": (0, 30_000), "b": (0, 30_000)}


@pytest.mark.parametrize(("learned", "estimator"), [(True, "intensity"), (False, "activity")])
def test_a_weigher_decides_the_active_part_and_learns_from_it(learned, estimator):
    weigh = ByWatts({"a": 100.0, "b": 300.0}, learned=learned)
    account = played([seen(0, 0), seen(1, 400_000, A, B)], floor_watts=100.0, weigh=weigh)
    assert energy_mj(account) == {"a": (150_000, 50_000), "b": (150_000, 50_000)}
    assert account.estimators()[estimator] == 300_000
    assert weigh.lessons == [({"a": 0.6, "b": 0.2}, {"a": 0.5, "b": 0.5}, 300.0, 1.0)]


def test_a_weigher_that_expects_nothing_leaves_it_to_activity():
    account = played([seen(0, 0), seen(1, 800, A, B)], weigh=ByWatts({"a": 0.0, "b": 0.0}))
    assert energy_mj(account) == {"a": (600, 0), "b": (200, 0)}


def test_a_weigher_learns_nothing_where_something_is_unknown():
    weigh, quiet = ByWatts({"a": 1.0, "b": 1.0}), replace(B, activity=None)
    ticks = [seen(0, 0), seen(1, 500, A, quiet), seen(2, 900), seen(2, 950, A), seen(40, 9_000, A)]
    played(ticks, weigh=weigh)
    assert weigh.lessons == []


def test_where_one_activity_is_unknown_all_pay_by_part():
    quiet = Holder("b", 3, None)
    account = played([seen(0, 0), seen(1, 800, A, quiet, parts=4)])
    assert energy_mj(account) == {"a": (200, 0), "b": (600, 0)}
    assert account.estimators()["residency"] == 800


def test_where_nobody_is_active_all_pay_by_part():
    idle = [Holder("a", 1, 0.0), Holder("b", 3, 0.0)]
    account = played([seen(0, 0), seen(1, 800, *idle, parts=4)])
    assert energy_mj(account) == {"a": (200, 0), "b": (600, 0)}


def test_one_that_has_ended_pays_for_its_last_activity_only():
    ended = Holder("a", 0, 0.3)
    account = played([seen(0, 0), seen(1, 400_000, ended, B)], floor_watts=100.0)
    assert energy_mj(account) == {"a": (180_000, 0), "b": (120_000, 100_000)}
    last = played([seen(0, 0), seen(1, 400_000, ended)], floor_watts=100.0)
    assert energy_mj(last) == {"a": (300_000, 0), "unallocated": (0, 100_000)}


def test_an_empty_board_is_unallocated_and_an_unlisted_one_unobserved():
    unlisted = Tick(2_000_000, None, energy=EnergyReading(500, 2_000_000, "nvml"))
    account = played([seen(0, 0), seen(1, 300), unlisted], floor_watts=70.0)
    assert energy_mj(account) == {"unallocated": (0, 300), "unobserved": (0, 200)}
    assert account.estimators()["unallocated"] == 300
    assert account.estimators()["unobserved"] == 200


def test_a_counter_read_every_ten_seconds_is_split_over_all_that_passed_since():
    ticks = [seen(0, 0)]
    for second in range(1, 11):
        holders = [A] if second <= 5 else [A, replace(B, activity=0.9)]
        reading = EnergyReading(0 if second < 10 else 7_500, second // 10 * 10**7, "nvml")
        ticks.append(Tick(second * 10**6, tuple(holders), energy=reading))
    # Activity-seconds: a 10 x 0.6, b 5 x 0.9.
    account = played(ticks)
    assert booked_mj(account) == 7_500
    assert energy_mj(account) == {"a": (4_286, 0), "b": (3_214, 0)}


def test_a_tick_in_which_holders_could_not_be_listed_costs_its_own_time_only():
    ticks = [seen(0, 0)]
    for second in range(1, 11):
        reading = EnergyReading(0 if second < 10 else 1_000, second * 10**6, "nvml")
        ticks.append(Tick(second * 10**6, None if second == 4 else (A,), energy=reading))
    assert energy_mj(played(ticks)) == {"a": (900, 0), "unobserved": (0, 100)}


def test_without_a_floor_time_in_which_nobody_held_the_board_is_not_charged_to_who_did():
    ticks = [seen(0, 0), seen(1, 0, A), *(seen(second, 0) for second in range(2, 10))]
    account = played([*ticks, seen(10, 1_000)])
    assert account.floor_watts is None
    assert energy_mj(account) == {"a": (100, 0), "unallocated": (0, 900)}


def test_a_counter_that_stands_still_books_nothing_and_forgets_nothing():
    account = played([seen(0, 0), seen(1, 0, A), seen(2, 0, A)])
    assert energy_mj(account) == {}
    account.advance(seen(3, 900, replace(A, account="b")))
    assert energy_mj(account) == {"a": (600, 0), "b": (300, 0)}


def test_what_was_pending_is_bounded_while_a_counter_stands_still_for_hours():
    account = board()
    for second in range(3_600):
        account.advance(seen(second, 5, Holder(f"pod-{second}", 1, 1.0)))
        account.forget(f"pod-{second - 1}")
    assert len(account.as_state()["pending"]["active_us"]) <= 31
    account.advance(seen(3_600, 905, A))
    assert energy_mj(account) == {"unobserved": (0, 900)}


def test_energy_that_arrives_without_time_is_booked_to_who_is_there():
    account = played([seen(0, 0, A), seen(0, 7, B), seen(0, 7, A)])
    assert energy_mj(account) == {"b": (7, 0)}


def test_a_gap_of_the_counter_is_unobserved_although_the_board_was_seen():
    ticks = [seen(at, None, A) for at in range(10, 100, 10)]
    account = played([seen(0, 0, A), *ticks, seen(100, 9_000, A), seen(101, 9_100, A)])
    assert energy_mj(account) == {"a": (100, 0), "unobserved": (0, 9_000)}
    assert account.energy_source == "counter"


SLOW = {"counter_gap_us": 120_000_000}


def slowly(every: int, until: int):
    """A counter of 1 mJ a second, collected seldom, on a board that is seen every second."""
    for second in range(until + 1):
        collected = second // every * every
        reading = EnergyReading(collected, collected * 10**6, "dcgm")
        yield Tick(second * 10**6, (A,), energy=reading)


@pytest.mark.parametrize("every", [10, 30, 31, 60, 110])
def test_a_counter_that_is_collected_seldom_is_billed_all_the_same(every):
    until = 6 * every
    assert energy_mj(played(slowly(every, until), **SLOW)) == {"a": (until, 0)}


def test_a_counter_that_is_late_beyond_its_own_patience_is_unobserved():
    account = played(slowly(130, 390), **SLOW)
    assert energy_mj(account) == {"unobserved": (0, 390)}
    assert energy_mj(played(slowly(31, 93))) == {"unobserved": (0, 93)}, "it has no other patience"


def test_a_patient_counter_makes_no_one_answer_for_time_in_which_nobody_looked():
    ticks = [seen(0, 0, A), seen(10, 0, A), seen(50, 0, A), seen(60, 600, A)]
    assert energy_mj(played(ticks, **SLOW)) == {"a": (200, 0), "unobserved": (0, 400)}


def test_power_is_not_integrated_over_a_gap_however_patient_a_counter_would_be():
    ticks = [seen(at, None, A, power_watts=100.0) for at in (0, 40, 41)]
    assert energy_mj(played(ticks, **SLOW)) == {"a": (100_000, 0)}


def test_what_is_pending_lasts_as_long_as_a_slow_counter_and_no_longer():
    account = board(**SLOW)
    for second in range(600):
        account.advance(seen(second, 5, Holder(f"pod-{second}", 1, 1.0)))
        account.forget(f"pod-{second - 1}")
    assert len(account.as_state()["pending"]["active_us"]) <= 121


def test_the_patience_with_a_counter_outlives_a_checkpoint():
    ticks = list(slowly(60, 120))
    kept = json.loads(json.dumps(played(ticks[:100], **SLOW).as_state()))
    account = BoardAccount.from_state(kept, gap_us=GAP_US, **SLOW)
    assert energy_mj(played(ticks[100:], account)) == {"a": (120, 0)}


def test_a_lower_value_from_another_source_is_late_and_waited_for():
    late = seen(2, 550, A, source="dcgm")
    account = played([seen(0, 0, A), seen(1, 600, A), late, seen(3, 600, A, source="dcgm")])
    assert account.counter_restarts == 0
    account.advance(seen(4, 900, A, source="dcgm"))
    assert energy_mj(account) == {"a": (900, 0)}


def test_a_late_source_that_never_catches_up_was_restarted():
    ticks = [seen(at, 100 + at, A, source="dcgm") for at in range(2, 40)]
    account = played([seen(0, 0, A), seen(1, 600, A), *ticks])
    # Found out at 33 s; who burned the 133 mJ until then nobody can tell.
    assert account.counter_restarts == 1
    assert energy_mj(account) == {"a": (606, 0), "unobserved": (0, 133)}


def test_a_value_that_steps_back_a_little_is_no_restart_with_all_it_ever_counted():
    account = played([seen(0, 10**12, A), seen(1, 10**12 - 5, A), seen(2, 10**12 + 5, A)])
    assert energy_mj(account) == {"a": (10, 0)}
    assert (account.counter_restarts, account.implausible) == (0, 1)


@pytest.mark.parametrize(("limit_watts", "most_mj"), [(300.0, 1_200_000), (None, 6_000_000)])
def test_more_than_a_board_can_draw_is_nobodys(limit_watts, most_mj):
    ticks = [seen(0, 0, A), seen(1, most_mj, A), seen(2, 2 * most_mj + 1, A)]
    account = played(replace(tick, power_limit_watts=limit_watts) for tick in ticks)
    assert energy_mj(account) == {"a": (most_mj, 0), "unobserved": (0, most_mj + 1)}
    assert account.implausible == 1


def drawing(at_s: float, watts: float | None, *holders: Holder, mj: int | None = None) -> Tick:
    return replace(seen(at_s, mj, *holders), power_watts=watts)


def test_power_is_integrated_by_trapezoids_with_its_fractions_kept():
    account = played(drawing(at / 1000, 0.25 + at % 2 * 0.25, A) for at in range(10_001))
    assert account.energy_source == "integrated_power"
    assert energy_mj(account) == {"a": (3_750, 0)}
    account.advance(drawing(10.01, 0.25, A))
    assert energy_mj(account) == {"a": (3_752, 0)}
    account.advance(drawing(10.012, 0.25, A))
    assert energy_mj(account) == {"a": (3_753, 0)}


def test_power_is_not_integrated_over_a_gap():
    account = played([drawing(0, 100, A), drawing(1, 100, A), drawing(40, 100, A)])
    account.advance(drawing(41, 100, A))
    assert energy_mj(account) == {"a": (200_000, 0)}


def test_power_that_is_missing_for_a_moment_is_bridged():
    account = played([drawing(0, 100, A), drawing(1, None, A), drawing(2, 200, A)])
    assert energy_mj(account) == {"a": (300_000, 0)}


def test_a_counter_that_appears_takes_over_where_the_integral_ends():
    ticks = [drawing(0, 100, A), drawing(1, 100, A, mj=5_000_000), drawing(2, 100, A, mj=5_090_000)]
    account = played(ticks)
    assert account.energy_source == "counter"
    assert energy_mj(account) == {"a": (190_000, 0)}


def test_a_counter_that_is_away_for_a_moment_is_not_integrated_as_well():
    ticks = [drawing(0, 100, A, mj=0), drawing(1, 100, A), drawing(2, 100, A, mj=200_000)]
    assert energy_mj(played(ticks)) == {"a": (200_000, 0)}


class Halves:
    """A Shapley split that says one half each, where it says anything."""

    def __init__(self, *, knows):
        self._knows = knows
        self.lessons = []

    def learn(self, total_activity, watts, seconds):
        self.lessons.append((total_activity, watts, seconds))

    def split(self, activities):
        return dict.fromkeys(activities, 0.5) if self._knows else None


@pytest.mark.parametrize(("knows", "shapley"), [(True, (400, 401)), (False, (600, 201))])
def test_shapley_values_divide_the_same_active_energy(knows, shapley):
    halves = Halves(knows=knows)
    account = played([seen(0, 0), seen(1, 801, A, B)], shapley=halves)
    balances = account.balances()
    by_value = (balances["a"].shapley_mj, balances["b"].shapley_mj)
    assert sum(by_value) == 801
    assert by_value == pytest.approx(shapley, abs=1)
    assert halves.lessons == [(pytest.approx(0.8), pytest.approx(0.801), 1.0)]


def test_without_that_contract_there_are_no_shapley_values():
    assert played([seen(0, 0), seen(1, 801, A, B)]).balances()["a"].shapley_mj == 0


def test_a_forgotten_account_gives_out_its_last_balance_and_leaves_nothing():
    account = played([seen(0, 0), seen(1, 801, A, B), seen(2, 802, B)], shapley=Halves(knows=True))
    assert account.forget("a").active_mj in (600, 601)
    assert "a" not in account.balances()
    assert '"a"' not in repr(account.as_state()).replace("'", '"')
    assert account.forget("a").active_mj == 0


def test_balances_that_were_given_out_stay_as_they_were():
    account = played([seen(0, 0, A)])
    before = account.balances()
    account.advance(seen(1, 100, A, traffic={"pcie": 5}))
    assert before["a"].active_mj == 0
    assert before["a"].link_bytes.total() == 0
