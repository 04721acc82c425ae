from random import Random

import pytest

from seedance_obs.attribution.power_fit import Draw, Hypothesis
from seedance_obs.attribution.settlement import MADE_GOOD, Knowledge, Settlement

HALVES = {"a": 0.5, "b": 0.5}


def draws(error=0.01, **watts):
    return Hypothesis({a: Draw(w, 0.0, error) for a, w in watts.items()}, 0.0, 1.0)


def split(settlement, activities, known, watts, *, parts=HALVES, final=True):
    settlement.pass_time(1.0)
    return settlement.split(activities, parts, known, watts=watts, seconds=1.0, final=final)


def given(settlement, ticks, activities, known, watts):
    sums = dict.fromkeys(HALVES, 0.0)
    for _ in range(ticks):
        for account, joules in split(settlement, activities, known, watts).items():
            sums[account] += joules
    return sums


def test_what_was_split_before_anything_was_known_is_made_good_once_it_is():
    settlement, activities = Settlement(), {"a": 0.2, "b": 0.2}
    early = given(settlement, 60, activities, Knowledge(), 80.0)
    assert early["a"] == pytest.approx(early["b"])
    known = Knowledge(certainty=1.0, hypotheses=[draws(a=100.0, b=300.0)])
    late = given(settlement, 240, activities, known, 80.0)
    assert (early["b"] + late["b"]) / (300 * 80.0) == pytest.approx(0.75, abs=0.02)


def test_making_good_takes_no_more_than_its_part_of_what_an_account_draws():
    settlement, activities = Settlement(), {"a": 0.2, "b": 0.2}
    given(settlement, 100, activities, Knowledge(), 80.0)
    known = Knowledge(certainty=1.0, hypotheses=[draws(a=100.0, b=300.0)])
    joules = split(settlement, activities, known, 80.0)
    assert 20 * (1 - MADE_GOOD) <= joules["a"] < 20
    assert joules["a"] + joules["b"] == pytest.approx(80)


def test_what_need_not_be_moved_stays_by_activity():
    known = Knowledge(hypotheses=[draws(1.0, a=100.0, b=300.0)])
    joules = split(Settlement(), {"a": 0.2, "b": 0.2}, known, 80.0)
    assert joules["a"] == pytest.approx(joules["b"])


def test_the_base_goes_by_parts_only_as_far_as_the_draws_are_certain():
    activities = {"a": 0.1, "b": 0.3}
    unsure = split(Settlement(), activities, Knowledge(base_watts=40.0), 120.0)
    sure = split(Settlement(), activities, Knowledge(base_watts=40.0, certainty=1.0), 120.0)
    assert unsure["a"] == pytest.approx(30)
    assert sure["a"] == pytest.approx(20 + 20)


def test_who_was_never_active_pays_its_part_of_the_base_from_the_first_tick():
    joules = split(Settlement(), {"a": 0.0, "b": 0.5}, Knowledge(base_watts=40.0), 200.0)
    assert joules == {"a": pytest.approx(20), "b": pytest.approx(180)}


def test_who_stopped_long_ago_still_pays_for_the_base_it_holds():
    settlement, known = Settlement(), Knowledge(base_watts=40.0)
    given(settlement, 60, {"a": 0.3, "b": 0.3}, known, 160.0)
    late = given(settlement, 1200, {"a": 0.0, "b": 0.5}, known, 200.0)
    assert late["a"] / 1200 >= 5


def test_a_question_changes_nothing():
    asked, plain = Settlement(), Settlement()
    known = Knowledge(certainty=1.0, hypotheses=[draws(a=100.0, b=300.0)])
    for settlement in (asked, plain):
        given(settlement, 20, {"a": 0.2, "b": 0.2}, Knowledge(), 80.0)
    asked.split({"a": 0.9, "b": 0.0}, HALVES, known, watts=500.0, seconds=1.0, final=False)
    activities = {"a": 0.2, "b": 0.2}
    assert split(asked, activities, known, 80.0) == split(plain, activities, known, 80.0)


@pytest.mark.parametrize("told", [True, False])
def test_what_one_who_left_had_too_much_is_not_taken_from_the_others(told):
    settlement = Settlement()
    given(settlement, 60, {"a": 0.2, "b": 0.2}, Knowledge(), 80.0)
    if told:
        settlement.forget("a")
    parts, activities = {"b": 0.5, "c": 0.5}, {"b": 0.2, "c": 0.2}
    known = Knowledge(certainty=1.0, hypotheses=[draws(b=300.0, c=300.0)])
    joules = split(settlement, activities, known, 120.0, parts=parts)
    assert joules == {"b": pytest.approx(60, rel=0.03), "c": pytest.approx(60, rel=0.03)}


@pytest.mark.parametrize("seed", range(10))
def test_every_tick_is_given_out_whole_and_nobody_is_given_less_than_nothing(seed):
    random, settlement = Random(seed), Settlement()
    for _ in range(200):
        accounts = random.sample("abcdefg", random.randint(2, 7))
        activities = {a: random.choice((0.0, random.random())) for a in accounts}
        activities[accounts[0]] = 0.1
        parts = {a: 1 / len(accounts) for a in accounts if random.random() < 0.9}
        fits = [
            draws(random.uniform(0, 1.5), **{a: random.uniform(0, 500) for a in accounts[1:]})
            for _ in range(random.randint(0, 3))
        ]
        known = Knowledge(random.choice((0.0, 40.0)), random.random(), fits)
        watts = random.uniform(1, 500)
        joules = split(
            settlement, activities, known, watts, parts=parts, final=random.random() < 0.9
        )
        assert joules.keys() == set(activities) | set(parts)
        assert min(joules.values()) >= 0
        assert sum(joules.values()) == pytest.approx(watts)
