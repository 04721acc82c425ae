"""A machine, asked through the boundary call by call, as the state file that the C code reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.pairs import LEVELS

Call = tuple[str, str | None, tuple[int, ...]]

SYSTEM_CALLS = (
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlDeviceGetCount",
)
GPU_CALLS = (
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetSerial",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetVbiosVersion",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetEncoderUtilization",
    "nvmlDeviceGetDecoderUtilization",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetFanSpeed",
    "nvmlDeviceGetMaxPcieLinkGeneration",
    "nvmlDeviceGetGpuMaxPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkWidth",
    "nvmlDeviceGetCurrPcieLinkGeneration",
    "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetPcieReplayCounter",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMemoryBusWidth",
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetPlatformInfo",
    "nvmlDeviceGetVirtualizationMode",
    "nvmlDeviceGetActiveVgpus",
)
SAMPLES = ("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetVgpuUtilization")
VGPU_CALLS = (
    "nvmlVgpuInstanceGetUUID",
    "nvmlVgpuInstanceGetVmID",
    "nvmlVgpuInstanceGetFbUsage",
)
ALL_LINKS = 2**32 - 1
LINKS = range(19)
LINK_FIELDS = (146, 164, 165, 166)
C2C_LINKS = range(11)
GPU_CALLS_WITH_ARGUMENTS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("nvmlDeviceGetTemperature", (0,)),
    *(("nvmlDeviceGetPcieThroughput", (counter,)) for counter in (0, 1)),
    *(("nvmlDeviceGetClockInfo", (clock,)) for clock in range(4)),
    *(("nvmlDeviceGetTotalEccErrors", (error, scope)) for error in (0, 1) for scope in (0, 1)),
    *(("nvmlDeviceGetMaxClockInfo", (clock,)) for clock in range(4)),
    *(("nvmlDeviceGetFieldValues", (field,)) for field in (82, 90, 91, 170, 186, 197, 198, 230)),
    *(("nvmlDeviceGetFieldValues", (field | ALL_LINKS << 32,)) for field in (138, 139)),
    *(("nvmlDeviceGetGpuInstanceProfileInfo", (profile,)) for profile in range(7)),
    *(
        ("nvmlDeviceGetFieldValues", (field | link << 32,))
        for fields, links in ((LINK_FIELDS, LINKS), ((171, 172), C2C_LINKS))
        for field in fields
        for link in links
    ),
    *(("nvmlDeviceGetNvLinkState", (link,)) for link in LINKS),
    *(("nvmlDeviceGetNvLinkRemoteDeviceType", (link,)) for link in LINKS),
    *(("nvmlDeviceGetNvLinkRemotePciInfo_v2", (link,)) for link in LINKS),
    *(("nvmlDeviceGetNvLinkVersion", (link,)) for link in LINKS),
    *(("nvmlDeviceGetNvLinkCapability", (link, 0)) for link in LINKS),
    ("nvmlDeviceGetMemoryAffinity", (16, 0)),
    ("nvmlDeviceGetCpuAffinityWithinScope", (128, 0)),
    ("nvmlDeviceGetCpuAffinity", (128,)),
)
MIG_CALLS = (
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetComputeRunningProcesses",
)
# The order in which the C code takes the members of a structure.
MEMBERS = {
    "nvmlDeviceGetPciInfo_v3": ("busId", "pciDeviceId", "pciSubSystemId"),
    "nvmlDeviceGetUtilizationRates": ("gpu", "memory"),
    "nvmlDeviceGetMemoryInfo": ("total", "free", "used"),
    "nvmlDeviceGetMemoryInfo_v2": ("total", "reserved", "free", "used"),
    "nvmlDeviceGetGpuFabricInfoV": (
        "clusterUuid",
        "cliqueId",
        "state",
        "status",
        "healthMask",
        "healthSummary",
    ),
    "nvmlDeviceGetGpuInstanceProfileInfo": (
        "id",
        "sliceCount",
        "instanceCount",
        "multiprocessorCount",
        "memorySizeMB",
    ),
    "nvmlDeviceGetPlatformInfo": (
        "chassisSerialNumber",
        "slotNumber",
        "trayIndex",
        "hostId",
        "peerType",
        "moduleId",
    ),
    "nvmlDeviceGetAttributes_v2": (
        "multiprocessorCount",
        "sharedCopyEngineCount",
        "sharedDecoderCount",
        "sharedEncoderCount",
        "sharedJpegCount",
        "sharedOfaCount",
        "gpuInstanceSliceCount",
        "computeInstanceSliceCount",
        "memorySizeMB",
    ),
}
UNSIGNED_TYPES = (3, 2, 1)  # unsigned long long, long, int: legal for any count


def calls_of(library: NvmlLibrary) -> Iterator[Call]:
    """Every call that can be asked of this machine, but those that change something."""
    yield from ((function, None, ()) for function in SYSTEM_CALLS)
    count = _count(library, "nvmlDeviceGetCount", None)
    for index in range(count):
        gpu = f"gpu{index}"
        yield from ((function, gpu, ()) for function in GPU_CALLS)
        yield from ((function, gpu, args) for function, args in GPU_CALLS_WITH_ARGUMENTS)
        yield from (("nvmlDeviceGetTopologyNearestGpus", gpu, (level,)) for level in LEVELS)
        for other in (number for number in range(count) if number != index):
            yield "nvmlDeviceGetTopologyCommonAncestor", gpu, (other,)
            yield from (("nvmlDeviceGetP2PStatus", gpu, (other, use)) for use in range(3))
        yield from _calls_of_instances(library, gpu)
        yield from _calls_of_use(library, gpu)


def _calls_of_instances(library: NvmlLibrary, gpu: str) -> Iterator[Call]:
    for index in range(_count(library, "nvmlDeviceGetMaxMigDeviceCount", gpu)):
        handle: Call = ("nvmlDeviceGetMigDeviceHandleByIndex", gpu, (index,))
        yield handle
        if not isinstance(outcome(library, handle), NvmlError):
            yield from ((function, f"{gpu}/mig{index}", ()) for function in MIG_CALLS)


def _calls_of_use(library: NvmlLibrary, gpu: str) -> Iterator[Call]:
    """All samples, and those of the later half of their time."""
    for function in SAMPLES:
        yield function, gpu, (0,)
        samples: Any = outcome(library, (function, gpu, (0,)))
        if not isinstance(samples, NvmlError):
            stamps = sorted(sample["timeStamp"] for sample in samples)
            yield function, gpu, (stamps[len(stamps) // 2],)
    vgpus: Any = outcome(library, ("nvmlDeviceGetActiveVgpus", gpu, ()))
    for vgpu in () if isinstance(vgpus, NvmlError) else vgpus:
        yield from ((function, None, (vgpu,)) for function in VGPU_CALLS)


def outcome(library: NvmlLibrary, call: Call) -> Plain | NvmlError:
    """A call's answer, or the error it raised."""
    function, device, args = call
    try:
        return library.call(function, device, *args)
    except NvmlError as error:
        return error


def _count(library: NvmlLibrary, function: str, device: str | None) -> int:
    answer = outcome(library, (function, device, ()))
    return answer if isinstance(answer, int) else 0


def state_of(library: NvmlLibrary, *, events: Iterable[tuple[str, int]] = ()) -> dict[str, str]:
    """The machine as lines of the state file, key to value; `events` are (device, XID)."""
    state = {"nvmlInit -": _line("nvmlInit", outcome(library, ("nvmlInit", None, ())))}
    for call in calls_of(library):
        state[key_of(*call)] = _line(call[0], outcome(library, call))
    for number, (device, xid) in enumerate(events):
        state[f"nvmlEventSetWait - {number}"] = f"0 {device} {xid}"
    return state


def key_of(function: str, device: str | None = None, args: Sequence[int] = ()) -> str:
    """A call as the left side of its line."""
    return " ".join([function, device or "-", *map(str, args)])


def write_state(path: Path, state: Mapping[str, str]) -> None:
    """Replace the state file in one step, while a child may be reading it."""
    draft = path.with_suffix(".draft")
    text = "".join(f"{key} = {value}\n" for key, value in state.items())
    draft.write_bytes(text.encode(errors="surrogateescape"))
    draft.replace(path)


def _line(function: str, answer: Any) -> str:
    if isinstance(answer, NvmlError):
        return str(answer.code)
    return f"0 {_values(function, answer)}".rstrip()


def _values(function: str, answer: Any) -> str:
    if function in ("nvmlInit", "nvmlDeviceGetMigDeviceHandleByIndex"):
        return ""
    if function.endswith("RunningProcesses"):
        return " ".join([str(len(answer)), *map(_process, answer)])
    if function == "nvmlDeviceGetActiveVgpus":
        return " ".join(map(str, (len(answer), *answer)))
    if function in SAMPLES:
        return " ".join([str(len(answer)), *map(_sample, answer)])
    if function == "nvmlDeviceGetFieldValues":
        return _field(answer[0])
    if function == "nvmlDeviceGetNvLinkRemotePciInfo_v2":
        return answer["busId"] or "unreadable"
    if function in MEMBERS:
        return " ".join(str(answer[member]) for member in MEMBERS[function])
    return " ".join(map(str, answer)) if isinstance(answer, list | tuple) else str(answer)


def _process(process: Mapping[str, int | None]) -> str:
    values = (process[name] for name in ("usedGpuMemory", "gpuInstanceId", "computeInstanceId"))
    return ":".join(
        [str(process["pid"]), *("-" if value is None else str(value) for value in values)]
    )


def _sample(sample: Mapping[str, int]) -> str:
    return ":".join(str(value) for value in sample.values())


def _field(field: Mapping[str, Any]) -> str:
    value = field["value"]
    if isinstance(value, float):
        return f"{field['nvmlReturn']} 0 {value!r}"
    return f"{field['nvmlReturn']} {_type_of(field['fieldId'], value or 0)} {value or 0}"


def _type_of(field_id: int, value: int) -> int:
    if value < 0:
        return 4
    return UNSIGNED_TYPES[field_id % 3] if value < 2**32 else UNSIGNED_TYPES[0]
