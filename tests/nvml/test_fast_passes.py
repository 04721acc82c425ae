"""A pass beside the fast loop: whose windows it takes, and what it makes of counters and GPM."""

import pytest

from seedance_obs.merge import merge
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.library import GPU_IS_LOST, NO_PERMISSION, NvmlError
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.wrapping import Unwrapped
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot
from tests.nvml.fast_driver import (
    FIELDS,
    GPM,
    NVLINK_RX,
    NVLINK_TX,
    PCIE_RX,
    PCIE_TX,
    UUID,
    WATTS,
    FastDriver,
    told,
)

ORDERS = {quantity.name: quantity.sources for quantity in QUANTITIES.values()}
SENT, RECEIVED = "pcie_transmit_bytes", "pcie_receive_bytes"
SENT_RATE, RECEIVED_RATE = f"{SENT}_per_second", f"{RECEIVED}_per_second"


@pytest.fixture
def driver():
    driver = FastDriver()
    driver.fields = {82: 40, PCIE_TX: 0, PCIE_RX: 0, NVLINK_TX: 0, NVLINK_RX: 0, WATTS: 1}
    return driver


@pytest.fixture
def fast(driver, clock):
    return FastReader(driver, interval_seconds=0.1, monotonic=clock, unwrapped=Unwrapped())


@pytest.fixture
def reader(driver, fast, clock):
    reader = NvmlReader(driver, fast=fast, monotonic=clock)
    reader.start()
    return reader


def values(reader):
    return reader.read().gpus[0].values


def test_a_snapshot_takes_along_what_the_loop_saw_since_the_one_before(driver, reader, fast, clock):
    assert reader.read().flows == ()
    for number in range(11):
        driver.fields[PCIE_TX] = 50 * number
        fast.tick()
        clock.advance(0.1)
    assert told(reader.read().flows)["pcie", "transmit", "counter"] == [(0.1, 50)] * 10
    assert reader.read().flows == ()


def test_a_counter_that_wraps_many_times_between_two_passes_is_still_counted(
    driver, reader, fast, clock
):
    reader.read()
    moved = 0
    for _ in range(10):
        moved += 4 * 10**9  # 40 GB/s
        driver.fields[PCIE_TX] = moved % 2**32
        fast.tick()
        clock.advance(0.1)
    found = values(reader)
    assert found[SENT] == moved
    assert found[SENT_RATE] == pytest.approx(40e9)


def test_a_rate_is_the_mean_since_the_pass_before_and_the_first_pass_has_none(
    driver, reader, clock
):
    assert not values(reader).keys() & {SENT_RATE, RECEIVED_RATE}
    clock.advance(2.0)
    driver.fields |= {PCIE_TX: 3000, PCIE_RX: 10}
    found = values(reader)
    assert (found[SENT_RATE], found[RECEIVED_RATE]) == (1500.0, 5.0)


def test_a_board_that_was_reset_while_it_was_lost_has_not_wrapped(driver, reader, clock):
    driver.fields[PCIE_TX] = 5000
    assert values(reader)[SENT] == 5000
    clock.advance(1.0)
    driver.answers["*", "gpu0"] = NvmlError(GPU_IS_LOST)
    assert reader.read().gpus == ()
    driver.answers.clear()
    clock.advance(1.0)
    driver.fields[PCIE_TX] = 20
    found = values(reader)
    assert found[SENT] == 5000
    assert SENT_RATE not in found
    clock.advance(1.0)
    driver.fields[PCIE_TX] = 50
    found = values(reader)
    assert (found[SENT], found[SENT_RATE]) == (5030, 30.0)


def test_another_number_of_boards_lets_no_window_and_no_wrap_reach_across(
    driver, reader, fast, clock
):
    driver.fields[PCIE_TX] = 5000
    reader.read()
    fast.tick()
    driver.count = 2
    driver.fields[PCIE_TX] = 20
    clock.advance(1.0)
    fast.tick()
    reader.read()
    clock.advance(0.1)
    fast.tick()
    clock.advance(0.1)
    driver.fields[PCIE_TX] = 60
    fast.tick()
    windows = told(tuple(f for f in reader.read().flows if f.channel.device == UUID + "0"))
    assert windows["pcie", "transmit", "counter"] == [(0.1, 40)]


def test_what_gpm_says_of_activity_is_the_mean_since_the_pass_before(driver, reader, clock):
    driver.metrics = {1: 90.0, 2: 45.0, 3: 20.0, 5: 11.0, 10: 30.0, 12: 5.0}
    assert "sm_active_ratio" not in values(reader)
    clock.advance(1.0)
    found = values(reader)
    assert found["engine_active_ratio"] == 0.9
    assert found["sm_active_ratio"] == 0.45
    assert found["tensor_active_ratio"] == 0.11
    assert "fp64_active_ratio" not in found


def test_a_first_sample_is_no_reading_that_was_dropped(driver, reader):
    driver.metrics = {1: 90.0}
    assert reader.read().dropped == {}


def test_a_container_that_may_not_sample_is_told_so_once_a_description(driver, reader):
    driver.answers[GPM, "gpu0"] = NvmlError(NO_PERMISSION)
    assert [reader.read().dropped.get("no_permission") for _ in range(61)] == [
        1,
        *[None] * 59,
        1,
    ]


def test_both_readers_hold_the_lock_while_they_read_a_counter_that_wraps(driver, reader, fast):
    held = []
    answer = driver.call

    def looking(function, *asked):
        if function == FIELDS and {PCIE_TX, PCIE_RX} & set(asked):
            held.append(fast.unwrapped.lock.locked())
        return answer(function, *asked)

    driver.call = looking
    reader.read()
    fast.tick()
    assert held == [True, True]


def test_windows_that_were_too_old_are_counted_as_dropped(reader, fast, clock):
    reader.read()
    for _ in range(605):
        fast.tick()
        clock.advance(0.1)
    assert reader.read().dropped["windows_not_taken"] > 0


@pytest.mark.parametrize(("counted", "told_by_dcgm", "shown"), [(4e9, 0.0, 4e9), (0.0, 4e9, 0.0)])
def test_a_counter_that_stands_still_while_another_source_moves_is_a_disagreement(
    driver, reader, clock, counted, told_by_dcgm, shown
):
    reader.read()
    clock.advance(1.0)
    driver.fields |= {PCIE_TX: counted, PCIE_RX: counted}
    nvml = reader.read()
    page = {SENT_RATE: told_by_dcgm, RECEIVED_RATE: told_by_dcgm}
    dcgm = SourceSnapshot("dcgm", clock(), gpus=(GpuReadings(UUID + "0", values=page),))
    (gpu,) = merge([nvml, dcgm], ORDERS)
    for rate in (SENT_RATE, RECEIVED_RATE):
        assert gpu.disagreement[rate] == 1.0
        assert gpu.value(rate) == shown, "the driver's own counter is believed, right or wrong"
