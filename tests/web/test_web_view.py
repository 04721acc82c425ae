"""The address is the state: it round-trips, and what it cannot mean is refused in a sentence."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.errors import UsageError
from seedance_obs.web import clockface
from seedance_obs.web.usage import Window
from seedance_obs.web.view import (
    FORMS,
    MEASURES,
    RANGES,
    View,
    between,
    parse_view,
    zone_names,
    zone_of,
)

views = st.builds(
    View,
    span=st.sampled_from(sorted(RANGES)),
    between=st.none(),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    measure=st.sampled_from(sorted(MEASURES)),
    form=st.sampled_from(sorted(FORMS)),
)


@given(views)
def test_an_address_round_trips(view: View) -> None:
    assert parse_view(view.search()) == view


@given(views, st.integers(0, 4_000_000_000), st.integers(1, 366 * 86_400))
def test_a_custom_window_round_trips(view: View, start: int, length: int) -> None:
    custom = replace(view, span="15m", between=(start, start + length))
    assert parse_view(custom.search()) == custom


def test_the_default_address_is_empty() -> None:
    assert View().search() == "?"
    assert parse_view(None) == parse_view("") == parse_view("?") == View()


def test_a_relative_range_ends_now() -> None:
    assert parse_view("?range=1h").window(10_000.7) == Window(6400, 10_000)


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ("?range=2h", "use one of 15m, 1h"),
        ("?show=money", "use one of energy, gpus"),
        ("?as=pie", "use one of chart, table"),
        ("?tz=Mars/Olympus", "no time zone"),
        ("?from=2025-11-03T10:00Z", "both its start"),
        ("?from=2025-11-03T10:00Z&to=2025-11-03T10:00Z", "ends before it starts"),
        ("?from=2023-11-03T10:00Z&to=2025-11-03T10:00Z", "longer than a year"),
        ("?from=yesterday&to=today", "is not a time"),
    ],
)
def test_what_an_address_cannot_mean_is_a_sentence(search: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_view(search)


def test_times_are_read_in_the_views_zone() -> None:
    berlin = between(View(zone="Europe/Berlin"), "2025-11-03 04:00", "2025-11-03 05:00")
    assert berlin.search() == "?from=2025-11-03T03:00:00Z&to=2025-11-03T04:00:00Z&tz=Europe/Berlin"


def test_an_hour_that_the_clocks_skip_is_refused() -> None:
    with pytest.raises(UsageError, match="never was in Europe/Berlin"):
        between(View(zone="Europe/Berlin"), "2026-03-29 02:30", "2026-03-29 04:00")


def test_a_day_on_which_the_clocks_go_back_has_25_hours() -> None:
    view = between(View(zone="Europe/Berlin"), "2025-10-26", "2025-10-27")
    assert view.window(0).seconds == 25 * 3600


def test_utc_is_always_a_zone() -> None:
    assert zone_names()[0] == "UTC"
    assert zone_of("UTC").utcoffset(None).total_seconds() == 0  # type: ignore[union-attr] # UTC has one


DAY_START = 1_762_128_000  # 2025-11-03 00:00 UTC


@pytest.mark.parametrize("seconds", [60, 900, 3600, 21_600, 86_400, 604_800, 366 * 86_400])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Europe/Berlin"])
def test_an_axis_has_a_few_marks_on_round_local_times(seconds: int, zone: str) -> None:
    window = Window(DAY_START + 17, DAY_START + 17 + seconds)
    marks = clockface.marks(window, zone_of(zone))
    assert 1 <= len(marks) <= 8
    assert all(window.start <= at <= window.end and at % 60 == 0 for at, _ in marks)


def test_a_window_is_told_without_what_goes_without_saying() -> None:
    utc, now = zone_of("UTC"), DAY_START + 86_400
    same_day = Window(DAY_START + 3600, DAY_START + 7200)
    assert clockface.span(same_day, utc, now=now) == "Nov 3, 01:00 – 02:00"  # noqa: RUF001 - the page's dash
    assert clockface.span(same_day, utc, now=0).startswith("2025 Nov 3")
    two_days = Window(DAY_START, DAY_START + 86_400)
    assert clockface.span(two_days, utc, now=now).endswith("Nov 4, 00:00")


@given(st.integers(1, 366 * 86_400))
def test_steps_fill_the_window_to_its_end(seconds: int) -> None:
    window = Window(DAY_START, DAY_START + seconds)
    assert window.step_ends[-1] == window.end
    assert window.step_ends[0] - window.step >= window.start
    assert len(window.step_ends) <= 60
    assert window.step_ends[0] - window.step - window.start < window.step
