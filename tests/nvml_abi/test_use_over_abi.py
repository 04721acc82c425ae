"""Process use, MIG sizes and vGPUs are the same read over NVML's ABI as asked of the machine."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from seedance_obs.sources.nvml.driver_samples import process_samples
from seedance_obs.sources.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_SUPPORTED,
    UNKNOWN,
    NvmlError,
    NvmlLibrary,
)
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.readings import GpuReadings
from tests.nvml_abi.conftest import StandInMachine
from tests.nvml_abi.machines import QUARTERS, TRAPS, machine_library
from tests.nvml_abi.state_file import state_of

StandIn = Callable[..., StandInMachine]
NEWER, OLDER = "nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"


class Moving:
    """The library of a machine whose time goes on, over which a reader stays open."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.at_s = 10.0

    def call(self, function: str, device: str | None = None, *args: int) -> Any:
        return machine_library(self.name, at_s=self.at_s).call(function, device, *args)


def started(library: NvmlLibrary, seconds: Callable[[], float]) -> NvmlReader:
    reader = NvmlReader(library, monotonic=seconds)
    reader.start()
    return reader


def told(gpu: GpuReadings) -> tuple[object, ...]:
    bytes_moved = {name: value for name, value in gpu.values.items() if name.endswith("e_bytes")}
    return (gpu.process_use, gpu.processes, gpu.mig, gpu.mig_slices, gpu.vgpus, bytes_moved)


@pytest.mark.parametrize("driver", ["", "NEW_DRIVER"])
@pytest.mark.parametrize("name", ["a100-pcie", "h100-mig", QUARTERS, TRAPS])
def test_two_passes_over_the_abi_read_what_the_machine_says(
    name: str, driver: str, stand_in: StandIn
) -> None:
    truth = Moving(name)
    machine = stand_in(state_of(machine_library(name, at_s=10.0)), driver=driver)
    ours = started(machine.binding(initialise=False), lambda: truth.at_s)
    theirs = started(truth, lambda: truth.at_s)
    found: list[GpuReadings] = []
    for truth.at_s in (10.0, 11.0):
        machine.write(state_of(machine_library(name, at_s=truth.at_s)))
        found, expected = list(ours.read().gpus), theirs.read().gpus
        assert [told(gpu) for gpu in found] == [told(gpu) for gpu in expected]
    assert any(gpu.process_use is not None for gpu in found) or name == "h100-mig"


def test_an_old_driver_has_the_older_call_for_processes(stand_in: StandIn) -> None:
    machine = stand_in(state_of(machine_library("a100-pcie")), driver="OLD_DRIVER")
    samples = machine.binding().call(OLDER, "gpu2", 0)
    assert samples == machine_library("a100-pcie").call(OLDER, "gpu2", 0)
    assert isinstance(samples, list)
    assert samples


class Driver:
    """Answers each function with a code, or fills in two samples."""

    def __init__(self, codes: dict[str, int], *, grows: int = 0) -> None:
        self.codes = codes
        self.grows = grows
        self.rooms: list[int] = []

    def __call__(self, function: str, _handle: object, *args: Any) -> int:
        if function in self.codes:
            return self.codes[function]
        if function == NEWER:
            asked = args[0]._obj
            room, samples = asked.processSamplesCount, asked.procUtilArray
        else:
            asked, samples = args[1]._obj, args[0]
            room = asked.value
        self.rooms.append(room)
        count = 2
        if self.grows:
            self.grows -= 1
            count = room + 5
        if function == NEWER:
            asked.processSamplesCount = count
        else:
            ctypes.memmove(ctypes.byref(asked), ctypes.byref(ctypes.c_uint(count)), 4)
        if count > room:
            return INSUFFICIENT_SIZE
        for index in range(count):
            samples[index].pid, samples[index].timeStamp = 7 + index, 10**15
        return 0


def pids(answer: Any) -> list[int]:
    return [sample["pid"] for sample in answer]


@pytest.mark.parametrize("code", [FUNCTION_NOT_FOUND, NOT_SUPPORTED, ARGUMENT_VERSION_MISMATCH])
def test_the_older_call_answers_where_the_newer_does_not(code: int) -> None:
    assert pids(process_samples(Driver({NEWER: code}), None, 0)) == [7, 8]
    assert pids(process_samples(Driver({OLDER: code}), None, 0)) == [7, 8]


@pytest.mark.parametrize(
    ("newer", "older", "told_code"),
    [
        (NOT_SUPPORTED, FUNCTION_NOT_FOUND, NOT_SUPPORTED),
        (FUNCTION_NOT_FOUND, NOT_SUPPORTED, NOT_SUPPORTED),
        (FUNCTION_NOT_FOUND, FUNCTION_NOT_FOUND, FUNCTION_NOT_FOUND),
        (UNKNOWN, NOT_SUPPORTED, UNKNOWN),
    ],
)
def test_of_two_refusals_the_telling_one_is_raised(newer: int, older: int, told_code: int) -> None:
    with pytest.raises(NvmlError) as refused:
        process_samples(Driver({NEWER: newer, OLDER: older}), None, 0)
    assert refused.value.code == told_code


@pytest.mark.parametrize("without", [NEWER, OLDER])
def test_samples_that_appear_between_two_tries_find_room(without: str) -> None:
    driver = Driver({without: FUNCTION_NOT_FOUND}, grows=2)
    assert pids(process_samples(driver, None, 0)) == [7, 8]
    assert driver.rooms == sorted(set(driver.rooms)), "each try has more room"
    with pytest.raises(NvmlError, match="insufficient_size"):
        process_samples(Driver({without: FUNCTION_NOT_FOUND}, grows=9), None, 0)
