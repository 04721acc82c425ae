"""What holds of any series."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.leaks.growth import Growth, GrowthWatch
from seedance_obs.leaks.growth_rules import GrowthRule

EVERY = 15.0
# No sum of whole numbers over whole seconds is exactly this rate, so rounding decides nothing.
RATE = 8.0031
FAST = GrowthRule("fast", RATE, 180.0)
FEW = settings(max_examples=60, deadline=None)

values = st.lists(st.integers(0, 20_000), min_size=70, max_size=160)


@st.composite
def drifting(draw: st.DrawFn) -> list[int]:
    """A series that is a leak as often as not: flat, then of steps that mostly go up."""
    flat = draw(st.integers(30, 80))
    rises = draw(st.lists(st.integers(-60, 500), min_size=50, max_size=90))
    found = [1000] * flat
    for rise in rises:
        found.append(max(found[-1] + rise, 0))
    return found


any_series = st.one_of(values, drifting())


def course(
    series: Sequence[int], *, rule: GrowthRule = FAST, every: float = EVERY, start: float = 0.0
) -> list[Growth | None]:
    """What is found after each note."""
    watch = GrowthWatch([rule], gap_seconds=4 * every)
    found = []
    for number, value in enumerate(series):
        watch.note(start + number * every, {"it": value})
        growths = watch.growing(start + number * every)
        found.append(growths["it"][0] if growths else None)
    return found


def told(found: Growth, *, level: int = 0, since: float = 0.0, time: float = 1, size: int = 1):
    """What a finding says, brought back from another scale."""
    return (
        pytest.approx(found.per_second * time / size),
        pytest.approx(found.low_water_per_second * time / size),
        pytest.approx((found.since - since) / time),
        found.level // size - level,
    )


def assert_same(one: list[Growth | None], other: list[Growth | None], **scale: float) -> None:
    assert [found is None for found in one] == [found is None for found in other]
    for found, again in zip(one, other, strict=True):
        if found is not None and again is not None:
            assert told(found) == told(again, **scale)


def leaks(series: Sequence[int]) -> bool:
    return any(course(series))


@FEW
@given(st.integers(0, 10**13), st.integers(1, 400))
def test_a_flat_series_is_no_leak(value, count):
    assert not leaks([value] * count)


@FEW
@given(any_series, st.integers(0, 10**9))
def test_a_constant_more_changes_nothing(series, more):
    assert_same(course(series), course([value + more for value in series]), level=more)


@FEW
@given(any_series, st.floats(0, 1e7))
def test_another_start_of_the_clock_changes_nothing(series, start):
    assert_same(course(series), course(series, start=start), since=start)


@FEW
@given(any_series, st.floats(0.01, 1000))
def test_time_and_rate_scaled_together_change_nothing(series, factor):
    rule = GrowthRule("fast", RATE / factor, 180 * factor)
    scaled = course(series, rule=rule, every=EVERY * factor)
    assert_same(course(series), scaled, time=factor)


@FEW
@given(any_series, st.integers(2, 2**20))
def test_values_and_rate_scaled_together_change_nothing(series, factor):
    rule = GrowthRule("fast", RATE * factor, 180)
    scaled = course([value * factor for value in series], rule=rule)
    assert_same(course(series), scaled, size=factor)


@FEW
@given(st.lists(st.integers(-500, int(RATE * EVERY)), min_size=70, max_size=160))
def test_what_never_grows_at_the_rate_is_no_leak(rises):
    series = [100_000]
    for rise in rises:
        series.append(series[-1] + rise)
    assert not leaks(series)


@FEW
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=24), st.integers(0, 23))
def test_what_repeats_within_two_windows_is_no_leak_from_birth(cycle, phase):
    series = [cycle[(number + phase) % len(cycle)] for number in range(300)]
    assert not leaks(series)


@FEW
@given(st.floats(30, 880), st.floats(0, 1), st.floats(8, 1000))
def test_a_sawtooth_shorter_than_five_windows_is_no_leak_from_birth(period, phase, rate):
    series = [int(rate * ((EVERY * number + phase * period) % period)) for number in range(300)]
    assert not leaks(series)


@FEW
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 10**7), st.integers(0, 10**7))
def test_one_step_or_two_are_no_leak(first, second, height, another):
    series = [(at >= first) * height + (at >= second) * another for at in range(260)]
    assert not leaks(series)


@FEW
@given(st.lists(st.integers(0, 20_000), min_size=70, max_size=160))
def test_what_falls_without_end_is_no_leak(values):
    assert not leaks(sorted(values, reverse=True))


@FEW
@given(st.integers(125, 100_000), st.integers(60, 120))
def test_what_grows_faster_than_the_rate_is_found_after_nine_minutes(rise, flat):
    series = [0] * flat + [rise * number for number in range(1, 60)]
    found = course(series)
    assert not any(found[:flat])
    assert all(found[flat + 36 :])


@FEW
@given(drifting(), st.lists(any_series, max_size=4))
def test_neighbours_change_nothing(series, others):
    alone = course(series)
    watch = GrowthWatch([FAST])
    for number, value in enumerate(series):
        now = number * EVERY
        beside = {at: other[number] for at, other in enumerate(others) if number < len(other)}
        watch.note(now, beside | {"it": value})
        assert watch.growing(now).get("it", (None,))[0] == alone[number]
