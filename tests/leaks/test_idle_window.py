"""When an idle window is open, why it is not, and for how long it has been."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.leaks.idle_window import REASONS, IdleLimits, IdleWindow, Load

NODE = IdleLimits(
    cpu_ratio=0.12, memory_ratio=0.12, gpu_ratio=0.05, seconds=300.0, gap_seconds=45.0
)
WORKLOAD = replace(NODE, memory_ratio=None)
QUIET = Load(cpu_ratio=0.11, memory_ratio=0.11, gpu_ratio=0.04)
BUSY = replace(QUIET, cpu_ratio=0.5)


def looked(window: IdleWindow, *, of: Load = QUIET, start: int = 0, end: int) -> IdleWindow:
    """A look each 15 s from `start` to `end`, both included."""
    for now in range(start, end + 1, 15):
        window.advance(now, of)
    return window


def test_it_opens_after_five_quiet_minutes_and_not_a_look_before():
    window = looked(IdleWindow(NODE), end=285)
    assert (window.open, window.opened_at, window.reason) == (False, None, "warming_up")
    window.advance(300, QUIET)
    assert (window.open, window.opened_at, window.reason) == (True, 300, "")
    assert window.open_seconds == 0.0, "of the time before nobody said that it was open"
    window.advance(315, QUIET)
    assert (window.opened_at, window.open_seconds) == (300, 15.0)


def test_one_busy_look_in_five_minutes_starts_them_anew():
    window = looked(IdleWindow(NODE), end=270)
    window.advance(285, BUSY)
    looked(window, start=300, end=585)
    assert not window.open
    window.advance(600, QUIET)
    assert window.open


def test_a_look_that_finds_it_closed_does_not_count_the_time_before_as_open():
    window = looked(IdleWindow(NODE), end=330)
    window.advance(345, BUSY)
    assert (window.open, window.opened_at, window.open_seconds) == (False, None, 30.0)
    looked(window, start=360, end=690)
    assert (window.opened_at, window.open_seconds) == (660, 60.0), "what was open before is kept"


def test_before_the_first_look_it_is_closed():
    window = IdleWindow(NODE)
    assert (window.open, window.reason, window.open_seconds) == (False, "warming_up", 0.0)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (replace(QUIET, cpu_ratio=0.12), "cpu_busy"),
        (replace(QUIET, memory_ratio=0.12), "memory_in_use"),
        (replace(QUIET, gpu_ratio=0.05), "gpu_busy"),
        (replace(QUIET, gpu_ratio=float("nan")), "gpu_busy"),
        (replace(QUIET, cpu_ratio=None), "cpu_unknown"),
        (replace(QUIET, memory_ratio=None), "memory_unknown"),
        (replace(QUIET, gpu_ratio=None), "gpu_unknown"),
        (Load(1.0, 1.0, 1.0), "cpu_busy"),
        (Load(None, 1.0, 1.0), "memory_in_use"),
        (Load(None, None, 1.0), "gpu_busy"),
        (Load(None, None, None), "cpu_unknown"),
    ],
)
def test_at_a_limit_and_unknown_are_not_quiet_and_the_first_reason_is_told(load, reason):
    window = looked(IdleWindow(NODE), end=300)
    window.advance(315, load)
    assert (window.open, window.reason) == (False, reason)


def test_a_workload_is_not_asked_for_memory():
    window = looked(IdleWindow(WORKLOAD), of=Load(0.0, None, 0.0), end=300)
    assert window.open
    window.advance(315, Load(0.0, 1.0, 0.0))
    assert window.open


@pytest.mark.parametrize("later", [345.5, 100.0, 299.9], ids=["gap", "back", "a little back"])
def test_a_gap_and_a_clock_that_steps_back_start_the_time_anew(later):
    window = looked(IdleWindow(NODE), end=300)
    window.advance(later, QUIET)
    assert (window.open, window.reason, window.open_seconds) == (False, "gap", 0.0)
    for step in range(15, 300, 15):
        window.advance(later + step, QUIET)
        assert (window.open, window.reason) == (False, "warming_up")
    window.advance(later + 300, QUIET)
    assert window.opened_at == later + 300


def test_a_look_that_is_just_late_enough_is_no_gap():
    window = looked(IdleWindow(NODE), end=300)
    window.advance(345, QUIET)
    assert window.open
    assert window.open_seconds == 45.0


def test_what_is_busy_after_a_gap_is_told_as_busy():
    window = looked(IdleWindow(NODE), end=300)
    window.advance(1000, BUSY)
    assert window.reason == "cpu_busy"


ratios = st.one_of(st.none(), st.sampled_from([0.0, 0.04, 0.05, 0.11, 0.12, 0.9]))
loads = st.one_of(st.just(QUIET), st.builds(Load, ratios, ratios, ratios))
looks = st.lists(st.tuples(st.sampled_from([0, 1, 15, 30, 45, 46, 200, -7]), loads), max_size=60)


def quiet(load: Load) -> bool:
    told = (load.cpu_ratio, load.memory_ratio, load.gpu_ratio)
    return None not in told and load.cpu_ratio < 0.12 > load.memory_ratio and load.gpu_ratio < 0.05


@given(looks)
def test_it_is_open_when_the_looks_of_the_last_minutes_say_so_and_only_then(looks):
    limits = replace(NODE, seconds=60.0)
    window, now, history, expected, was_open = IdleWindow(limits), 0, [], 0, False
    for step, load in looks:
        now += step
        if not 0 <= step <= 45:
            history.clear()
        history.append((now, load))
        window.advance(now, load)
        run = []
        for at, seen in reversed(history):
            if not quiet(seen):
                break
            run.append(at)
        is_open = bool(run) and run[0] - run[-1] >= 60
        assert window.open == is_open == (window.reason == "")
        assert window.reason in ("", *REASONS)
        expected += step if is_open and was_open and 0 <= step <= 45 else 0
        assert window.open_seconds == expected
        was_open = is_open


@given(looks, st.floats(0.0, 600.0))
def test_it_is_never_open_for_longer_than_time_has_passed(looks, seconds):
    window, now, passed = IdleWindow(replace(NODE, seconds=seconds)), 0, 0
    for step, load in looks:
        before = window.open_seconds
        now += step
        passed += max(step, 0)
        window.advance(now, load)
        assert before <= window.open_seconds <= passed
