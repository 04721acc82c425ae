"""nvitop reads the same NVML library by itself; where both of us know a quantity, we agree."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary
from tests.nvml_abi.conftest import StandInMachine
from tests.nvml_abi.machines import WITH_GPUS, machine_library
from tests.nvml_abi.nvitop_reader import nvitop_readings
from tests.nvml_abi.state_file import outcome, state_of

StandIn = Callable[..., StandInMachine]

# Our quantity: the call, its arguments, the answer's member, the unit's factor.
OURS: dict[str, tuple[str, tuple[int, ...], str | int | None, float]] = {
    "utilization_ratio": ("nvmlDeviceGetUtilizationRates", (), "gpu", 0.01),
    "memory_busy_ratio": ("nvmlDeviceGetUtilizationRates", (), "memory", 0.01),
    "encoder_utilization_ratio": ("nvmlDeviceGetEncoderUtilization", (), 0, 0.01),
    "decoder_utilization_ratio": ("nvmlDeviceGetDecoderUtilization", (), 0, 0.01),
    "fan_speed_ratio": ("nvmlDeviceGetFanSpeed", (), None, 0.01),
    "memory_total_bytes": ("nvmlDeviceGetMemoryInfo_v2", (), "total", 1),
    "memory_used_bytes": ("nvmlDeviceGetMemoryInfo_v2", (), "used", 1),
    "memory_free_bytes": ("nvmlDeviceGetMemoryInfo_v2", (), "free", 1),
    "power_watts": ("nvmlDeviceGetPowerUsage", (), None, 1e-3),
    "power_limit_watts": ("nvmlDeviceGetEnforcedPowerLimit", (), None, 1e-3),
    "temperature_gpu_celsius": ("nvmlDeviceGetTemperature", (0,), None, 1),
    "clock_graphics_hertz": ("nvmlDeviceGetClockInfo", (0,), None, 1e6),
    "clock_sm_hertz": ("nvmlDeviceGetClockInfo", (1,), None, 1e6),
    "clock_memory_hertz": ("nvmlDeviceGetClockInfo", (2,), None, 1e6),
    "clock_video_hertz": ("nvmlDeviceGetClockInfo", (3,), None, 1e6),
    "ecc_uncorrected_volatile": ("nvmlDeviceGetTotalEccErrors", (1, 0), None, 1),
    "performance_state": ("nvmlDeviceGetPerformanceState", (), None, 1),
}
FACTS: dict[str, tuple[str, tuple[int, ...], str | None, float]] = {
    "model": ("nvmlDeviceGetName", (), None, 1),
    "pci_bus_id": ("nvmlDeviceGetPciInfo_v3", (), "busId", 1),
    "serial": ("nvmlDeviceGetSerial", (), None, 1),
}
OURS_OF_MIG = {name: OURS[name] for name in OURS if name.startswith("memory_") and "bytes" in name}


def our_values(
    nvml: NvmlLibrary, device: str, table: Mapping[str, tuple[str, tuple[int, ...], Any, float]]
) -> dict[str, float]:
    values = {}
    for name, (function, args, member, factor) in table.items():
        try:
            answer: Any = nvml.call(function, device, *args)
        except NvmlError:
            continue
        values[name] = (answer if member is None else answer[member]) * factor
    return values


def boards_of(nvml: NvmlLibrary) -> dict[str, str]:
    """Each board that still answers, by UUID."""
    devices = [f"gpu{index}" for index in range(int(str(nvml.call("nvmlDeviceGetCount"))))]
    uuids = {device: outcome(nvml, ("nvmlDeviceGetUUID", device, ())) for device in devices}
    return {str(uuid): device for device, uuid in uuids.items() if isinstance(uuid, str)}


@pytest.mark.parametrize("name", WITH_GPUS)
def test_boards_agree(name: str, stand_in: StandIn) -> None:
    machine = stand_in(state_of(machine_library(name)))
    nvml, theirs = machine.binding(), nvitop_readings(machine.environment)
    ours = {uuid: our_values(nvml, device, OURS) for uuid, device in boards_of(nvml).items()}
    assert {uuid: board["values"] for uuid, board in theirs.items()} == ours
    assert min(map(len, ours.values())) > 8
    facts = {uuid: our_values(nvml, device, FACTS) for uuid, device in boards_of(nvml).items()}
    assert {uuid: board["facts"] for uuid, board in theirs.items()} == facts


@pytest.mark.parametrize("name", WITH_GPUS)
def test_processes_agree(name: str, stand_in: StandIn) -> None:
    machine = stand_in(state_of(machine_library(name)))
    nvml, theirs = machine.binding(), nvitop_readings(machine.environment)
    ours = {}
    for uuid, device in boards_of(nvml).items():
        processes: Any = nvml.call("nvmlDeviceGetComputeRunningProcesses", device)
        ours[uuid] = {str(process["pid"]): process["usedGpuMemory"] for process in processes}
    assert {uuid: board["processes"] for uuid, board in theirs.items()} == ours


def test_mig_instances_agree(stand_in: StandIn) -> None:
    machine = stand_in(state_of(machine_library("h100-mig")))
    nvml, theirs = machine.binding(), nvitop_readings(machine.environment)
    found = 0
    for board in theirs.values():
        for instance, device in zip(board["mig"], _instances(nvml, board["index"]), strict=True):
            assert instance["uuid"] == nvml.call("nvmlDeviceGetUUID", device)
            assert instance["gpu_instance"] == nvml.call("nvmlDeviceGetGpuInstanceId", device)
            assert instance["values"] == our_values(nvml, device, OURS_OF_MIG)
            found += 1
    assert found > 1


def _instances(nvml: NvmlLibrary, index: int) -> list[str]:
    gpu, handle = f"gpu{index}", "nvmlDeviceGetMigDeviceHandleByIndex"
    slots = range(int(str(nvml.call("nvmlDeviceGetMaxMigDeviceCount", gpu))))
    answers = [outcome(nvml, (handle, gpu, (slot,))) for slot in slots]
    return [answer for answer in answers if isinstance(answer, str)]
