"""The score as it is defined, on windows laid out by hand."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.bandwidth.circular_shifts import Medians, p_value
from seedance_obs.bandwidth.sensitivity import sensitivity
from seedance_obs.bandwidth.sensitivity_contrast import contrast
from seedance_obs.bandwidth.sensitivity_doubts import is_foretold
from seedance_obs.bandwidth.sensitivity_history import History, Observation
from seedance_obs.bandwidth.three_slopes import three_slopes

BURSTS = (9, 24, 52, 97, 140, 161, 203, 231, 250)  # where they begin, at odd intervals


def windows(progress, pressure, *, every=30.0):
    history = History()
    for n, (p, c) in enumerate(zip(progress, pressure, strict=True)):
        history.add(observation(every * n, progress=p, pressure=c))
    return history


def observation(at=0.0, *, progress=1.0, pressure=0.0, own=None, running=True, throttled=False):
    return Observation(at, progress, pressure, own, running, throttled)


def score(progress, pressure):
    found = sensitivity(windows(progress, pressure), "sm")
    return None if found is None else found.score


def in_bursts(begins, *, length=6, count=260):
    return [any(begin <= n < begin + length for begin in begins) for n in range(count)]


def verdict(states, slow):
    pressure = [0.8 if state else 0.0 for state in states]
    return sensitivity(windows([0.8 if state else 1.0 for state in slow], pressure), "sm").verdict


def test_the_score_is_the_share_of_progress_lost_for_each_unit_of_pressure():
    pressure = [0.0, 0.2] * 5 + [0.35] * 3 + [0.5, 0.9] * 5
    progress = [8.0, 12.0] * 5 + [1.0] * 3 + [7.0, 9.0] * 5
    found = sensitivity(windows(progress, pressure), "process")
    assert found is not None
    assert found.score == pytest.approx((1 - 8 / 10) / (0.7 - 0.1))
    assert (found.low, found.high, found.windows, found.proxy) == (10, 10, 23, "process")


@pytest.mark.parametrize(("low", "high", "there"), [(10, 10, True), (9, 30, False), (30, 9, False)])
def test_there_is_no_score_without_ten_windows_of_each_kind(low, high, there):
    found = score([1.0] * (low + high + 5), [0.2] * low + [0.3] * 5 + [0.5] * high)
    assert (found is not None) == there


def test_a_tenant_that_gets_nothing_done_has_no_score():
    assert score([0.0] * 30, [0.0] * 15 + [0.6] * 15) is None


def test_the_score_stays_between_none_and_all():
    pressure = [0.0] * 10 + [0.5] * 10
    assert score([1.0] * 10 + [1.5] * 10, pressure) == 0
    assert score([1.0] * 10 + [0.1] * 10, pressure) == 1


def test_pressure_beyond_capacity_is_full_pressure():
    assert score([1.0] * 10 + [0.7] * 10, [0.0] * 10 + [1.7] * 10) == pytest.approx(0.3)


def test_what_does_not_count_is_not_kept():
    history = History()
    history.add(observation(30, running=False))
    history.add(observation(60, throttled=True))
    history.add(observation(90, own=0.25))
    history.add(observation(90))
    history.add(observation(120))
    assert list(history.at) == [90, 120]
    assert history.own == [0.25, None]


def test_the_history_keeps_the_last_four_hours_that_count():
    history = windows(range(600), [0.0] * 600)
    assert len(history) == 480
    assert list(history.progress) == list(range(120, 600))
    assert (history.at[0], history.at[-1]) == (120 * 30, 599 * 30)


def test_fewer_than_240_windows_decide_nothing():
    states = in_bursts(BURSTS)
    pressure = [0.8 if state else 0.0 for state in states]
    progress = [0.8 if state else 1.0 for state in states]
    early = sensitivity(windows(progress[:239], pressure[:239]), "sm")
    late = sensitivity(windows(progress[:240], pressure[:240]), "sm")
    assert early is not None
    assert late is not None
    assert early.p_value <= 0.05
    assert (early.verdict, late.verdict) == ("undecided", "significant")


@pytest.mark.parametrize(("count", "said"), [(6, "significant"), (5, "association")])
def test_a_few_bursts_are_a_coincidence(count, said):
    states = in_bursts((9, 40, 101, 130, 200, 236)[:count], length=8)
    assert verdict(states, states) == said


def test_an_effect_that_most_single_bursts_do_not_show_is_no_sensitivity():
    long, short = in_bursts(BURSTS[3:6], length=16), in_bursts(BURSTS[:3] + BURSTS[6:], length=4)
    states = [a or b for a, b in zip(long, short, strict=True)]
    assert verdict(states, long) == "association"
    assert verdict(states, states) == "significant"


def test_windows_apart_in_time_are_no_neighbours():
    """Without neighbours, nobody knows whether pressure or progress was first."""
    states = in_bursts(BURSTS)
    progress = [0.8 if state else 1.0 for state in states]
    pressure = [0.8 if state else 0.0 for state in states]
    close = contrast(windows(progress, pressure))
    apart = contrast(windows(progress, pressure, every=45.0))
    assert close is not None
    assert apart is not None
    assert not is_foretold(close)
    assert is_foretold(apart)


PROGRESS = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=70)


@given(PROGRESS, st.data())
def test_medians_of_subsets_are_medians(values, data):
    chosen = data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1))
    bits = sum(1 << n for n in chosen)
    assert Medians(values).of(bits) == median(values[n] for n in chosen)


@given(PROGRESS, st.data())
def test_the_p_value_is_the_share_of_shifts_that_do_as_well(progress, data):
    kinds = data.draw(st.lists(st.sampled_from("LMH"), min_size=len(progress)))[: len(progress)]
    kinds[:2] = "LH"
    low, high = ([n for n, k in enumerate(kinds) if k == kind] for kind in "LH")

    def lost(shift):
        slow = median(progress[(n + shift) % len(progress)] for n in high)
        usual = median(progress[(n + shift) % len(progress)] for n in low)
        return slow, usual

    slow, usual = lost(0)
    as_much = [a * usual <= slow * b for a, b in map(lost, range(len(progress)))]
    assert p_value(progress, low, high) == pytest.approx(sum(as_much) / len(progress))


SMALL = st.integers(-5, 5).map(float)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=4, max_size=20), SMALL, SMALL, SMALL)
def test_slopes_of_what_is_linear_are_found(xs, a, b, c):
    found = three_slopes([(7 + a * x + b * y + c * z, x, y, z) for x, y, z in xs])
    if found is not None:
        assert found == pytest.approx((a, b, c), abs=1e-6)


def test_slopes_of_what_goes_together_are_not_told_apart():
    assert three_slopes([(n, n, n, n * n) for n in range(9)]) is None
    assert three_slopes([(n, n, n % 2, n * n) for n in range(9)]) is not None
