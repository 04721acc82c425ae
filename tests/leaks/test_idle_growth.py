"""Memory that grows in idle windows, with work between them."""

import random

import pytest

from seedance_obs.leaks.growth_rules import GrowthRule
from seedance_obs.leaks.idle_growth import HELD_SECONDS, IdleGrowth, Owned

RULE = GrowthRule("fast", 32 * 2**20 / 3600, 1200.0)
PROBE, HOUR = 15.0, 3600.0
PER_SECOND = 50e6 / HOUR
BASE = 500_000_000


class Job:
    """One process whose owner works and rests in turns; a probe each 15 s."""

    def __init__(self) -> None:
        self.growth = IdleGrowth[str]([RULE], gap_seconds=45)
        self.now, self.value = 0.0, float(BASE)
        self.told: float | None = None

    def go(self, seconds: float, *, idle: bool, per_second: float) -> None:
        for _ in range(int(seconds / PROBE)):
            self.now += PROBE
            self.value += per_second * PROBE
            self.growth.note(self.now, {"job": Owned(idle, {"python": int(self.value)})})
            if self.growth.growing(self.now) and self.told is None:
                self.told = self.now


def test_a_leak_is_told_after_as_much_idle_time_whether_in_one_window_or_in_many():
    whole, cut = Job(), Job()
    whole.go(3 * HOUR, idle=True, per_second=PER_SECOND)
    for _ in range(12):
        cut.go(900, idle=True, per_second=PER_SECOND)
        cut.go(2700, idle=False, per_second=0.0)
    assert whole.told is not None
    assert cut.told is not None
    idle_windows, rest = divmod(cut.told, 3600)
    assert idle_windows * 900 + min(rest, 900) == pytest.approx(whole.told, abs=300)


def test_what_work_leaves_behind_is_no_growth_in_idle_time():
    job = Job()
    for _ in range(24):
        job.go(900, idle=True, per_second=0.0)
        job.go(2700, idle=False, per_second=PER_SECOND)
    assert job.told is None


def test_what_grows_by_rest_and_falls_by_work_is_told():
    job = Job()
    for _ in range(12):
        job.go(1800, idle=True, per_second=PER_SECOND)
        job.go(1800, idle=False, per_second=-PER_SECOND)
    assert job.told is not None


def test_a_finding_tells_the_value_as_it_is_and_how_long_it_has_grown():
    job = Job()
    job.go(900, idle=True, per_second=0.0)
    job.go(3600, idle=False, per_second=10 * PER_SECOND)
    began = job.now
    job.go(2.5 * HOUR, idle=True, per_second=PER_SECOND)
    ((growth,),) = job.growth.growing(job.now).values()
    assert growth.level == int(job.value)
    assert growth.per_second == pytest.approx(PER_SECOND, rel=0.01)
    assert began <= growth.since <= began + 1.5 * RULE.window_seconds


def test_a_finding_outlasts_an_hour_of_work_and_no_more():
    job = Job()
    job.go(3 * HOUR, idle=True, per_second=PER_SECOND)
    job.go(HELD_SECONDS, idle=False, per_second=0.0)
    assert job.growth.growing(job.now)
    job.go(PROBE, idle=False, per_second=0.0)
    assert not job.growth.growing(job.now)


def test_a_gap_in_idle_time_does_not_count_and_loses_nothing():
    job = Job()
    for _ in range(8):
        job.go(1200, idle=True, per_second=PER_SECOND)
        job.now += 600
        job.value += 600 * PER_SECOND
    assert job.told is not None


def test_who_is_not_noted_any_more_is_forgotten():
    job = Job()
    job.go(3 * HOUR, idle=True, per_second=PER_SECOND)
    job.growth.note(job.now + PROBE, {"job": Owned(True, {})})
    assert not job.growth.growing(job.now + PROBE)
    job.growth.note(job.now + 2 * PROBE, {})
    assert not job.growth.growing(job.now + 2 * PROBE)


def test_noise_between_work_of_any_length_stays_silent():
    rng = random.Random(5)
    job = Job()
    for _ in range(60):
        job.go(rng.choice([300, 900, 2400]), idle=True, per_second=rng.gauss(0, 300))
        job.go(rng.choice([60, 600, 3600]), idle=False, per_second=rng.gauss(0, 30_000))
    assert job.told is None
