"""The fast loop: windows that were observed and no others, whatever counters and drivers do."""

import threading

import pytest

from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.fast_threads import next_due
from seedance_obs.sources.nvml.flow_store import ROOM
from seedance_obs.sources.nvml.library import GPU_IS_LOST, NO_PERMISSION, UNKNOWN, NvmlError
from seedance_obs.sources.nvml.wrapping import Unwrapped
from tests.nvml.fast_driver import (
    FIELDS,
    GPM,
    NVLINK_RX,
    NVLINK_TX,
    PCIE_RX,
    PCIE_TX,
    POWER,
    THROUGHPUT,
    WATTS,
    FastDriver,
    board,
    fast_reader,
    told,
)

MIB = 2**20
SENT, RECEIVED = ("pcie", "transmit", "counter"), ("pcie", "receive", "counter")


@pytest.fixture
def driver():
    driver = FastDriver()
    driver.fields = {PCIE_TX: 0, PCIE_RX: 0}
    return driver


def test_what_passed_between_two_ticks_is_a_window_and_the_first_tick_has_none(driver, clock):
    driver.fields = {PCIE_TX: 100, PCIE_RX: 7, NVLINK_TX: 5, NVLINK_RX: 6, WATTS: 250_000}
    fast = fast_reader(driver, clock)
    fast.tick()
    assert fast.take() == ()
    clock.advance(0.1)
    driver.fields = {PCIE_TX: 400, PCIE_RX: 7, NVLINK_TX: 6, NVLINK_RX: 8, WATTS: 300_000}
    fast.tick()
    assert told(fast.take()) == {
        SENT: [(0.1, 300)],
        RECEIVED: [(0.1, 0)],
        ("nvlink", "transmit", "counter"): [(0.1, 1024)],
        ("nvlink", "receive", "counter"): [(0.1, 2048)],
        ("power", "", "sensor"): [(0.1, 30.0)],
    }
    assert fast.take() == ()
    assert len(driver.asked(FIELDS)) == 2, "one call for a board and tick"


def test_a_late_tick_makes_a_window_of_its_true_length(driver, clock):
    fast = fast_reader(driver, clock)
    for late in (0.0, 0.1, 0.35):
        clock.advance(late)
        driver.fields[PCIE_TX] += 1000
        fast.tick()
    assert told(fast.take())[SENT] == [(0.1, 1000), (0.35, 1000)]


def test_a_counter_that_wraps_goes_on_and_one_that_began_again_is_silent_once(driver, clock):
    fast = fast_reader(driver, clock)
    for sent, linked in ((2**32 - 10, 900), (90, 5), (100, 7)):
        driver.fields |= {PCIE_TX: sent, NVLINK_TX: linked}
        fast.tick()
        clock.advance(0.1)
    flows = told(fast.take())
    assert flows[SENT] == [(0.1, 100), (0.1, 10)]
    assert flows["nvlink", "transmit", "counter"] == [(0.1, 2048)]


@pytest.mark.parametrize("glitch", [0, 2**32 - 1, 2**64 - 1])
@pytest.mark.parametrize(
    ("code", "base", "unit"),
    [(PCIE_TX, 3 * 10**9, 1), (PCIE_TX, 10**12, 1), (NVLINK_TX, 5 * 10**12, 1024)],
)
def test_one_reading_that_cannot_be_costs_its_own_time_and_adds_nothing(
    driver, clock, glitch, code, base, unit
):
    fast = fast_reader(driver, clock)
    for tick in range(20):
        driver.fields[code] = glitch if tick == 9 else base + 1000 * tick
        fast.tick()
        clock.advance(0.1)
    medium = "pcie" if code == PCIE_TX else "nvlink"
    windows = told(fast.take())[medium, "transmit", "counter"]
    assert set(windows) == {(0.1, 1000 * unit)}
    assert len(windows) >= 16, "two windows lie at the reading, and one more may begin anew"


def test_a_young_counter_that_reads_zero_for_a_moment_does_not_count_its_life_again(driver, clock):
    fast = fast_reader(driver, clock)
    for tick in range(6):
        driver.fields[NVLINK_TX] = 0 if tick == 3 else 10**6 + tick
        fast.tick()
        clock.advance(0.1)
    assert told(fast.take())["nvlink", "transmit", "counter"] == [(0.1, 1024)] * 3


def test_a_tick_that_follows_a_late_one_too_soon_is_left_to_the_next(driver, clock):
    """A driver that writes its counter every 20 ms would seem to burst."""
    fast = fast_reader(driver, clock)
    driver.answers[POWER, "gpu0"] = 100_000
    for after in (0.0, 0.1, 0.199, 0.001, 0.1, 0.06):
        clock.advance(after)
        driver.fields[PCIE_TX] += round(after * 10**6)
        fast.tick()
    flows = told(fast.take())
    lengths = [0.1, 0.199, 0.101, 0.06]
    assert flows[SENT] == [(length, length * 10**6) for length in lengths]
    assert [seconds for seconds, _ in flows["power", "", "sensor"]] == lengths


def test_a_refused_field_is_not_asked_again_until_the_board_is_described_anew(driver, clock):
    fast = fast_reader(driver, clock)
    fast.tick()
    clock.advance(0.1)
    fast.tick()
    assert [len(codes) for codes in driver.asked(FIELDS)] == [5, 2]
    clock.advance(0.1)
    driver.fields |= {NVLINK_TX: 4, PCIE_TX: 10}
    fast.watch([board()])
    fast.tick()
    assert len(driver.asked(FIELDS)[-1]) == 5
    assert told(fast.take())[SENT] == [(0.1, 0), (0.1, 10)], "what was known goes on"


def test_a_driver_that_does_not_know_power_of_this_moment_is_asked_for_its_mean(driver, clock):
    driver.answers[POWER, "gpu0"] = 120_000
    fast = fast_reader(driver, clock)
    for _ in range(3):
        fast.tick()
        clock.advance(0.1)
    assert told(fast.take())["power", "", "sensor"] == [(0.1, 12.0)] * 2
    assert len(driver.asked(POWER)) == 3


@pytest.mark.parametrize("milliwatts", [-1, 4_294_967_295])
def test_a_power_that_cannot_be_is_no_window(driver, clock, milliwatts):
    driver.fields[WATTS] = milliwatts
    fast = fast_reader(driver, clock)
    for _ in range(2):
        fast.tick()
        clock.advance(0.1)
    assert ("power", "", "sensor") not in told(fast.take())


# ---- GPM ----


def test_gpm_tells_rates_and_memory_beside_the_counters(driver, clock):
    driver.metrics = {20: 100.0, 21: 50.0, 61: 7.0, 60: 8.0, 10: 25.0}
    fast = fast_reader(driver, clock)
    fast.tick()
    clock.advance(0.2)
    driver.fields[PCIE_TX] = 20 * MIB
    fast.tick()
    flows = told(fast.take())
    assert flows[SENT] == flows["pcie", "transmit", "gpm"] == [(0.2, 20 * MIB)]
    assert flows["pcie", "receive", "gpm"] == [(0.2, 10 * MIB)]
    assert flows["nvlink", "transmit", "gpm"] == [(0.2, 1.4 * MIB)]
    assert flows["nvlink", "receive", "gpm"] == [(0.2, 1.6 * MIB)]
    assert flows["hbm", "", "gpm"] == [(0.2, 0.05)]


@pytest.mark.parametrize(
    ("interval", "pace"), [(0.05, 0.15), (0.1, 0.2), (0.11, 0.11), (0.2, 0.2), (1.0, 1.0)]
)
def test_flows_by_gpm_say_how_long_their_windows_are_meant_to_be(driver, clock, interval, pace):
    driver.metrics = {20: 1.0, 10: 5.0}
    fast = FastReader(driver, interval_seconds=interval, monotonic=clock, unwrapped=Unwrapped())
    fast.watch([board()])
    for _ in range(9):
        fast.tick()
        clock.advance(interval)
    paces = {(flow.channel.medium, flow.source): flow.pace for flow in fast.take()}
    assert paces["pcie", "gpm"] == paces["hbm", "gpm"] == pytest.approx(pace)
    assert paces["pcie", "counter"] is None


def test_gpm_is_sampled_no_oftener_than_its_counters_are_refreshed(driver, clock):
    driver.metrics = {20: 1.0}
    fast = fast_reader(driver, clock)
    for _ in range(21):
        fast.tick()
        clock.advance(0.05)
    lengths = [seconds for seconds, _ in told(fast.take())["pcie", "transmit", "gpm"]]
    assert min(lengths) > 0.1
    assert max(lengths) < 0.2
    assert sum(lengths) > 0.8, "and nothing is left out"


@pytest.mark.parametrize("impossible", [float("nan"), -3.0, 1e30, None])
def test_a_metric_that_cannot_be_costs_itself(driver, clock, impossible):
    driver.metrics = {20: 1.0, 21: impossible, 10: impossible}
    fast = fast_reader(driver, clock)
    for _ in range(2):
        fast.tick()
        clock.advance(0.2)
    sources = [source for source in told(fast.take()) if source[2] == "gpm"]
    assert sources == [("pcie", "transmit", "gpm")]


def test_a_board_that_may_not_be_sampled_is_asked_once(driver, clock):
    driver.answers[GPM, "gpu0"] = NvmlError(NO_PERMISSION)
    fast = fast_reader(driver, clock)
    for _ in range(3):
        fast.tick()
        clock.advance(0.2)
    assert len(driver.asked(GPM)) == 1
    assert len(told(fast.take())[SENT]) == 2


# ---- the last resort ----


def test_only_boards_that_tell_nothing_else_of_pcie_are_looked_at(clock):
    driver = FastDriver(boards=3)
    driver.fields = {WATTS: 1}
    for index in range(3):
        driver.answers[THROUGHPUT, f"gpu{index}"] = 1000 * (index + 1)
    driver.answers[GPM, "gpu1"] = [1.0] * 5
    fast = fast_reader(driver, clock, boards=3)
    for _ in range(2):
        fast.tick()
        clock.advance(0.2)
    for _ in range(6):
        fast.look()
        clock.advance(0.1)
    looks = [(device, *args) for name, device, args in driver.calls if name == THROUGHPUT]
    assert looks == [("gpu0", 0), ("gpu0", 1), ("gpu2", 0), ("gpu2", 1), ("gpu0", 0), ("gpu0", 1)]
    flows = [flow for flow in fast.take() if flow.source == "throughput"]
    levels = {round(window.level) for flow in flows for window in flow.windows}
    assert levels == {1_000_000, 3_000_000}
    assert {round(window.seconds, 6) for flow in flows for window in flow.windows} == {0.02}


def test_a_board_that_refuses_to_be_looked_at_gives_its_turn_away(clock):
    driver = FastDriver(boards=2)
    driver.fields = {WATTS: 1}
    driver.answers[THROUGHPUT, "gpu1"] = 5
    fast = fast_reader(driver, clock, boards=2)
    fast.tick()
    for _ in range(6):
        fast.look()
    devices = [device for name, device, _ in driver.calls if name == THROUGHPUT]
    assert devices.count("gpu0") == 1
    assert devices.count("gpu1") == 5


# ---- faults ----


def test_a_failing_part_costs_its_own_windows_is_logged_once_and_comes_back(driver, clock, caplog):
    caplog.set_level("INFO")
    driver.metrics = {20: 1.0}
    fast = fast_reader(driver, clock)
    fast.tick()
    for broken in (True, True, False, False):
        clock.advance(0.2)
        if broken:
            driver.answers[FIELDS, "gpu0"] = NvmlError(UNKNOWN)
        else:
            driver.answers.clear()
        fast.tick()
    flows = told(fast.take())
    assert flows[SENT] == [(0.2, 0)], "what passed during the fault was not observed"
    assert len(flows["pcie", "transmit", "gpm"]) == 4
    events = [record.getMessage().split()[0] for record in caplog.records]
    assert events == ["event=fast_loop_fault", "event=fast_loop_recovered"]


def test_a_lost_board_costs_itself(clock):
    driver = FastDriver(boards=2)
    driver.fields = {PCIE_TX: 0, PCIE_RX: 0}
    driver.answers["*", "gpu0"] = NvmlError(GPU_IS_LOST)
    fast = fast_reader(driver, clock, boards=2)
    for _ in range(2):
        fast.tick()
        clock.advance(0.1)
    assert {flow.channel.device for flow in fast.take()} == {board(1).uuid}


def test_windows_that_nobody_takes_make_room_for_newer_ones(driver, clock):
    fast = fast_reader(driver, clock)
    for number in range(ROOM + 6):
        driver.fields[PCIE_TX] = number * number
        fast.tick()
        clock.advance(0.1)
    windows = told(fast.take())[SENT]
    assert len(windows) == ROOM
    assert windows[-1] == (0.1, 2 * (ROOM + 5) - 1)
    assert fast.take_dropped() == 2 * 5
    assert fast.take_dropped() == 0


def test_handles_do_not_end_while_a_tick_is_under_way(driver, clock):
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()
    answer = driver.call

    def slow(*asked):
        inside.set()
        assert go_on.wait(10)
        order.append("call returned")
        return answer(*asked)

    fast = fast_reader(driver, clock)
    driver.call = slow
    ticking = threading.Thread(target=fast.tick)
    ticking.start()
    assert inside.wait(10)

    def end_handles():
        with fast.quiet():
            order.append("handles end")

    ending = threading.Thread(target=end_handles)
    ending.start()
    go_on.set()
    ticking.join(10)
    ending.join(10)
    assert order[-1] == "handles end"
    driver.call, order[:] = answer, []
    driver.calls.clear()
    fast.tick()
    assert driver.calls == [], "the boards are forgotten with their handles"


@pytest.mark.parametrize(
    ("now", "expected"), [(10.0, 10.1), (10.04, 10.1), (10.11, 10.2), (10.57, 10.6), (9.99, 10.1)]
)
def test_a_late_tick_does_not_shift_the_next(now, expected):
    assert next_due(10.0, now, 0.1) == pytest.approx(expected)
