"""What is called a leak, from when, until when, and what is not."""

import tracemalloc
from collections.abc import Iterator

import pytest

from seedance_obs.leaks.growth import Growth, GrowthWatch
from seedance_obs.leaks.growth_rules import GrowthRule, read_growth_rules
from tests.leaks.growth_series import Course, leak, sampled, sawtooth, step

FAST = GrowthRule("fast", 8.0, 180.0, 1000)
SLOW = GrowthRule("slow", 0.05, 7200.0, 1000)
HOUR = 3600
STEADY = 1500  # seconds before a leak begins, more than it takes to be judged


def watched(
    course: Course, seconds: float, *, rule: GrowthRule = FAST, every: float = 15, phase: float = 0
) -> Iterator[tuple[float, tuple[Growth, ...]]]:
    """Each time of a note, and what is found then."""
    watch = GrowthWatch([rule], gap_seconds=4 * every)
    for number, value in enumerate(sampled(course, every, int(seconds / every), phase=phase)):
        now = phase + number * every
        watch.note(now, {"it": value})
        yield now, watch.growing(now).get("it", ())


def times_found(course: Course, seconds: float, **how: float) -> list[float]:
    return [now for now, found in watched(course, seconds, **how) if found]


@pytest.mark.parametrize("phase", [0, 1.5, 4, 7.5, 11, 14.9])
@pytest.mark.parametrize("late", [0, 10, 20, 29])
def test_a_leak_in_a_steady_process_is_found_within_nine_minutes(phase, late):
    begin = STEADY + late
    first = times_found(leak(9, begin), STEADY + 600, phase=phase)[0]
    assert 360 < first - begin <= 540


def test_a_leak_from_birth_is_found_as_soon_as_it_may_be_judged():
    assert times_found(leak(9, 0), HOUR)[0] == 5 * 180


@pytest.mark.parametrize("phase", [0, 3, 9, 14])
@pytest.mark.parametrize("period", [200, 300, 600])
def test_a_sawtooth_is_silent_for_ever_from_birth(period, phase):
    for offset in range(0, period, 20):
        assert times_found(sawtooth(10, period, offset), HOUR, phase=phase) == []


def test_a_sawtooth_of_an_hour_is_silent_once_it_was_seen_to_fall():
    found = times_found(sawtooth(10, HOUR), 10 * HOUR)
    assert found
    assert max(found) <= HOUR + 30


def test_what_comes_and_goes_with_the_hours_of_a_day_is_no_slow_leak():
    found = times_found(sawtooth(0.1, 24 * HOUR), 96 * HOUR, rule=SLOW, every=60)
    assert max(found) <= 24 * HOUR + 1200


@pytest.mark.parametrize("height", [1440, 2000, 2880, 100_000])
def test_a_step_of_any_size_is_silent(height):
    for late in range(0, 60, 5):
        assert times_found(step(height, STEADY + late), STEADY + HOUR) == []


@pytest.mark.parametrize("height", [1440, 2880, 5000])
def test_a_step_and_a_rise_a_window_later_are_silent_until_three_windows_rose(height):
    for late in range(0, 60, 5):
        rises = STEADY + late + 180 + 30

        def course(at: float, begin: float = STEADY + late, rises: float = rises) -> float:
            return step(height, begin)(at) + leak(20, rises)(at)

        found = times_found(course, rises + 900)
        assert found[0] - rises > 180


def test_a_slow_leak_is_found_by_the_slow_rule_alone():
    begin = 12 * HOUR
    course = leak(0.1, begin)
    assert times_found(course, begin + 6 * HOUR) == []
    first = times_found(course, begin + 6 * HOUR, rule=SLOW)[0]
    assert 4.5 * HOUR <= first - begin < 5 * HOUR


def test_fifty_megabytes_an_hour_are_found_by_the_preset_for_memory():
    (rule,) = read_growth_rules(["fast=32MiB/h,20m"], "bytes")
    begin = 2 * HOUR
    found = times_found(leak(50e6 / HOUR, begin), begin + 2 * HOUR, rule=rule)
    assert found[0] - begin < HOUR
    assert times_found(leak(30e6 / HOUR, begin), begin + 2 * HOUR, rule=rule) == []


def test_a_leak_below_a_sawtooth_is_found_and_stays_found():
    def course(at: float) -> float:
        return leak(9, STEADY)(at) + sawtooth(10, 200)(at)

    found = times_found(course, STEADY + HOUR)
    assert found[0] - STEADY < 900
    assert found == [found[0] + 15 * number for number in range(len(found))]
    assert found[-1] == STEADY + HOUR - 15


def test_the_numbers_of_a_finding():
    last = STEADY + 1200
    for now, found in watched(leak(9, STEADY), last + 15):
        for growth in found:
            assert growth.rule == FAST
            assert growth.per_second == pytest.approx(9, abs=0.01)
            assert 8 <= growth.low_water_per_second <= 9.01
            assert growth.since == pytest.approx(STEADY, abs=30)
            assert growth.level == 1000 + 9 * (now - STEADY)
    assert found[0].low_water_per_second == pytest.approx(9)


def test_the_slope_does_not_depend_on_when_notes_come():
    watch = GrowthWatch([FAST])
    now, slopes = 0, set()
    for number in range(300):
        watch.note(now, {"it": 9 * now})
        slopes |= {round(growth.per_second, 6) for growth in watch.growing(now).get("it", ())}
        now += (15, 11, 19, 16, 8)[number % 5]
    assert slopes == {9.0}


def test_a_fast_leak_is_told_to_have_begun_when_it_did():
    begins = {growth.since for _, found in watched(leak(1000, 1600), 3000) for growth in found}
    assert list(begins) == [pytest.approx(1600, abs=30)]


@pytest.mark.parametrize("odd", [0, 1])
def test_what_is_given_back_between_any_two_notes_counts(odd):
    watch = GrowthWatch([FAST])
    for number in range(400):
        watch.note(15 * number, {"it": 1000 if number % 2 == odd else 1000 + 400 * number})
        assert watch.growing(15 * number) == {}


@pytest.mark.parametrize("peak_at", [20, 21])
def test_one_high_note_is_remembered(peak_at):
    watch = GrowthWatch([FAST])
    for number in range(600):
        level = 1000 + 135 * number
        watch.note(15 * number, {"it": 40_000 if number == peak_at else level})
        if watch.growing(15 * number):
            break
    assert level - 12 * 135 > 40_000 + (40_000 - 3970) / 2


def test_the_past_is_forgotten_after_forty_windows():
    begin = 300 + 43 * 180

    def course(at: float) -> float:
        return leak(9, begin)(at) + (100_000 if at == 300 else 0)

    assert times_found(course, begin + 600)[0] - begin <= 540


def test_growth_must_go_beyond_the_peak_by_half_of_the_deepest_fall():
    def course(at: float) -> float:
        return leak(9, STEADY)(at) + (5000 if at == 300 else 0) - (600 if at == 600 else 0)

    found = next(found for _, found in watched(course, HOUR) if found)
    beyond = 6000 + 5600 / 2
    assert beyond < found[0].level - 9 * 180 <= beyond + 9 * 45


def test_when_growth_began_does_not_change_while_it_lasts():
    begins = {growth.since for _, found in watched(leak(9, 1600), 3 * HOUR) for growth in found}
    assert len(begins) == 1


def test_a_finding_ends_a_window_and_a_bit_after_growth_has_stopped():
    end = STEADY + 1200
    found = times_found(leak(9, STEADY, end), end + HOUR)
    assert end + 90 <= found[-1] <= end + 1.5 * 180


def test_a_finding_ends_at_once_when_what_was_held_is_given_back():
    end = STEADY + 1200

    def course(at: float) -> float:
        return leak(9, STEADY)(at) if at < end else 1000

    found = times_found(course, end + HOUR)
    assert found[-1] <= end + 45


def test_growth_that_goes_on_after_a_plateau_is_a_finding_of_its_own():
    again = STEADY + 3600

    def course(at: float) -> float:
        return leak(9, STEADY, STEADY + 1200)(at) + leak(9, again)(at)

    begins = {growth.since for _, found in watched(course, again + HOUR) for growth in found}
    assert sorted(begins) == [pytest.approx(STEADY, abs=30), pytest.approx(again, abs=30)]


def test_each_rule_finds_on_its_own():
    watch = GrowthWatch([GrowthRule("lax", 1.0, 180.0), FAST])
    for now in range(0, 2400, 15):
        watch.note(now, {"quick": now * 20, "mild": now * 2, "still": 7})
    found = watch.growing(2400)
    assert [growth.rule.name for growth in found["quick"]] == ["lax", "fast"]
    assert [growth.rule.name for growth in found["mild"]] == ["lax"]
    assert set(found) == {"quick", "mild"}


def test_without_rules_nothing_is_found():
    watch = GrowthWatch([])
    watch.note(0, {"it": 1})
    assert watch.growing(0) == {}


def seconds_until_found(watch: GrowthWatch, start: float, value: float) -> float:
    for number in range(400):
        now = start + 15 * number
        watch.note(now, {"it": round(value + 9 * (now - start)), "other": 5})
        if watch.growing(now):
            return now - start
    raise AssertionError("never found")


def test_a_series_that_was_missing_once_begins_anew():
    watch = GrowthWatch([FAST])
    seconds_until_found(watch, 0, 0)
    watch.note(905, {"other": 5})
    assert watch.growing(905) == {}
    # Its first bucket is one that the others began: it may be judged part of a bucket sooner.
    assert 5 * 180 - 30 <= seconds_until_found(watch, 910, 9000) <= 5 * 180 + 15


def test_all_begin_anew_after_a_gap():
    watch = GrowthWatch([FAST], gap_seconds=45)
    seconds_until_found(watch, 0, 0)
    assert watch.growing(900 + 45)
    assert watch.growing(900 + 46) == {}
    assert seconds_until_found(watch, 946, 9000) == 5 * 180


def test_all_begin_anew_when_the_clock_steps_back():
    watch = GrowthWatch([FAST])
    seconds_until_found(watch, 0, 0)
    watch.note(100, {"it": 9000})
    assert watch.growing(100) == {}
    assert seconds_until_found(watch, 100, 9000) == 5 * 180


def test_notes_rarer_than_a_sixth_of_a_window_make_windows_longer():
    first = times_found(leak(9, 3600), 3 * HOUR, every=60)[0]
    assert 540 < first - 3600 <= 3 * 6 * 60
    assert times_found(step(2000, 3600), 3 * HOUR, every=60) == []


@pytest.mark.parametrize("early", [0.0, 0.4, 2.0])
def test_notes_that_come_a_little_early_or_late_do_not_delay_a_finding(early):
    watch = GrowthWatch([FAST])
    course = leak(9, STEADY)
    for number in range(400):
        now = 15 * number - early * (number % 2)
        watch.note(max(now, 0), {"it": int(course(now))})
        if watch.growing(now):
            break
    assert now - STEADY <= 540


@pytest.mark.parametrize(
    ("level", "limit", "worth"),
    [
        (1000, None, True),
        (999, None, False),
        (999, 1_000_000, False),
        (205, 1024, True),
        (204, 1024, False),
        (1000, 1_000_000, True),
    ],
)
def test_growth_at_a_low_level_is_not_worth_a_word_unless_the_limit_is_low(level, limit, worth):
    assert Growth(FAST, 9.0, 9.0, 0.0, level).matters(limit) is worth


def test_any_level_of_memory_is_worth_a_word():
    assert Growth(GrowthRule("fast", 9e3, 1200.0), 9e3, 9e3, 0.0, 1).matters()


def test_flat_series_take_little_memory():
    watch = GrowthWatch([FAST, GrowthRule("slow", 0.05, 360.0)])
    count = 300
    tracemalloc.start()
    try:
        for now in range(0, 3600, 15):
            watch.note(now, {number: 10_000 + number for number in range(count)})
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / count < 1500
