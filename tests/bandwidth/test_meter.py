"""What one meter makes of windows: totals, means, peaks, busy and lost time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.bandwidth.meter import Meter
from seedance_obs.bandwidth.reading import THRESHOLDS
from seedance_obs.flow import Window
from tests.bandwidth.flows import CAPACITY, PER_TICK, TICK, stepping, ticks

AMOUNTS = st.lists(st.integers(0, 2 * PER_TICK), min_size=1, max_size=60)


def meter() -> Meter:
    return Meter(interval_seconds=TICK, window_seconds=15.0)


def metered(windows, capacity=CAPACITY, source="counter", pace=None):
    one = meter()
    one.add(windows, capacity, source, pace=pace)
    return one.reading()


def busy(reading) -> list[float]:
    return [pytest.approx(reading.busy_seconds[each], abs=1e-6) for each in THRESHOLDS]


def test_before_any_window_nothing_is_known_but_that_nothing_was_seen():
    reading = meter().reading()
    assert (reading.mean, reading.peak, reading.capacity) == (None, None, None)
    assert (reading.total, reading.observed_seconds, reading.busy_seconds) == (0, 0.0, {})


@given(AMOUNTS, st.integers(1, 60))
def test_totals_are_exact_however_the_windows_come(amounts, cut):
    windows = ticks(amounts)
    one = meter()
    one.add(windows[:cut], CAPACITY)
    one.add(windows[cut:], CAPACITY)
    total = one.reading().total
    assert (total, type(total)) == (sum(amounts), int)


@given(AMOUNTS)
def test_busy_time_falls_with_the_threshold_and_never_passes_observed_time(amounts):
    reading = metered(ticks(amounts))
    times = [reading.observed_seconds, *(reading.busy_seconds[each] for each in THRESHOLDS)]
    assert times == sorted(times, reverse=True)


@given(AMOUNTS, st.integers(1, 60))
def test_nothing_depends_on_how_windows_are_batched(amounts, cut):
    windows = ticks(amounts)
    one = meter()
    one.add(windows[:cut], CAPACITY)
    one.add(windows[cut:], CAPACITY)
    assert one.reading() == metered(windows)


@given(AMOUNTS)
def test_a_mean_lies_below_its_peak(amounts):
    reading = metered(ticks(amounts))
    assert reading.mean is None or reading.mean <= reading.peak * (1 + 1e-9)


def test_time_at_a_threshold_is_busy_time():
    levels = [0.4, 0.5, 0.79, 0.8, 0.95, 1.0]
    reading = metered(ticks(round(level * PER_TICK) for level in levels))
    assert busy(reading) == [0.5, 0.3, 0.2]
    assert reading.observed_seconds == pytest.approx(0.6)


def test_a_burst_is_a_peak_for_as_long_as_a_scrape_may_take_and_then_no_more():
    one = meter()
    one.add(ticks([PER_TICK, *[1000] * 149]), CAPACITY)
    assert one.reading().peak == pytest.approx(CAPACITY)
    one.add(ticks([1000] * 11, start=115.0), CAPACITY)
    assert one.reading().peak == pytest.approx(10_000)
    assert one.reading().mean == pytest.approx(10_000)


def test_whoever_asks_often_sees_what_another_sees():
    asked, left = meter(), meter()
    for place in range(40):
        windows = ticks([place * 1_000_000] * 10, start=100.0 + place)
        asked.add(windows, CAPACITY)
        left.add(windows, CAPACITY)
        asked.reading()
    assert asked.reading() == left.reading()


def test_without_a_capacity_there_is_no_busy_time():
    reading = metered(ticks([PER_TICK] * 5), capacity=None)
    assert reading.busy_seconds == {}
    assert reading.peak == pytest.approx(CAPACITY)


def test_jitter_of_the_loop_is_not_late():
    windows = (Window(0, 0.14, 1000), Window(0.14, 0.2, 1000))
    reading = metered(windows)
    assert reading.late_seconds == 0
    assert reading.observed_seconds == pytest.approx(0.2)


def test_a_loop_that_was_late_says_by_how_much():
    reading = metered((Window(0, 0.1, 1000), Window(0.1, 0.35, 1000)))
    assert reading.late_seconds == pytest.approx(0.15)
    assert reading.observed_seconds == pytest.approx(0.35)


def test_what_passed_while_the_loop_stood_still_counts_and_is_not_judged():
    one = meter()
    one.add((Window(0, 0.1, 1000), Window(0.1, 9.1, 90_000_000_000)), CAPACITY)
    reading = one.reading()
    assert (reading.total, reading.peak) == (90_000_001_000, pytest.approx(10_000))
    assert busy(reading) == [0, 0, 0]
    assert reading.observed_seconds == pytest.approx(0.1)
    assert reading.late_seconds == pytest.approx(8.9)
    assert one.told_until == 9.1


@pytest.mark.parametrize("length", [0.02, 1.0, 30.0])
def test_the_windows_of_a_slow_source_are_not_lost(length):
    reading = metered(ticks([1000] * 6, tick=length), source="dcgm")
    assert reading.observed_seconds == pytest.approx(6 * length)
    assert reading.late_seconds == 0


def test_a_page_that_stayed_away_is_lost_time():
    slow = ticks([1000] * 6, tick=30.0)
    reading = metered((*slow, Window(280, 580, 5000)), source="dcgm")
    assert reading.observed_seconds == pytest.approx(180)
    assert reading.late_seconds == pytest.approx(270)
    assert reading.total == 11_000


def test_the_believed_source_is_named_and_its_windows_go_on_where_the_last_ended():
    one = meter()
    one.add(ticks([0] * 5), CAPACITY, "gpm")
    one.add(ticks([1000] * 2, start=101.0), CAPACITY, "dcgm")
    reading = one.reading()
    assert (reading.source, reading.total) == ("dcgm", 2000)
    assert reading.observed_seconds == pytest.approx(0.7)


@pytest.mark.parametrize("every", [3, 5, 9, 10])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_counter_that_stands_between_writes_is_not_busier_than_it_is(every, first):
    reading = metered(stepping(0.4, seconds=60, every=every, first=first))
    assert busy(reading) == [0, 0, 0]


@pytest.mark.parametrize("source", ["gpm", "counter", "rdma", "ethernet"])
def test_bursts_in_time_with_the_loop_stay_bursts_however_many_come(source):
    second = [0, 0, 0, PER_TICK * 9 // 10, 0, 0, 0, 0, 0, 0]
    reading = metered(ticks(second * 60), source=source)
    assert reading.peak == pytest.approx(0.9 * CAPACITY)
    assert reading.busy_seconds[0.8] == pytest.approx(60 * TICK)


@pytest.mark.parametrize(
    ("written", "ratio"),
    [(0.11, 0.98), (0.13, 0.9), (0.15, 0.75), (0.15, 0.8), (0.15, 0.98), (0.25, 0.9)],
)
def test_a_counter_that_is_written_at_odd_times_is_not_busier_than_it_is(written, ratio):
    def shown(tick: int) -> int:
        return round(int(tick * TICK / written + 1e-9) * written * ratio * CAPACITY)

    one = meter()
    one.add(ticks(shown(tick + 1) - shown(tick) for tick in range(10)), CAPACITY)
    before = one.reading()
    amounts = [shown(tick + 1) - shown(tick) for tick in range(10, 600)]
    one.add(ticks(amounts, start=101.0), CAPACITY)
    after = one.reading()
    assert after.peak <= 1.05 * CAPACITY * (1 + 1e-9)
    assert after.mean == pytest.approx(ratio * CAPACITY, rel=0.02)
    busy, seen = (
        after.busy_seconds[0.5] - before.busy_seconds[0.5],
        after.observed_seconds - before.observed_seconds,
    )
    assert busy == pytest.approx(seen)


@pytest.mark.parametrize("source", ["counter", "gpm", "rdma", "dcgm", "throughput"])
def test_nothing_counts_for_more_than_can_pass_but_in_the_total(source):
    reading = metered(ticks([PER_TICK // 2, *[3 * PER_TICK] * 8]), source=source)
    assert reading.peak == pytest.approx(1.05 * CAPACITY)
    assert reading.total == 24 * PER_TICK + PER_TICK // 2


def test_power_may_pass_its_limit():
    reading = metered(ticks([90.0] * 20, tick=TICK), capacity=700.0, source="sensor")
    assert reading.peak == pytest.approx(900.0)


def test_a_links_own_chatter_does_not_hide_the_burst_that_follows():
    chatter = [0, 0, 0, 0, 0, 0, 70_000]
    reading = metered(ticks([*chatter * 60, 0, 0, 0, PER_TICK, 0, 0, 0]))
    assert reading.busy_seconds[0.95] == pytest.approx(TICK)


def test_bursts_that_now_and_then_span_two_windows_stay_bursts():
    bursts = [0, 0, PER_TICK * 9 // 10] * 20 + [0, PER_TICK // 2, PER_TICK // 2] * 2
    reading = metered(ticks(bursts * 6))
    assert reading.busy_seconds[0.8] == pytest.approx(120 * TICK)


@pytest.mark.parametrize("every", [2, 5, 10])
def test_a_light_load_is_not_busy_either_once_the_counter_is_known_to_stand(every):
    heavy, light = (
        stepping(ratio, seconds=30, every=every, first=every - 1) for ratio in (0.7, 0.09)
    )
    one = meter()
    one.add(heavy, CAPACITY)
    one.add([Window(s + 30, e + 30, amount) for s, e, amount in light], CAPACITY)
    assert one.reading().busy_seconds[0.5] == pytest.approx(30 - every * TICK)
    assert one.reading().peak == pytest.approx(0.09 * CAPACITY)


@pytest.mark.parametrize("every", [2, 5, 10])
def test_a_counter_that_stands_is_busy_all_the_time_that_it_is(every):
    windows = stepping(0.9, seconds=60, every=every, first=every - 1)
    reading = metered(windows)
    # All but the first step, which may have begun before, and the last, which may be part of one.
    assert reading.observed_seconds >= 58 - 1e-6
    assert reading.busy_seconds[0.8] == pytest.approx(reading.observed_seconds)
    assert reading.busy_seconds[0.95] == 0
    assert reading.peak == pytest.approx(0.9 * CAPACITY)


def test_real_bursts_between_idle_windows_stay_bursts():
    reading = metered(
        ticks([0, 0, 0, PER_TICK, 0, 0, 0, 0, PER_TICK, PER_TICK, 0, 0, 0] + [0] * 20)
    )
    assert busy(reading) == [0.3, 0.3, 0.3]
    assert reading.peak == pytest.approx(CAPACITY)


def test_a_counter_that_moves_twice_in_a_row_is_no_longer_taken_to_stand():
    proof = [0, 0, PER_TICK // 2, 0, 0, 3 * PER_TICK]
    usual = [PER_TICK // 4, PER_TICK // 4]
    burst = [0, 0, PER_TICK, PER_TICK // 4] + [PER_TICK // 4] * 3
    reading = metered(ticks(proof + usual + burst))
    assert reading.busy_seconds[0.95] == pytest.approx(0.3 + 0.1)


def test_what_moved_before_anybody_looked_is_not_a_burst():
    reading = metered(ticks([0, 40 * PER_TICK, PER_TICK // 10]))
    assert reading.total == 40 * PER_TICK + PER_TICK // 10
    assert reading.observed_seconds == pytest.approx(0.1)
    assert busy(reading) == [0, 0, 0]


def test_a_capacity_that_is_too_low_does_not_hide_a_busy_link():
    reading = metered(ticks([3 * PER_TICK] * 20))
    assert reading.busy_seconds[0.95] == pytest.approx(1.9)


def test_an_idle_link_is_observed_all_the_same():
    reading = metered(ticks([0] * 100))
    assert reading.observed_seconds == pytest.approx(10.0 - 1.2)
    assert (reading.mean, reading.peak) == (0, 0)


def test_gpm_is_not_late_though_it_samples_at_every_other_tick():
    reading = metered(ticks([2000] * 20, tick=0.2), source="gpm", pace=0.2)
    assert reading.late_seconds == 0
    assert reading.observed_seconds == pytest.approx(4.0)


@pytest.mark.parametrize("first", [0.2, 0.5])
def test_a_source_is_judged_by_its_own_pace_from_the_first_window_on(first):
    one = meter()
    one.add([Window(0, first, 1000)], CAPACITY, "gpm", pace=0.2)
    assert one.reading().late_seconds == pytest.approx(0.0 if first == 0.2 else 0.3)
    one.add(
        [Window(first, first + 0.3, 1000), Window(first + 1, first + 2, 1)],
        CAPACITY,
        "gpm",
        pace=0.2,
    )
    assert one.reading().observed_seconds == pytest.approx(first + 0.3), "a tick late, and ten"


def test_a_loop_that_is_always_late_is_late_and_an_adapter_that_is_told_rarely_is_not():
    windows = ticks([1000] * 20, tick=1.0)
    assert metered(windows, source="ethernet").late_seconds == pytest.approx(20 * 0.9)
    slow = metered(windows, source="ethernet", pace=1.5)
    assert (slow.late_seconds, slow.observed_seconds) == (0, pytest.approx(20.0))
