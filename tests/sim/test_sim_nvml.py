"""The simulator answers NVML calls in the shapes and with the refusals of a driver."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from one_gpu import machine_with

from seedance_obs.sources.nvml.library import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    LIBRARY_NOT_FOUND,
    NOT_FOUND,
    NOT_SUPPORTED,
    TIMEOUT,
    UNINITIALIZED,
    NvmlError,
    Plain,
)
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine

WITH_GPUS = [name for name in machine_names() if name != "no-gpu"]
MIB = 2**20


class Clock:
    def __init__(self, t: float = 20.0) -> None:
        self.t = t

    def __call__(self) -> float:
        return self.t


def opened(machine: Machine | str, t: float = 20.0) -> SimNvml:
    library = SimNvml(load_machine(machine) if isinstance(machine, str) else machine, Clock(t))
    library.call("nvmlInit")
    return library


def answer(library: SimNvml, function: str, device: str | None, *args: int) -> Any:
    """The answer, or the error code as `("error", code)`."""
    try:
        return library.call(function, device, *args)
    except NvmlError as error:
        return "error", error.code


def is_count(value: Plain) -> bool:
    return type(value) is int and value >= 0


def is_text(value: Plain) -> bool:
    return isinstance(value, str) and value != ""


def is_percent(value: Plain) -> bool:
    return is_count(value) and value <= 100


def has(*keys: str) -> Callable[[Any], bool]:
    return lambda value: set(value) == set(keys) and all(is_count(value[key]) for key in keys)


def is_pci(value: Any) -> bool:
    return len(value["busId"]) == 16 and is_count(value["pciDeviceId"])


def is_processes(value: Any) -> bool:
    keys = {"pid", "usedGpuMemory", "gpuInstanceId", "computeInstanceId"}
    return all(set(process) == keys and process["pid"] > 0 for process in value)


def is_list_of(check: Callable[[Any], bool], length: int) -> Callable[[Any], bool]:
    return lambda value: len(value) == length and all(check(item) for item in value)


def is_fabric(value: Any) -> bool:
    return len(value["clusterUuid"]) == 32 and set(value) == {
        "clusterUuid",
        "cliqueId",
        "state",
        "status",
        "healthMask",
        "healthSummary",
    }


def is_field(value: Any) -> bool:
    known = value["nvmlReturn"] == 0
    return known == (value["value"] is not None) and value["scopeId"] == 0


def is_mask(value: Any) -> bool:
    return all(is_count(word) and word < 2**64 for word in value) and bool(value[-1])


PROFILE = ("id", "sliceCount", "instanceCount", "multiprocessorCount", "memorySizeMB")


def is_use(value: Any) -> bool:
    parts = ("smUtil", "memUtil", "encUtil", "decUtil")
    return all(
        set(sample) == {"pid", "timeStamp", *parts}
        and sample["pid"] > 0
        and all(is_percent(sample[part]) for part in parts)
        for sample in value
    )


def is_platform(value: Any) -> bool:
    numbers = {"slotNumber", "trayIndex", "hostId", "peerType", "moduleId"}
    return set(value) == {"chassisSerialNumber", *numbers} and all(
        is_count(value[name]) for name in numbers
    )


BOARD_SHAPES: dict[str, tuple[tuple[int, ...], Callable[[Any], bool]]] = {
    "nvmlDeviceGetUUID": ((), lambda value: value.startswith("GPU-")),
    "nvmlDeviceGetName": ((), is_text),
    "nvmlDeviceGetSerial": ((), is_text),
    "nvmlDeviceGetMinorNumber": ((), is_count),
    "nvmlDeviceGetVbiosVersion": ((), is_text),
    "nvmlDeviceGetPciInfo_v3": ((), is_pci),
    "nvmlDeviceGetCudaComputeCapability": ((), is_list_of(is_count, 2)),
    "nvmlDeviceGetMaxPcieLinkGeneration": ((), is_count),
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": ((), is_count),
    "nvmlDeviceGetMaxPcieLinkWidth": ((), is_count),
    "nvmlDeviceGetCurrPcieLinkGeneration": ((), is_count),
    "nvmlDeviceGetCurrPcieLinkWidth": ((), is_count),
    "nvmlDeviceGetPcieReplayCounter": ((), is_count),
    "nvmlDeviceGetUtilizationRates": ((), has("gpu", "memory")),
    "nvmlDeviceGetEncoderUtilization": ((), is_list_of(is_count, 2)),
    "nvmlDeviceGetDecoderUtilization": ((), is_list_of(is_count, 2)),
    "nvmlDeviceGetMemoryInfo": ((), has("total", "free", "used")),
    "nvmlDeviceGetMemoryInfo_v2": ((), has("total", "reserved", "free", "used")),
    "nvmlDeviceGetPcieThroughput": ((1,), is_count),
    "nvmlDeviceGetPowerUsage": ((), is_count),
    "nvmlDeviceGetEnforcedPowerLimit": ((), is_count),
    "nvmlDeviceGetTotalEnergyConsumption": ((), is_count),
    "nvmlDeviceGetTemperature": ((0,), is_count),
    "nvmlDeviceGetFieldValues": ((82, 90, 91, 186, 197, 198, 230, 9999), is_list_of(is_field, 8)),
    "nvmlDeviceGetProcessUtilization": ((0,), is_use),
    "nvmlDeviceGetVirtualizationMode": ((), lambda value: value in (0, 1)),
    "nvmlDeviceGetGpuInstanceProfileInfo": ((0,), has(*PROFILE)),
    "nvmlDeviceGetClockInfo": ((3,), is_count),
    "nvmlDeviceGetCurrentClocksEventReasons": ((), is_count),
    "nvmlDeviceGetPerformanceState": ((), is_count),
    "nvmlDeviceGetFanSpeed": ((), is_percent),
    "nvmlDeviceGetTotalEccErrors": ((1, 1), is_count),
    "nvmlDeviceGetRemappedRows": ((), is_list_of(is_count, 4)),
    "nvmlDeviceGetMigMode": ((), is_list_of(is_count, 2)),
    "nvmlDeviceGetMaxMigDeviceCount": ((), is_count),
    "nvmlDeviceGetMigDeviceHandleByIndex": ((0,), is_text),
    "nvmlDeviceGetNvLinkState": ((0,), lambda value: value in (0, 1)),
    "nvmlDeviceGetNvLinkRemoteDeviceType": ((0,), lambda value: value in (0, 2, 255)),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": ((0,), lambda value: set(value) == {"busId"}),
    "nvmlDeviceGetNvLinkVersion": ((0,), lambda value: value in (2, 4, 5, 6, 7)),
    "nvmlDeviceGetNvLinkCapability": ((0, 0), lambda value: value in (0, 1)),
    "nvmlDeviceGetTopologyNearestGpus": ((50,), lambda value: isinstance(value, list)),
    "nvmlDeviceGetTopologyCommonAncestor": ((0,), lambda value: value in range(0, 60, 10)),
    "nvmlDeviceGetP2PStatus": ((0, 1), lambda value: value in range(7)),
    "nvmlDeviceGetMemoryAffinity": ((16, 0), is_mask),
    "nvmlDeviceGetCpuAffinityWithinScope": ((128, 0), is_mask),
    "nvmlDeviceGetCpuAffinity": ((128,), is_mask),
    "nvmlDeviceGetAddressingMode": ((), lambda value: value in (0, 1, 2)),
    "nvmlDeviceGetPlatformInfo": ((), is_platform),
    "nvmlDeviceGetMemoryBusWidth": ((), is_count),
    "nvmlDeviceGetMaxClockInfo": ((2,), is_count),
    "nvmlDeviceGetNumaNodeId": ((), is_count),
    "nvmlDeviceGetGpuFabricInfoV": ((), is_fabric),
    "nvmlDeviceGetComputeRunningProcesses": ((), is_processes),
    "nvmlDeviceGetGraphicsRunningProcesses": ((), is_processes),
}
FAN = "nvmlDeviceGetFanSpeed"
FABRIC = "nvmlDeviceGetGpuFabricInfoV"
PLATFORM = "nvmlDeviceGetPlatformInfo"
MEMORY_NODE = "nvmlDeviceGetNumaNodeId"
MIG = {"nvmlDeviceGetMigMode", "nvmlDeviceGetMigDeviceHandleByIndex"}
FAR_ENDS = {"nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2"}
IN_MIG_MODE = {
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetEncoderUtilization",
    "nvmlDeviceGetDecoderUtilization",
    "nvmlDeviceGetProcessUtilization",
    "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetNvLinkVersion",
    "nvmlDeviceGetNvLinkCapability",
} | FAR_ENDS
NOT_SUPPORTED_ON = {
    "h100-nvswitch": {FAN, PLATFORM, MEMORY_NODE},
    "h100-mig": {FAN, PLATFORM, MEMORY_NODE},
    "leaky": {FAN, PLATFORM, MEMORY_NODE, FABRIC},
    "a100-pcie": {FAN, PLATFORM, MEMORY_NODE, FABRIC} | FAR_ENDS,
    "v100-cubemesh": {
        FAN,
        PLATFORM,
        MEMORY_NODE,
        FABRIC,
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetAddressingMode",
    }
    | MIG,
    "rtx3090-bridge": {
        PLATFORM,
        MEMORY_NODE,
        FABRIC,
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetSerial",
    }
    | MIG,
    "gb200": {FAN, MEMORY_NODE},
    "gb200-zero": {FAN, MEMORY_NODE},
    "a100-nvswitch": {FAN, PLATFORM, MEMORY_NODE, FABRIC},
    "a100-mesh": {FAN, PLATFORM, MEMORY_NODE, FABRIC},
    "h100-vm": {FAN, PLATFORM, MEMORY_NODE},
    "gh200": {FAN, PLATFORM, FABRIC},
    "l40s": {
        FAN,
        PLATFORM,
        MEMORY_NODE,
        FABRIC,
        "nvmlDeviceGetNvLinkState",
        "nvmlDeviceGetNvLinkVersion",
        "nvmlDeviceGetNvLinkCapability",
    }
    | FAR_ENDS
    | MIG,
}


def used(library: SimNvml, gpu: int, *, by: float) -> bool:
    begun = [work for work in library.machine.workloads if work.has_contexts and work.start_s < by]
    return any(held.gpu == gpu for work in begun for held in work.devices)


@pytest.mark.parametrize("name", WITH_GPUS)
@pytest.mark.parametrize("function", BOARD_SHAPES)
def test_every_call_on_every_board_has_its_shape_or_its_refusal(name: str, function: str) -> None:
    library = opened(name, t=11.0)
    args, shape = BOARD_SHAPES[function]
    for gpu in library.machine.gpus:
        refused = NOT_SUPPORTED_ON[name] | (IN_MIG_MODE if gpu.mig else set())
        found = answer(library, function, f"gpu{gpu.index}", *args)
        if function in refused:
            assert found == ("error", NOT_SUPPORTED)
        elif function == "nvmlDeviceGetMigDeviceHandleByIndex" and not gpu.mig:
            assert found == ("error", NOT_FOUND)
        elif function == "nvmlDeviceGetGpuInstanceProfileInfo" and not gpu.mig:
            assert found == ("error", NOT_SUPPORTED)
        elif function == "nvmlDeviceGetProcessUtilization" and not used(
            library, gpu.index, by=11.0
        ):
            assert found == ("error", NOT_FOUND)
        else:
            assert shape(found), found


MIG_SHAPES: dict[str, Callable[[Any], bool]] = {
    "nvmlDeviceGetUUID": lambda value: value.startswith("MIG-"),
    "nvmlDeviceGetName": lambda value: " MIG " in value,
    "nvmlDeviceGetGpuInstanceId": is_count,
    "nvmlDeviceGetComputeInstanceId": is_count,
    "nvmlDeviceGetMemoryInfo": has("total", "free", "used"),
    "nvmlDeviceGetMemoryInfo_v2": has("total", "reserved", "free", "used"),
    "nvmlDeviceGetAttributes_v2": lambda value: value["memorySizeMB"] > 0,
    "nvmlDeviceGetComputeRunningProcesses": is_processes,
    "nvmlDeviceGetGraphicsRunningProcesses": is_processes,
}


def test_mig_devices_answer_for_themselves() -> None:
    library = opened("h100-mig")
    handles = [library.call("nvmlDeviceGetMigDeviceHandleByIndex", "gpu0", j) for j in range(4)]
    assert handles == ["gpu0/mig0", "gpu0/mig1", "gpu0/mig2", "gpu0/mig3"]
    for handle in handles:
        for function in BOARD_SHAPES.keys() | MIG_SHAPES.keys():
            found = answer(library, function, str(handle), *BOARD_SHAPES.get(function, ((),))[0])
            shape = MIG_SHAPES.get(function)
            assert found == ("error", NOT_SUPPORTED) if shape is None else shape(found), function
    instances = [library.call("nvmlDeviceGetGpuInstanceId", str(handle)) for handle in handles]
    assert instances == [2, 3, 9, 10]
    assert answer(library, "nvmlDeviceGetMigDeviceHandleByIndex", "gpu0", 4) == ("error", NOT_FOUND)
    assert answer(library, "nvmlDeviceGetUUID", "gpu0/mig4") == ("error", NOT_FOUND)
    assert answer(library, "nvmlDeviceGetUUID", "gpu1/mig0") == ("error", NOT_FOUND)


def test_a_mig_board_lists_the_processes_of_its_instances() -> None:
    library = opened("h100-mig")
    function = "nvmlDeviceGetComputeRunningProcesses"
    whole: Any = library.call(function, "gpu0")
    parts: list[Any] = []
    for index in range(4):
        parts += answer(library, function, f"gpu0/mig{index}")
    assert sorted(parts, key=lambda process: process["pid"]) == whole
    assert {process["gpuInstanceId"] for process in whole} == {2, 3, 9}


@pytest.mark.parametrize("name", WITH_GPUS)
def test_memory_adds_up_and_matches_the_processes(name: str) -> None:
    library = opened(name, t=11.0)
    for gpu in library.machine.gpus:
        device = f"gpu{gpu.index}"
        v2 = answer(library, "nvmlDeviceGetMemoryInfo_v2", device)
        v1 = answer(library, "nvmlDeviceGetMemoryInfo", device)
        held = answer(library, "nvmlDeviceGetComputeRunningProcesses", device)
        assert v2["used"] + v2["free"] + v2["reserved"] == v2["total"]
        assert v1["used"] == v2["used"] + v2["reserved"]
        assert v1["free"] == v2["free"]
        assert sum(process["usedGpuMemory"] for process in held) == v2["used"]


@pytest.mark.parametrize("name", WITH_GPUS)
def test_identities_are_stable_and_unlike(name: str) -> None:
    one, two = opened(name), opened(name, t=11.0)
    for function in ("nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetSerial"):
        devices = [f"gpu{gpu.index}" for gpu in one.machine.gpus if gpu.index != 5]
        first = [answer(one, function, device) for device in devices]
        assert first == [answer(two, function, device) for device in devices]
        if ("error", NOT_SUPPORTED) not in first:
            assert len({str(item) for item in first}) == len(devices)


def far_ends(library: SimNvml, gpu: int) -> Counter[tuple[int, str]]:
    ends: Counter[tuple[int, str]] = Counter()
    for link in range(library.machine.gpus[gpu].model.nvlinks):
        if library.call("nvmlDeviceGetNvLinkState", f"gpu{gpu}", link) == 1:
            kind = answer(library, "nvmlDeviceGetNvLinkRemoteDeviceType", f"gpu{gpu}", link)
            pci = answer(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", f"gpu{gpu}", link)
            ends[kind, pci["busId"]] += 1
    return ends


def test_the_cube_mesh_is_symmetric_and_uses_every_link() -> None:
    library = opened("v100-cubemesh")
    buses = [answer(library, "nvmlDeviceGetPciInfo_v3", f"gpu{g}")["busId"] for g in range(8)]
    counts = [[far_ends(library, g)[0, buses[peer]] for peer in range(8)] for g in range(8)]
    assert counts == [list(column) for column in zip(*counts, strict=True)]
    assert [sum(row) for row in counts] == [6] * 8
    assert counts[0] == [0, 1, 1, 2, 2, 0, 0, 0]
    assert counts[4] == [2, 0, 0, 0, 0, 1, 1, 2]


def test_an_hgx_board_reaches_four_switches() -> None:
    library = opened("h100-nvswitch")
    for gpu in range(8):
        ends = far_ends(library, gpu)
        assert sorted(ends.values()) == [4, 4, 5, 5]
        assert {kind for kind, _ in ends} == {2}


def test_the_far_ends_of_a_compute_tray_are_hidden() -> None:
    assert far_ends(opened("gb200"), 3) == {(2, ""): 18}
    unknown = machine_with({}, hidden_nvswitches={"links": 4, "remote_type": 255})
    assert far_ends(opened(unknown), 0) == {(255, ""): 4}


def test_boards_without_bridges_have_links_that_are_down() -> None:
    library = opened("a100-pcie")
    assert far_ends(library, 0) == {}
    beyond = answer(library, "nvmlDeviceGetNvLinkState", "gpu0", 12)
    assert beyond == ("error", INVALID_ARGUMENT)


def test_domains_above_zero_and_a_real_fabric() -> None:
    library = opened("gb200")
    assert answer(library, "nvmlDeviceGetPciInfo_v3", "gpu3")["busId"] == "00000019:01:00.0"
    fabric = answer(library, "nvmlDeviceGetGpuFabricInfoV", "gpu0")
    assert (fabric["state"], fabric["cliqueId"]) == (3, 32766)
    assert int(fabric["clusterUuid"], 16) != 0
    zero = answer(opened("h100-nvswitch"), "nvmlDeviceGetGpuFabricInfoV", "gpu0")
    assert (zero["state"], int(zero["clusterUuid"], 16)) == (3, 0)


def test_field_values_where_a_sensor_is_missing() -> None:
    consumer = answer(opened("rtx3090-bridge"), "nvmlDeviceGetFieldValues", "gpu0", 82, 90)
    assert consumer[0] == {"fieldId": 82, "scopeId": 0, "nvmlReturn": NOT_SUPPORTED, "value": None}
    assert consumer[1]["value"] == 14_062
    split = answer(opened("h100-mig"), "nvmlDeviceGetFieldValues", "gpu0", 82, 90)
    assert [field["nvmlReturn"] for field in split] == [0, NOT_SUPPORTED]


def test_a_board_that_saves_power_slows_down_without_work() -> None:
    library = opened("rtx3090-bridge")
    for function, busy, idle in (
        ("nvmlDeviceGetCurrPcieLinkGeneration", 4, 1),
        ("nvmlDeviceGetPerformanceState", 0, 8),
    ):
        assert library.call(function, "gpu0") == busy
        assert library.call(function, "gpu1") == idle
    assert library.call("nvmlDeviceGetClockInfo", "gpu1", 2) == 405


def test_errors_are_counted_from_their_moment_on() -> None:
    faults = [{"at_s": 5, "gpu": 0, "ecc_uncorrected": 1, "ecc_corrected": 7, "pcie_replays": 3}]
    machine = machine_with({}, faults=faults)
    for t, corrected, uncorrected, replays, rows in (
        (4.9, 0, 0, 0, [0, 0, 0, 0]),
        (5.0, 7, 1, 3, [0, 1, 1, 0]),
    ):
        library = opened(machine, t)
        assert library.call("nvmlDeviceGetTotalEccErrors", "gpu0", 0, 1) == corrected
        assert library.call("nvmlDeviceGetTotalEccErrors", "gpu0", 1, 0) == uncorrected
        assert library.call("nvmlDeviceGetPcieReplayCounter", "gpu0") == replays
        assert library.call("nvmlDeviceGetRemappedRows", "gpu0") == rows


def test_system_calls() -> None:
    library = opened("h100-nvswitch")
    assert library.call("nvmlDeviceGetCount") == 8
    assert library.call("nvmlSystemGetDriverVersion") == "580.105.08"
    assert library.call("nvmlSystemGetNVMLVersion") == "13.580.105.08"
    assert library.call("nvmlSystemGetCudaDriverVersion") == 13000


def test_an_xid_is_delivered_once_and_the_board_is_lost_a_second_later() -> None:
    clock = Clock(0.0)
    library = SimNvml(load_machine("a100-pcie"), clock)
    library.call("nvmlInit")
    assert answer(library, "nvmlEventSetWait", None) == ("error", TIMEOUT)
    clock.t = 12.0
    assert library.call("nvmlEventSetWait") == {"device": "gpu5", "xid": 79}
    assert answer(library, "nvmlEventSetWait", None) == ("error", TIMEOUT)
    assert is_count(library.call("nvmlDeviceGetPowerUsage", "gpu5"))
    clock.t = 13.0
    for function in BOARD_SHAPES:
        assert answer(library, function, "gpu5") == ("error", GPU_IS_LOST)
    assert is_count(library.call("nvmlDeviceGetPowerUsage", "gpu4"))
    assert library.call("nvmlDeviceGetCount") == 8


def test_a_library_opened_later_does_not_see_older_events() -> None:
    assert answer(opened("a100-pcie", t=12.0), "nvmlEventSetWait", None) == ("error", TIMEOUT)


def test_events_come_in_the_order_of_their_time() -> None:
    faults = [
        {"at_s": 9, "gpu": 0, "xid": 31},
        {"at_s": 3, "gpu": 0, "xid": 63},
        {"at_s": 9, "gpu": 0, "xid": 13},
    ]
    clock = Clock(0.0)
    library = SimNvml(machine_with({}, faults=faults), clock)
    library.call("nvmlInit")
    clock.t = 10.0
    xids = [answer(library, "nvmlEventSetWait", None) for _ in range(4)]
    assert [event["xid"] for event in xids[:3]] == [63, 13, 31]
    assert xids[3] == ("error", TIMEOUT)


@pytest.mark.parametrize(("gpu", "others_sleep"), [(None, True), (0, False)])
def test_a_hang_blocks_every_call_or_those_on_one_board(
    gpu: int | None, others_sleep: bool
) -> None:
    fault = {"at_s": 10, "hang_s": 30} | ({} if gpu is None else {"gpu": gpu})
    clock, slept = Clock(0.0), []
    library = SimNvml(machine_with({}, faults=[fault]), clock, sleep=slept.append)
    library.call("nvmlInit")
    library.call("nvmlDeviceGetUUID", "gpu0")
    assert slept == []
    clock.t = 12.0
    library.call("nvmlDeviceGetUUID", "gpu0")
    assert slept == [28.0]
    library.call("nvmlDeviceGetCount")
    assert slept == [28.0] * (2 if others_sleep else 1)
    clock.t = 40.0
    library.call("nvmlDeviceGetUUID", "gpu0")
    assert len(slept) == (2 if others_sleep else 1)


def test_a_host_without_a_driver_has_no_library() -> None:
    library = SimNvml(load_machine("no-gpu"), Clock())
    assert answer(library, "nvmlInit", None) == ("error", LIBRARY_NOT_FOUND)
    assert answer(library, "nvmlDeviceGetCount", None) == ("error", UNINITIALIZED)


def test_calls_before_init_and_after_shutdown_are_refused() -> None:
    library = SimNvml(load_machine("gb200"), Clock())
    assert answer(library, "nvmlDeviceGetCount", None) == ("error", UNINITIALIZED)
    library.call("nvmlInit")
    assert library.call("nvmlDeviceGetCount") == 4
    library.call("nvmlShutdown")
    assert answer(library, "nvmlDeviceGetCount", None) == ("error", UNINITIALIZED)


@pytest.mark.parametrize(
    ("function", "device", "args", "code"),
    [
        ("nvmlDeviceGetDreams", "gpu0", (), FUNCTION_NOT_FOUND),
        ("nvmlSystemGetDreams", None, (), FUNCTION_NOT_FOUND),
        ("nvmlDeviceGetUUID", None, (), INVALID_ARGUMENT),
        ("nvmlDeviceGetUUID", "gpu8", (), INVALID_ARGUMENT),
        ("nvmlDeviceGetUUID", "nic0", (), INVALID_ARGUMENT),
        ("nvmlDeviceGetClockInfo", "gpu0", (4,), INVALID_ARGUMENT),
        ("nvmlDeviceGetClockInfo", "gpu0", (), INVALID_ARGUMENT),
        ("nvmlDeviceGetTemperature", "gpu0", (1,), INVALID_ARGUMENT),
        ("nvmlDeviceGetNvLinkState", "gpu0", (18,), INVALID_ARGUMENT),
        ("nvmlDeviceGetGpuInstanceId", "gpu0", (), NOT_SUPPORTED),
    ],
)
def test_wrong_calls_are_refused(
    function: str, device: str | None, args: tuple[int, ...], code: int
) -> None:
    assert answer(opened("h100-nvswitch"), function, device, *args) == ("error", code)
