"""What NVML's ABI carries arrives at the boundary unchanged, errors and faults included."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seedance_obs.sources.nvml.answers import DEVICE_ANSWERS, platform_info
from seedance_obs.sources.nvml.library import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    LIB_RM_VERSION_MISMATCH,
    LIBRARY_NOT_FOUND,
    NOT_FOUND,
    NOT_SUPPORTED,
    TIMEOUT,
    UNINITIALIZED,
    UNKNOWN,
    NvmlError,
)
from seedance_obs.sources.nvml.structures import PlatformInfo2
from tests.nvml_abi.child import BindingInChild, NoAnswerError
from tests.nvml_abi.conftest import StandInMachine
from tests.nvml_abi.machines import MACHINES, machine_library
from tests.nvml_abi.stand_in import environment
from tests.nvml_abi.state_file import Call, calls_of, outcome, state_of

StandIn = Callable[..., StandInMachine]

TWO_GPUS = {
    "nvmlInit -": "0",
    "nvmlDeviceGetCount -": "0 2",
    "nvmlDeviceGetPowerUsage gpu0": "0 70000",
    "nvmlDeviceGetPowerUsage gpu1": "0 71000",
    "nvmlDeviceGetPciInfo_v3 gpu0": "0 00000000:1B:00.0 1 2",
    "nvmlDeviceGetPciInfo_v3 gpu1": "0 00000000:43:00.0 1 2",
}


def code_of(nvml: BindingInChild, function: str, device: str | None = None, *args: int) -> int:
    with pytest.raises(NvmlError) as refused:
        nvml.call(function, device, *args)
    return refused.value.code


def comparable(answer: object) -> object:
    if isinstance(answer, NvmlError):
        return answer.name
    return json.loads(json.dumps(answer))


@pytest.mark.parametrize("driver", ["", "OLD_DRIVER", "NEW_DRIVER"])
@pytest.mark.parametrize("name", MACHINES)
def test_every_call_answers_as_the_machine_does(name: str, driver: str, stand_in: StandIn) -> None:
    truth = machine_library(name)
    machine = stand_in(state_of(truth), driver=driver)
    nvml = machine.binding(initialise=False)
    asked = [("nvmlInit", None, ()), *calls_of(truth)]
    expected = {call: _known_to(driver, call, comparable(outcome(truth, call))) for call in asked}
    assert {call: comparable(outcome(nvml, call)) for call in asked} == expected


NOT_IN_OLD_DRIVERS = (
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetPlatformInfo",
)
HEALTH_OF = {"NEW_DRIVER": {"healthMask", "healthSummary"}, "": {"healthMask"}, "OLD_DRIVER": set()}
FIRST_FIELD_NOT_IN_OLD_DRIVERS = 164


def _known_to(driver: str, call: Call, answer: Any) -> Any:
    """What of a machine's answer a driver of this generation gives."""
    function, device, _ = call
    if function == "nvmlDeviceGetGpuFabricInfoV" and isinstance(answer, dict):
        unknown = {"healthMask", "healthSummary"} - HEALTH_OF[driver]
        return answer | dict.fromkeys(unknown)
    if driver != "OLD_DRIVER" or device is None:
        return answer
    if function in NOT_IN_OLD_DRIVERS:
        return "function_not_found"
    if function == "nvmlDeviceGetFieldValues" and isinstance(answer, list):
        return [_known_field(field) for field in answer]
    return answer


def _known_field(field: dict[str, Any]) -> dict[str, Any]:
    if field["fieldId"] < FIRST_FIELD_NOT_IN_OLD_DRIVERS:
        return field
    return field | {"nvmlReturn": NOT_SUPPORTED, "value": None}


def test_the_machines_between_them_answer_every_function() -> None:
    answered = {
        call[0]
        for library in map(machine_library, MACHINES)
        for call in calls_of(library)
        if not isinstance(outcome(library, call), NvmlError)
    }
    assert answered >= {
        call[0] for library in map(machine_library, MACHINES) for call in calls_of(library)
    }


@pytest.mark.parametrize("code", [DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH])
def test_a_driver_that_cannot_start_says_why(code: int, stand_in: StandIn) -> None:
    nvml = stand_in({"nvmlInit -": str(code)}).binding(initialise=False)
    assert code_of(nvml, "nvmlInit") == code
    assert code_of(nvml, "nvmlDeviceGetCount") == UNINITIALIZED


def test_a_library_that_cannot_be_loaded_is_not_found(tmp_path: Path) -> None:
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_text("not a shared library")
    with BindingInChild(environment(broken, tmp_path / "state")) as nvml:
        assert code_of(nvml, "nvmlInit") == LIBRARY_NOT_FOUND


def test_functions_and_devices_nobody_knows_are_refused(stand_in: StandIn) -> None:
    nvml = stand_in(TWO_GPUS).binding()
    assert code_of(nvml, "nvmlDeviceReset", "gpu0") == FUNCTION_NOT_FOUND
    assert code_of(nvml, "nvmlDeviceGetPowerUsage", "gpu2") == INVALID_ARGUMENT
    assert code_of(nvml, "nvmlDeviceGetPowerUsage", "card0") == INVALID_ARGUMENT
    assert code_of(nvml, "nvmlDeviceGetPowerUsage") == INVALID_ARGUMENT


def test_a_gpu_lost_mid_run_costs_only_itself(stand_in: StandIn) -> None:
    machine = stand_in(TWO_GPUS)
    nvml = machine.binding()
    assert nvml.call("nvmlDeviceGetPowerUsage", "gpu1") == 71000
    machine.write({**TWO_GPUS, "nvmlDeviceGetPowerUsage gpu1": str(GPU_IS_LOST)})
    assert code_of(nvml, "nvmlDeviceGetPowerUsage", "gpu1") == GPU_IS_LOST
    assert nvml.call("nvmlDeviceGetPowerUsage", "gpu0") == 70000


def test_a_process_whose_call_hangs_can_be_killed(stand_in: StandIn) -> None:
    nvml = stand_in({**TWO_GPUS, "nvmlDeviceGetPowerUsage gpu1": "hang"}).binding()
    nvml.ask("nvmlDeviceGetPowerUsage", "gpu1")
    with pytest.raises(NoAnswerError):
        nvml.answer(patience_s=0.2)
    nvml.process.kill()
    assert nvml.process.wait() == -9


def test_each_xid_comes_once_from_the_gpu_that_had_it(stand_in: StandIn) -> None:
    events = {"nvmlEventSetWait - 0": "0 gpu1 79", "nvmlEventSetWait - 1": "0 gpu0 31"}
    nvml = stand_in({**TWO_GPUS, **events}).binding()
    assert nvml.call("nvmlEventSetWait") == {"device": "gpu1", "xid": 79}
    assert nvml.call("nvmlEventSetWait") == {"device": "gpu0", "xid": 31}
    assert code_of(nvml, "nvmlEventSetWait") == TIMEOUT


def test_an_xid_after_the_first_look_is_seen(stand_in: StandIn) -> None:
    machine = stand_in(TWO_GPUS)
    nvml = machine.binding()
    assert code_of(nvml, "nvmlEventSetWait") == TIMEOUT
    machine.write({**TWO_GPUS, "nvmlEventSetWait - 0": "0 gpu0 119"})
    assert nvml.call("nvmlEventSetWait") == {"device": "gpu0", "xid": 119}


def test_the_xid_of_a_gpu_that_fell_off_the_bus_names_it(stand_in: StandIn) -> None:
    lost = {"nvmlDeviceGetPciInfo_v3 gpu1": str(GPU_IS_LOST)}
    nvml = stand_in({**TWO_GPUS, **lost, "nvmlEventSetWait - 0": "0 gpu1 79"}).binding()
    assert nvml.call("nvmlEventSetWait") == {"device": "gpu1", "xid": 79}


def test_a_gpu_that_refuses_events_costs_only_its_own(stand_in: StandIn) -> None:
    refused = {"nvmlDeviceRegisterEvents gpu0": "4"}
    events = {"nvmlEventSetWait - 0": "0 gpu0 31", "nvmlEventSetWait - 1": "0 gpu1 48"}
    nvml = stand_in({**TWO_GPUS, **refused, **events}).binding()
    assert nvml.call("nvmlEventSetWait") == {"device": "gpu1", "xid": 48}


def test_after_shutdown_nothing_answers_until_the_next_start(stand_in: StandIn) -> None:
    nvml = stand_in({**TWO_GPUS, "nvmlEventSetWait - 0": "0 gpu1 79"}).binding()
    nvml.call("nvmlEventSetWait")
    assert nvml.call("nvmlDeviceGetPowerUsage", "gpu0") == 70000
    nvml.call("nvmlShutdown")  # refused while an event set is open
    assert code_of(nvml, "nvmlDeviceGetPowerUsage", "gpu0") == UNINITIALIZED
    nvml.call("nvmlInit")
    assert nvml.call("nvmlDeviceGetPowerUsage", "gpu0") == 70000
    # A new event set starts from its own beginning.
    assert nvml.call("nvmlEventSetWait") == {"device": "gpu1", "xid": 79}


def test_mig_devices_follow_the_partitions_of_the_moment(stand_in: StandIn) -> None:
    first = {**TWO_GPUS, "nvmlDeviceGetMigDeviceHandleByIndex gpu0 1": "0"}
    named = {**first, "nvmlDeviceGetUUID gpu0/mig1": "0 MIG-1"}
    machine = stand_in(named)
    nvml = machine.binding()
    assert nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", "gpu0", 1) == "gpu0/mig1"
    assert nvml.call("nvmlDeviceGetUUID", "gpu0/mig1") == "MIG-1"
    machine.write({**TWO_GPUS, "nvmlDeviceGetMigDeviceHandleByIndex gpu0 1": str(NOT_FOUND)})
    assert code_of(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", "gpu0", 1) == NOT_FOUND
    assert code_of(nvml, "nvmlDeviceGetUUID", "gpu0/mig1") == NOT_FOUND


@pytest.mark.parametrize(
    ("field", "value"),  # field: its own code, type, value
    [
        ("0 0 2.5", 2.5),
        ("0 1 4294967295", 2**32 - 1),
        ("0 2 18446744073709551615", 2**64 - 1),
        ("0 3 18446744073709551615", 2**64 - 1),
        ("0 4 -9", -9),
        ("0 5 -40", -40),
        ("0 6 65535", 65535),
        ("0 7 1", None),  # a type of the future
        ("3 1 77", None),
    ],
)
def test_field_values_are_read_by_their_type(
    field: str, value: float | None, stand_in: StandIn
) -> None:
    key = "nvmlDeviceGetFieldValues gpu0"
    nvml = stand_in({**TWO_GPUS, f"{key} 82": f"0 {field}", f"{key} 5": "0 0 1 5"}).binding()
    answer = nvml.call("nvmlDeviceGetFieldValues", "gpu0", 82, 5)
    code = NOT_SUPPORTED if field.startswith("3") else 0
    assert answer == [
        {"fieldId": 82, "scopeId": 0, "nvmlReturn": code, "value": value},
        {"fieldId": 5, "scopeId": 0, "nvmlReturn": 0, "value": 5},
    ]


def test_a_field_is_asked_of_the_link_that_its_upper_half_names(stand_in: StandIn) -> None:
    first, ninth = 165, 165 | 9 << 32
    key = "nvmlDeviceGetFieldValues gpu0"
    lines = {**TWO_GPUS, f"{key} {first}": "0 0 1 1", f"{key} {ninth}": "0 0 1 2"}
    answer = stand_in(lines).binding().call("nvmlDeviceGetFieldValues", "gpu0", ninth, first)
    assert answer == [
        {"fieldId": 165, "scopeId": 9, "nvmlReturn": 0, "value": 2},
        {"fieldId": 165, "scopeId": 0, "nvmlReturn": 0, "value": 1},
    ]


def test_a_pair_with_a_gpu_that_is_lost_or_is_not_there_is_refused(stand_in: StandIn) -> None:
    function = "nvmlDeviceGetTopologyCommonAncestor"
    lines = {**TWO_GPUS, f"{function} gpu0 1": "0 50"}
    machine = stand_in(lines)
    nvml = machine.binding()
    assert nvml.call(function, "gpu0", 1) == 50
    assert code_of(nvml, function, "gpu0", 2) == INVALID_ARGUMENT
    machine.write({**lines, f"{function} gpu0 1": str(GPU_IS_LOST)})
    assert code_of(nvml, function, "gpu0", 1) == GPU_IS_LOST


@pytest.mark.parametrize(
    ("serial", "text"),
    [(b"1820325190512", "1820325190512"), (b"\x01\xff", "01ff"), (b"", ""), (b"A" * 16, "A" * 16)],
)
def test_a_chassis_serial_that_is_no_text_is_hex_digits(serial: bytes, text: str) -> None:
    info = PlatformInfo2()
    info.chassisSerialNumber[: len(serial)] = serial
    info.moduleId = 4
    answer = platform_info(info)
    assert isinstance(answer, dict)
    assert (answer["chassisSerialNumber"], answer["moduleId"]) == (text, 4)


def test_a_text_that_is_none_is_an_error_of_its_own_call(stand_in: StandIn) -> None:
    names = {"nvmlDeviceGetName gpu0": "0 NVIDIA \udcff", "nvmlDeviceGetName gpu1": "0 NVIDIA"}
    nvml = stand_in({**TWO_GPUS, **names}).binding()
    assert code_of(nvml, "nvmlDeviceGetName", "gpu0") == UNKNOWN
    assert nvml.call("nvmlDeviceGetName", "gpu1") == "NVIDIA"


@pytest.mark.parametrize("memory", [None, 2**64 - 1])
def test_memory_that_a_binding_leaves_undecoded_is_unknown(memory: int | None) -> None:
    process = SimpleNamespace(
        pid=7, usedGpuMemory=memory, gpuInstanceId=2**32 - 1, computeInstanceId=0
    )
    assert DEVICE_ANSWERS["nvmlDeviceGetComputeRunningProcesses"]([process]) == [
        {"pid": 7, "usedGpuMemory": None, "gpuInstanceId": None, "computeInstanceId": 0}
    ]


def test_loading_the_package_does_not_load_the_binding() -> None:
    check = "import sys, seedance_obs.sources.nvml.binding; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
