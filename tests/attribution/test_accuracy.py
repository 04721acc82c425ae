"""Whole nodes over simulated machines: exact sums at every tick, and joules near the truth.

Each scenario is run once, for as long as its statement needs.
"""

from collections.abc import Callable
from functools import cache

import pytest

from seedance_obs.attribution.energy_book import EnergyBook
from seedance_obs.attribution.intensity import Intensities
from tests.attribution.simulated_node import Bill, Course, Residual
from tests.bench.attribution_accuracy import (
    largest_error,
    scenario,
    scenario_names,
    true_bill,
)
from tests.bench.own_rules import by_activity_alone, ours
from tests.bench.sim_readings import read_seconds

pytestmark = pytest.mark.long
# Seconds after which the error is within one per cent. What a context draws without any activity is
# learned only while all rest, and what was split before that stays as it was.
LIKE = {
    "exclusive": 200,
    "time-slicing": 300,
    "mps": 300,
    "mig-7x1g": 400,
    "mig-mixed": 300,
    "idle-holders": 600,
    "churn": 240,
}
UNLIKE = ("intensities", "mig-intensities")
LEARNED, END = 600, 1200
OTHERS = {"churn-mig": 200, "churn-shared": 150}
LENGTHS = {**LIKE, **dict.fromkeys(UNLIKE, END), **OTHERS}


@pytest.fixture(scope="module")
def course_of() -> Callable[[str], Course]:
    @cache
    def course(name: str) -> Course:
        return ours(scenario(name), {LENGTHS[name], min(LENGTHS[name], LEARNED)})

    return course


@cache
def truly(name: str, start: int, end: int) -> Bill:
    return true_bill(scenario(name), start, end)


def test_every_scenario_is_run():
    assert sorted(LENGTHS) == scenario_names()


@pytest.mark.parametrize("name", LENGTHS)
def test_every_millijoule_and_microsecond_of_every_tick_is_booked(course_of, name):
    course = course_of(name)
    assert course.seen == (LENGTHS[name] + 1) * len(scenario(name).gpus)
    assert course.faults == []


@pytest.mark.parametrize("name", LIKE)
def test_tenants_that_burn_alike_are_billed_what_they_burned_by_both_contracts(course_of, name):
    owed, true = course_of(name).bills[LIKE[name]], truly(name, 0, LIKE[name])
    assert largest_error(true.use, owed.use) <= 1.0
    assert largest_error(true.reservation, owed.reservation) <= 1.0


@pytest.mark.parametrize("name", UNLIKE)
def test_of_tenants_that_burn_one_to_three_it_is_learned_within_ten_minutes(course_of, name):
    machine, bills = scenario(name), course_of(name).bills
    true, owed = truly(name, LEARNED, END), bills[END].less(bills[LEARNED])
    read = read_seconds(machine, END)
    alone = by_activity_alone(read).less(by_activity_alone(read[: LEARNED + 1]))
    assert largest_error(true.use, alone.use) >= 25.0
    assert largest_error(true.use, owed.use) <= 5.0
    assert largest_error(true.reservation, owed.reservation) <= 5.0


@pytest.mark.parametrize("name", LENGTHS)
def test_no_tenant_is_billed_worse_than_by_activity_alone(course_of, name):
    machine, end = scenario(name), LENGTHS[name]
    true, owed = truly(name, 0, end), course_of(name).bills[end]
    alone = by_activity_alone(read_seconds(machine, end))
    for contract in ("use", "reservation"):
        had, ours, theirs = (getattr(bill, contract) for bill in (true, owed, alone))
        assert largest_error(had, ours) <= largest_error(had, theirs) + 1.0


def test_a_node_that_learns_nothing_is_found_out(monkeypatch):
    monkeypatch.setattr(
        Intensities, "weights", lambda _self, activities, _parts: (activities, False)
    )
    machine, end = scenario("intensities"), 300
    owed, true = ours(machine, {end}).bills[end], true_bill(machine, 0, end)
    assert largest_error(true.use, owed.use) >= 25.0


def test_a_millijoule_too_much_is_found_out(monkeypatch):
    book = EnergyBook.book

    def book_more(self, advance, holdings, floor_watts, balances):
        book(self, advance, holdings, floor_watts, balances)
        balances["unallocated"].reserved_mj += 1

    monkeypatch.setattr(EnergyBook, "book", book_more)
    faults = ours(scenario("mig-mixed"), {2}).faults
    assert [(second, residual) for second, _, residual in faults] == [
        (0, Residual(1, 0)),
        (1, Residual(2, 0)),
        (2, Residual(3, 0)),
    ]
