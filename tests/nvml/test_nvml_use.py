"""What the reader makes of utilisation samples, byte counters and vGPUs, and of lies in them."""

from pathlib import Path

import pytest

from seedance_obs.sources.nvml.library import (
    GPU_IS_LOST,
    NOT_FOUND,
    NOT_SUPPORTED,
    TIMEOUT,
    UNKNOWN,
    NvmlError,
)
from seedance_obs.sources.nvml.reader import STATIC_PASSES, NvmlReader
from seedance_obs.sources.nvml.samples import QUIET_PASSES
from seedance_obs.sources.readings import ProcessUse, VgpuInstance
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.physics import Board, boards, runs_between

QUARTERS = Path(__file__).parent.parent / "nvml_abi/a30-mig.yaml"
USE = "nvmlDeviceGetProcessUtilization"
FIELDS = "nvmlDeviceGetFieldValues"
UUID = "GPU-00000000-0000-0000-0000-000000000000"
BASE = 10**15


class Driver:
    """One board. Samples are given as a real driver does: those newer than the time asked for."""

    def __init__(self):
        self.answers = {"nvmlDeviceGetCount": 1, "nvmlDeviceGetUUID": UUID}
        self.samples = []
        self.calls = []

    def call(self, function, device=None, *args):
        self.calls.append((function, device, *args))
        if function in ("nvmlInit", "nvmlShutdown"):
            return None
        if function == "nvmlEventSetWait":
            raise NvmlError(TIMEOUT)
        refusal = NvmlError(NOT_SUPPORTED)
        answer = self.answers.get((function, *args), self.answers.get(function, refusal))
        if function == USE and function not in self.answers:
            answer = [one for one in self.samples if one["timeStamp"] > args[0]] or (
                NvmlError(NOT_FOUND)
            )
        if isinstance(answer, NvmlError):
            raise answer
        return answer


def sample(pid, at_s, sm, memory=0, encoder=0, decoder=0, *, base=BASE):
    at_us = base + round(at_s * 1e6)
    parts = {"smUtil": sm, "memUtil": memory, "encUtil": encoder, "decUtil": decoder}
    return {"pid": pid, "timeStamp": at_us, **parts}


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def reader(driver, clock):
    reader = NvmlReader(driver, monotonic=clock)
    reader.start()
    return reader


def passed(reader, clock, seconds=1.0):
    clock.advance(seconds)
    return reader.read().gpus[0].process_use


def ratios(use):
    return {one.pid: one.sm_ratio for one in use}


def test_the_first_pass_tells_nothing_for_there_was_none_before(driver, reader):
    driver.samples = [sample(7, -1.0, 90)]
    assert reader.read().gpus[0].process_use is None


def test_single_samples_are_averaged_over_all_periods_of_the_pass(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, n / 6, 60, 30, 12, 6) for n in range(1, 7)]
    driver.samples += [sample(8, n / 6, 40, 5) for n in range(1, 4)]
    assert passed(reader, clock) == (
        ProcessUse(7, pytest.approx(0.6), pytest.approx(0.3), 0.12, 0.06),
        ProcessUse(8, pytest.approx(0.2), pytest.approx(0.025), 0.0, 0.0),
    )


def test_periods_in_which_the_board_was_empty_count_as_idle(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, n / 6, 100) for n in range(1, 7)]
    passed(reader, clock)
    driver.samples.append(sample(8, 1 + 1 / 6, 100))
    assert ratios(passed(reader, clock)) == {8: pytest.approx(1 / 5)}


def test_one_sample_fewer_than_periods_is_no_idleness(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, n / 6, 100) for n in range(1, 7)]
    passed(reader, clock)
    driver.samples += [sample(7, n / 6, 100) for n in range(7, 12)]
    assert ratios(passed(reader, clock)) == {7: 1.0}
    driver.samples += [sample(7, n / 6, 100) for n in range(12, 19)]
    assert ratios(passed(reader, clock)) == {7: 1.0}


def test_means_of_the_driver_are_taken_as_they_are_whatever_their_stamps(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, 0.3, 25), sample(8, 0.9, 50), sample(9, 0.7, 5)]
    assert ratios(passed(reader, clock)) == {7: 0.25, 8: 0.5, 9: 0.05}


def test_two_entries_of_one_moment_are_no_sampling_period(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, 0.5, 20), sample(7, 0.500_02, 40), sample(8, 0.7, 10)]
    assert ratios(passed(reader, clock)) == {7: pytest.approx(0.3), 8: 0.1}


def test_no_sample_is_taken_twice(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, 0.9, 25)]
    assert ratios(passed(reader, clock)) == {7: 0.25}
    assert passed(reader, clock) == ()
    driver.samples.append(sample(7, 2.9, 35))
    assert ratios(passed(reader, clock)) == {7: 0.35}
    assert (USE, "gpu0", driver.samples[0]["timeStamp"]) in driver.calls


def test_no_sample_is_lost_while_the_call_fails(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, n / 6, 100) for n in range(1, 7)]
    driver.answers[USE] = NvmlError(UNKNOWN)
    assert passed(reader, clock) is None
    del driver.answers[USE]
    driver.samples += [sample(8, n / 6, 100) for n in range(7, 13)]
    assert ratios(passed(reader, clock)) == {7: 0.5, 8: 0.5}


def test_no_newer_sample_is_an_idle_board_and_no_support_is_unknown(driver, reader, clock):
    reader.read()
    assert passed(reader, clock) == ()
    driver.answers[USE] = NvmlError(NOT_SUPPORTED)
    assert passed(reader, clock) is None
    asked = len([call for call in driver.calls if call[0] == USE])
    assert passed(reader, clock) is None
    assert len([call for call in driver.calls if call[0] == USE]) == asked, "asked no more"


def test_what_was_taken_is_remembered_when_the_board_is_described_anew(driver, reader, clock):
    driver.samples = [sample(7, 0.0, 90)]
    for _ in range(STATIC_PASSES):
        reader.read()
    assert passed(reader, clock) == ()


@pytest.mark.parametrize(
    "garbage",
    [
        sample(0, 0.4, 5),
        sample(2**32 - 1, 0.4, 5),
        sample(9, 0.4, 0) | {"timeStamp": 0},
        sample(9, 0.4, 101),
        sample(9, 0.4, 2**32 - 1),
    ],
)
def test_entries_that_nobody_filled_in_cost_themselves(driver, reader, clock, garbage):
    reader.read()
    driver.answers[USE] = [garbage, sample(7, 0.5, 30), garbage]
    assert ratios(passed(reader, clock)) == {7: 0.3}


def test_a_share_of_memory_time_that_cannot_be_is_unknown_alone(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, 0.5, 30, memory=2_000_000, encoder=4)]
    assert passed(reader, clock) == (ProcessUse(7, 0.3, None, 0.04, 0.0),)


def test_impossible_shares_are_counted(driver, reader, clock):
    reader.read()
    driver.samples = [sample(7, 0.5, 1000)]
    clock.advance(1.0)
    assert reader.read().dropped == {"out_of_range": 1}


def test_a_clock_that_is_set_back_silences_a_board_for_a_while_only(driver, reader, clock):
    driver.samples = [sample(7, 0.0, 50)]
    reader.read()
    earlier = BASE - 3_600_000_000
    driver.samples = []
    for second in range(1, QUIET_PASSES + 2):
        driver.samples = [sample(7, second, 50, base=earlier)]
        assert passed(reader, clock) == ()
    driver.samples = [sample(7, QUIET_PASSES + 2, 50, base=earlier)]
    assert ratios(passed(reader, clock)) == {7: 0.5}


def test_a_lost_board_is_lost_whatever_it_is_asked(driver, reader, clock):
    reader.read()
    driver.answers[USE] = NvmlError(GPU_IS_LOST)
    clock.advance(1.0)
    snapshot = reader.read()
    assert (snapshot.gpus, snapshot.dropped) == ((), {"gpu_is_lost": 1})


# ---- a simulated board, one pass a second ----


def read_by_seconds(machine, seconds, clock):
    """The reader's snapshots at each second, the simulated machine's clock being the test's."""
    start = clock()
    library = SimNvml(machine, lambda: clock() - start)
    reader = NvmlReader(library, monotonic=clock)
    reader.start()
    for _ in range(seconds):
        clock.advance(1.0)
        yield reader.read()


@pytest.mark.parametrize("name", ["a100-pcie", "h100-nvswitch", QUARTERS])
def test_over_time_each_process_has_used_what_it_did(clock, name):
    machine = load_machine(name)
    found = {}
    for snapshot in read_by_seconds(machine, 31, clock):
        for gpu in snapshot.gpus:
            for use in gpu.process_use or ():
                key = gpu.uuid, use.pid
                found[key] = found.get(key, 0.0) + use.sm_ratio
    expected = {}
    for board in boards(machine):
        if not board.gpu.mig and board.lost_at > 31:
            expected |= _busy_seconds(board, 1.0, 31.0)
    assert expected
    for key, seconds in expected.items():
        assert found.get(key, 0.0) == pytest.approx(seconds, rel=0.01, abs=0.2), key


def _busy_seconds(board: Board, t0, t1):
    return {
        (
            board.machine.gpu_uuid(board.gpu.index),
            board.machine.pid(held.workload, run, held.rank),
        ): (held.weight * mean * (t1 - t0))
        for held in board.holdings
        for run, mean in runs_between(held, t0, t1)
    }


# ---- byte counters ----


def fields(*values):
    return [{"fieldId": 0, "scopeId": 0, "nvmlReturn": 0, "value": value} for value in values]


def counted(driver, reader, *values):
    driver.answers[FIELDS] = fields(*values)
    found = reader.read().gpus[0].values
    return [found.get(f"{link}_{way}_bytes") for link in ("pcie", "nvlink") for way in WAYS]


WAYS = ("transmit", "receive")


def test_byte_counters_are_in_bytes_and_cost_no_call_of_their_own(driver, reader):
    assert counted(driver, reader, 61, 10, 20, 3, 4) == [10, 20, 3072, 4096]
    assert counted(driver, reader, None, None, 21, None, 5) == [None, 21, None, 5120]
    driver.calls.clear()
    assert counted(driver, reader, 61, 11, 22, 3, 4) == [11, 22, 3072, 4096]
    assert [call[0] for call in driver.calls].count(FIELDS) == 2  # and which links are up


@pytest.mark.parametrize("action", [0, 4, 9, None])
def test_the_recovery_action_comes_with_the_byte_counters(driver, reader, action):
    driver.answers[FIELDS] = fields(61, 0, 0, 0, 0, action)
    assert reader.read().gpus[0].values.get("recovery_action") == action


def test_a_pcie_counter_that_wraps_goes_on(driver, reader):
    assert counted(driver, reader, 61, 2**32 - 10, 5, 0, 0)[:2] == [2**32 - 10, 5]
    assert counted(driver, reader, 61, 90, 6, 0, 0)[:2] == [2**32 + 90, 6]
    assert counted(driver, reader, 61, 80, 6, 0, 0)[:2] == [2**33 + 80, 6]


def test_a_wide_counter_that_goes_back_has_begun_again(driver, reader):
    assert counted(driver, reader, 61, 2**40, 0, 0, 0)[0] == 2**40
    assert counted(driver, reader, 61, 100, 0, 0, 0)[0] == 2**40 + 100


# ---- vGPUs ----

VGPU_USE = "nvmlDeviceGetVgpuUtilization"


def vgpu_sample(instance, at_s, sm):
    return {"vgpuInstance": instance, **sample(0, at_s, sm)}


@pytest.fixture
def host(driver):
    driver.answers |= {
        "nvmlDeviceGetVirtualizationMode": 3,
        "nvmlDeviceGetActiveVgpus": [3001, 3002],
        "nvmlVgpuInstanceGetVmID": NvmlError(UNKNOWN),
        ("nvmlVgpuInstanceGetVmID", 3001): "vm-17",
        ("nvmlVgpuInstanceGetUUID", 3001): "C0FFEE00-0000-4000-8000-000000003001",
        ("nvmlVgpuInstanceGetUUID", 3002): "c0ffee00-0000-4000-8000-000000003002",
        ("nvmlVgpuInstanceGetFbUsage", 3001): 2**33,
        VGPU_USE: NvmlError(NOT_FOUND),
    }
    return driver


def test_a_vgpu_host_tells_who_uses_what(host, reader, clock):
    first, second = "c0ffee00-0000-4000-8000-000000003001", "c0ffee00-0000-4000-8000-000000003002"
    assert reader.read().gpus[0].vgpus == (
        VgpuInstance(first, "vm-17", 2**33, None),
        VgpuInstance(second, None, None, None),
    )
    host.answers[VGPU_USE] = [vgpu_sample(3001, 0.5, 40)]
    clock.advance(1.0)
    assert [vgpu.sm_ratio for vgpu in reader.read().gpus[0].vgpus] == [0.4, 0.0]


def test_a_vgpu_that_went_away_costs_itself(host, reader):
    host.answers["nvmlVgpuInstanceGetUUID", 3002] = NvmlError(NOT_FOUND)
    assert [vgpu.vm_id for vgpu in reader.read().gpus[0].vgpus] == ["vm-17"]
    host.answers["nvmlDeviceGetActiveVgpus"] = []
    assert reader.read().gpus[0].vgpus == ()


def test_other_boards_are_not_asked_for_vgpus(host, reader):
    host.answers["nvmlDeviceGetVirtualizationMode"] = 1
    assert reader.read().gpus[0].vgpus is None
    assert not [call for call in host.calls if "Vgpu" in call[0]]
