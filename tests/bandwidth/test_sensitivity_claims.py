"""What the score and its verdict claim, over dozens or hundreds of simulated pairs each."""

import random
from dataclasses import replace
from functools import cache, partial
from statistics import median

import pytest

from seedance_obs.bandwidth.sensitivity import sensitivity
from tests.bandwidth import simulated_pairs as sim

MANY = 200  # pairs for how often chance is taken for sensitivity
SOME = 60  # for what must hold of numbers
FEW = 30  # for what must happen hardly ever, or nearly always


def judged(scenario, pairs=FEW):
    found = [sensitivity(sim.kept(scenario(random.Random(seed))), "sm") for seed in range(pairs)]
    assert all(found)
    return found


def share(found, verdict):
    return sum(one.verdict == verdict for one in found) / len(found)


@cache
def sensitive(truth):
    return judged(partial(sim.sensitive, truth=truth), SOME if truth else MANY)


@pytest.mark.parametrize("truth", [0.0, 0.1, 0.3, 0.6])
def test_the_true_sensitivity_is_recovered(truth):
    assert median(one.score for one in sensitive(truth)) == pytest.approx(truth, abs=0.03)


@pytest.mark.parametrize(
    "scenario",
    [
        sim.sends_with_its_progress,
        sim.sends_at_will,
        sim.stutters,
        sim.jobs_come_and_go,
        partial(sim.misaligned, late=0.1),
        partial(sim.misaligned, late=-0.1),
    ],
)
def test_sensitivity_is_seen_where_nothing_else_is(scenario):
    assert share(judged(partial(scenario, truth=0.3)), "significant") >= 0.8


def test_a_true_sensitivity_is_nearly_always_significant():
    assert share(sensitive(0.3), "significant") >= 0.9
    assert share(sensitive(0.1), "significant") >= 0.8


@pytest.mark.parametrize(
    "found", [lambda: sensitive(0.0), lambda: judged(partial(sim.stutters, truth=0.0), MANY)]
)
def test_chance_is_seldom_significant(found):
    assert share(found(), "significant") <= 0.05
    assert sum(one.p_value <= 0.05 for one in found()) / MANY <= 0.05


@pytest.mark.parametrize(
    ("minutes", "count"), [(10, 240), (10, 480), (30, 480), (60, 240), (60, 480)]
)
def test_phases_that_both_share_are_an_association(minutes, count):
    period = 2 * minutes
    found = judged(partial(sim.common_phases, count=count, period=period, on=max(5, period // 8)))
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.9


def test_shared_phases_are_seen_among_other_bursts():
    found = judged(sim.common_phases_among_bursts)
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.9


def test_a_tenant_that_sends_more_under_pressure_does_something_else():
    assert share(judged(sim.writes_meanwhile), "association") >= 0.9


def test_a_fall_of_its_own_load_for_good_is_no_sensitivity():
    found = judged(sim.own_load_drops_once)
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.5


def test_falls_of_its_own_load_that_neighbours_use_are_no_sensitivity():
    found = judged(partial(sim.own_load_drops, count=480, filled=0.6))
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.9


def test_the_course_of_a_day_is_no_sensitivity():
    found = judged(sim.time_of_day)
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.9


def test_heat_does_not_count():
    found = judged(sim.heat)
    assert median(one.score for one in found) < 0.03
    assert share(found, "significant") <= 0.05


def test_heat_would_look_like_sensitivity_if_it_counted():
    def unseen(rng):
        pair = sim.heat(rng)
        return replace(pair, throttled=[False] * len(pair.throttled))

    assert median(one.score for one in judged(unseen)) > 0.3


@pytest.mark.parametrize("late", [1 / 3, 1.0, 3.0])
def test_neighbours_that_react_to_the_tenant_are_an_association(late):
    found = judged(partial(sim.reacts, late=late))
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.8  # late ones are often chance


@pytest.mark.parametrize("late", [0, 1])
def test_neighbours_that_take_what_the_tenant_leaves_are_an_association(late):
    found = judged(partial(sim.reacts_to_noise, late=late))
    assert share(found, "significant") <= 0.05
    assert share(found, "association") >= 0.9
