"""What the binding's ctypes answers mean, as the plain data that `library` describes.

Nothing here loads the binding: structures are read by the field names of NVML's header, so every
generation of the binding is read alike.
"""

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from seedance_obs.sources.nvml.library import Plain

_NO_INSTANCE = 0xFFFFFFFF
_NO_VALUE = 2**64 - 1
_SUCCESS = 0
_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by valueType


def plain(answer: object) -> Plain:
    """A number, text, sequence or structure as plain data.

    Raises:
        UnicodeDecodeError: the driver gave a text that is none.
    """
    if isinstance(answer, bytes):
        return answer.decode()
    if isinstance(answer, list | tuple):
        return [plain(item) for item in answer]
    if isinstance(answer, ctypes.Structure):
        return _members(answer, *(field[0] for field in answer._fields_))
    if answer is None or isinstance(answer, int | float | str):
        return answer
    raise TypeError(f"an answer of the NVML binding that nobody expects: {type(answer)}")


def fabric_info(answer: ctypes.Structure) -> Plain:
    """The fabric's membership, its cluster UUID as 32 hex digits, of any version."""
    health = {name: plain(getattr(answer, name, None)) for name in ("healthMask", "healthSummary")}
    numbers = _members(answer, "cliqueId", "state", "status")
    return {"clusterUuid": bytes(answer.clusterUuid).hex(), **numbers, **health}


def platform_info(answer: ctypes.Structure) -> Plain:
    """The board's place in its rack; a serial number that is no text is given as hex digits."""
    serial = bytes(answer.chassisSerialNumber).rstrip(b"\0")
    text = serial.decode() if serial.isascii() and serial.decode().isprintable() else serial.hex()
    places = ("slotNumber", "trayIndex", "hostId", "peerType", "moduleId")
    return {"chassisSerialNumber": text, **_members(answer, *places)}


def words(answer: Iterable[int]) -> Plain:
    """A bitmask as its words, without the zero words at its end."""
    mask = list(answer)
    while mask and not mask[-1]:
        mask.pop()
    return mask


def field_values(answer: Sequence[Any]) -> Plain:
    """Each field's value, null where its own code is not success or its type is unknown."""
    return [
        {
            "fieldId": item.fieldId,
            "scopeId": item.scopeId,
            "nvmlReturn": item.nvmlReturn,
            "value": _field_value(item),
        }
        for item in answer
    ]


def _field_value(item: Any) -> float | None:
    kind = item.valueType
    if item.nvmlReturn != _SUCCESS or kind >= len(_VALUE_MEMBERS):
        return None
    value: float = getattr(item.value, _VALUE_MEMBERS[kind])
    return value


def _members(answer: object, *names: str) -> dict[str, Plain]:
    return {name: plain(getattr(answer, name)) for name in names}


def samples(answer: Iterable[object], owner: str) -> Plain:
    """Utilisation samples of processes or vGPUs; `owner` names the member that says whose."""
    names = (owner, "timeStamp", "smUtil", "memUtil", "encUtil", "decUtil")
    return [_members(sample, *names) for sample in answer]


def _picked(*names: str) -> Callable[[object], Plain]:
    return lambda answer: _members(answer, *names)


def _remote_pci(answer: object) -> Plain:
    # A switch in another tray, or hidden by a hypervisor, has no readable address.
    try:
        return _members(answer, "busId")
    except UnicodeDecodeError:
        return {"busId": ""}


def _processes(answer: Sequence[object]) -> Plain:
    return [
        {
            "pid": _or_null(process, "pid"),
            "usedGpuMemory": _or_null(process, "usedGpuMemory", unknown=_NO_VALUE),
            "gpuInstanceId": _or_null(process, "gpuInstanceId", unknown=_NO_INSTANCE),
            "computeInstanceId": _or_null(process, "computeInstanceId", unknown=_NO_INSTANCE),
        }
        for process in answer
    ]


def _or_null(answer: object, name: str, *, unknown: int | None = None) -> Plain:
    value = plain(getattr(answer, name))
    return None if value == unknown else value


DEVICE_ANSWERS: Mapping[str, Callable[..., Plain]] = {
    "nvmlDeviceGetUUID": plain,
    "nvmlDeviceGetName": plain,
    "nvmlDeviceGetSerial": plain,
    "nvmlDeviceGetMinorNumber": plain,
    "nvmlDeviceGetVbiosVersion": plain,
    "nvmlDeviceGetPciInfo_v3": _picked("busId", "pciDeviceId", "pciSubSystemId"),
    "nvmlDeviceGetCudaComputeCapability": plain,
    "nvmlDeviceGetUtilizationRates": _picked("gpu", "memory"),
    "nvmlDeviceGetEncoderUtilization": plain,
    "nvmlDeviceGetDecoderUtilization": plain,
    "nvmlDeviceGetMemoryInfo": _picked("total", "free", "used"),
    "nvmlDeviceGetMemoryInfo_v2": _picked("total", "reserved", "free", "used"),
    "nvmlDeviceGetPowerUsage": plain,
    "nvmlDeviceGetEnforcedPowerLimit": plain,
    "nvmlDeviceGetTotalEnergyConsumption": plain,
    "nvmlDeviceGetTemperature": plain,
    "nvmlDeviceGetClockInfo": plain,
    "nvmlDeviceGetCurrentClocksEventReasons": plain,
    "nvmlDeviceGetPerformanceState": plain,
    "nvmlDeviceGetFanSpeed": plain,
    "nvmlDeviceGetMaxPcieLinkGeneration": plain,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": plain,
    "nvmlDeviceGetMaxPcieLinkWidth": plain,
    "nvmlDeviceGetCurrPcieLinkGeneration": plain,
    "nvmlDeviceGetCurrPcieLinkWidth": plain,
    "nvmlDeviceGetPcieReplayCounter": plain,
    "nvmlDeviceGetPcieThroughput": plain,
    "nvmlDeviceGetTotalEccErrors": plain,
    "nvmlDeviceGetRemappedRows": plain,
    "nvmlDeviceGetMigMode": plain,
    "nvmlDeviceGetMaxMigDeviceCount": plain,
    "nvmlDeviceGetGpuInstanceId": plain,
    "nvmlDeviceGetComputeInstanceId": plain,
    "nvmlDeviceGetAttributes_v2": plain,
    "nvmlDeviceGetGpuInstanceProfileInfo": _picked(
        "id", "sliceCount", "instanceCount", "multiprocessorCount", "memorySizeMB"
    ),
    "nvmlDeviceGetVirtualizationMode": plain,
    "nvmlDeviceGetActiveVgpus": plain,
    "nvmlDeviceGetNvLinkState": plain,
    "nvmlDeviceGetNvLinkRemoteDeviceType": plain,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _remote_pci,
    "nvmlDeviceGetNvLinkVersion": plain,
    "nvmlDeviceGetNvLinkCapability": plain,
    "nvmlDeviceGetNumaNodeId": plain,
    "nvmlDeviceGetMemoryAffinity": words,
    "nvmlDeviceGetCpuAffinityWithinScope": words,
    "nvmlDeviceGetCpuAffinity": words,
    "nvmlDeviceGetMemoryBusWidth": plain,
    "nvmlDeviceGetMaxClockInfo": plain,
    "nvmlDeviceGetComputeRunningProcesses": _processes,
    "nvmlDeviceGetGraphicsRunningProcesses": _processes,
}
