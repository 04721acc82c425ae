"""The boundary every NVML implementation speaks: the real driver, a recording, the simulator.

A call is NVML's own function name, the device it is asked of and NVML's integer arguments; the
answer is plain JSON-able data, so that it can cross a process boundary, be recorded and be
replayed. Devices are `gpu0`, `gpu1`, ... in NVML's index order and `gpu0/mig2` for the MIG
device at index 2 of GPU 0. Shapes of the answers that are not one number or one string:

- `nvmlDeviceGetPciInfo_v3`: `{"busId": "00000000:1B:00.0", "pciDeviceId", "pciSubSystemId"}`
- `nvmlDeviceGetCudaComputeCapability`: `[major, minor]`
- `nvmlDeviceGetUtilizationRates`: `{"gpu": percent, "memory": percent}`
- `nvmlDeviceGetEncoderUtilization` and `...Decoder...`: `[percent, sampling period in us]`
- `nvmlDeviceGetMemoryInfo_v2`: `{"total", "reserved", "free", "used"}` in bytes
- `nvmlDeviceGetMemoryInfo`: `{"total", "free", "used"}` in bytes (used includes reserved)
- `nvmlDeviceGetRemappedRows`: `[correctable, uncorrectable, pending, failed]`
- `nvmlDeviceGetMigMode`: `[current, pending]`
- `nvmlDeviceGetAttributes_v2` (of a MIG device): NVML's field names to integers
- `nvmlDeviceGetNvLinkRemotePciInfo_v2(link)`: `{"busId": str}`
- `nvmlDeviceGetNvLinkCapability(link, capability)`: 0 or 1
- `nvmlDeviceGetTopologyNearestGpus(level)`: the NVML indices of the GPUs at that level
- `nvmlDeviceGetTopologyCommonAncestor(index)`: the level (0 to 50) at which the GPU at that NVML
  index is reached; `nvmlDeviceGetP2PStatus(index, capability)`: an nvmlGpuP2PStatus_t towards it
- `nvmlDeviceGetMemoryAffinity(words, scope)`, `nvmlDeviceGetCpuAffinityWithinScope(words, scope)`
  and `nvmlDeviceGetCpuAffinity(words)`: a bitmask of NUMA nodes or CPUs as a list of 64-bit words,
  lowest first, without the zero words at its end
- `nvmlDeviceGetAddressingMode`: 0 none, 1 HMM, 2 ATS
- `nvmlDeviceGetGpuFabricInfoV`: `{"clusterUuid": 32 hex digits, "cliqueId", "state", "status",
  "healthMask": int or null, "healthSummary": int or null}`, as much as the driver's newest version
  of the structure holds
- `nvmlDeviceGetPlatformInfo`: `{"chassisSerialNumber": str, "slotNumber", "trayIndex", "hostId",
  "peerType", "moduleId"}`; version 1 of the structure has other names for the same places
- `nvmlDeviceGetComputeRunningProcesses`, `...Graphics...`: a list of `{"pid": int,
  "usedGpuMemory": bytes or null, "gpuInstanceId": int or null, "computeInstanceId": int or null}`
- `nvmlDeviceGetProcessUtilization(since)`: a list of `{"pid", "timeStamp": us of the system clock,
  "smUtil", "memUtil", "encUtil", "decUtil": percent}`, the samples newer than the time stamp
  `since` (0: all that the driver still has), as the newer `nvmlDeviceGetProcessesUtilizationInfo`
  gives them where the driver has it; NOT_FOUND where there are none. Garbage is not taken out
- `nvmlDeviceGetGpuInstanceProfileInfo(profile)`: `{"id", "sliceCount", "instanceCount",
  "multiprocessorCount", "memorySizeMB"}`
- `nvmlDeviceGetActiveVgpus`: a list of vGPU instances, which are numbers
- `nvmlDeviceGetVgpuUtilization(since)`: as that of processes, with "vgpuInstance" for "pid"
- `nvmlVgpuInstanceGetUUID(instance)`, `nvmlVgpuInstanceGetVmID(instance)`: texts,
  `nvmlVgpuInstanceGetFbUsage(instance)`: bytes; none of them is asked of a device
- `nvmlDeviceGetFieldValues(field, ...)`: a list, one per field, of `{"fieldId", "scopeId",
  "nvmlReturn", "value": number or null}`; a field is its id, or `id | scope << 32` where it is
  asked of one link; the scope 2**32 - 1 is all links together
- `nvmlDeviceGetPcieThroughput(counter)`: KB/s over the last 20 ms, for which the call blocks;
  counter 0 is transmitted, 1 received
- `nvmlGpmMetricsGet(metric, ...)` of a board or a MIG device: a list, one per NVML_GPM_METRIC_*, of
  its mean (percent or MiB/s) since the call before for this device and these metrics, or null; all
  null in the first call, which only takes a sample. Who calls leaves more than 100 ms between two
- `nvmlEventSetWait` (no device): the next pending XID `{"device": "gpu3", "xid": 79}`; never
  blocks, and raises TIMEOUT when nothing is pending
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

Plain: TypeAlias = int | float | str | Sequence["Plain"] | Mapping[str, "Plain"] | None

UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIB_RM_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
UNKNOWN = 999

ERROR_NAMES = {
    UNINITIALIZED: "uninitialized",
    INVALID_ARGUMENT: "invalid_argument",
    NOT_SUPPORTED: "not_supported",
    NO_PERMISSION: "no_permission",
    NOT_FOUND: "not_found",
    INSUFFICIENT_SIZE: "insufficient_size",
    DRIVER_NOT_LOADED: "driver_not_loaded",
    TIMEOUT: "timeout",
    LIBRARY_NOT_FOUND: "library_not_found",
    FUNCTION_NOT_FOUND: "function_not_found",
    GPU_IS_LOST: "gpu_is_lost",
    RESET_REQUIRED: "reset_required",
    LIB_RM_VERSION_MISMATCH: "driver_library_mismatch",
    ARGUMENT_VERSION_MISMATCH: "argument_version_mismatch",
    UNKNOWN: "unknown",
}


class NvmlError(Exception):
    """NVML answered with an error code (`code`, one of nvmlReturn_t)."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"NVML error {code} ({self.name})")

    @property
    def name(self) -> str:
        """The code's name as it appears in label values."""
        return ERROR_NAMES.get(self.code, f"code_{self.code}")


class NvmlLibrary(Protocol):
    """Anything that answers NVML calls, from two threads too if they do not ask the same."""

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """Answer one call.

        Raises:
            NvmlError: the driver refused or failed.
        """
        ...
