"""NVML as the driver on this machine answers it: the only module that knows the binding `pynvml`.

What the binding gives as pointers and exceptions leaves here as the boundary's names and its one
exception, whichever generation of the binding and of the driver library is installed.
"""

import ctypes
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from seedance_obs.sources.nvml.answers import (
    DEVICE_ANSWERS,
    fabric_info,
    field_values,
    plain,
    platform_info,
)
from seedance_obs.sources.nvml.driver_gpm import GpmSamples
from seedance_obs.sources.nvml.driver_samples import process_samples, vgpu_answer, vgpu_samples
from seedance_obs.sources.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_FOUND,
    UNKNOWN,
    NvmlError,
    Plain,
)
from seedance_obs.sources.nvml.structures import (
    AddressingMode,
    FabricInfo,
    FabricInfo2,
    FabricInfo3,
    FieldValue,
    PlatformInfo1,
    PlatformInfo2,
)

_log = logging.getLogger(__name__)

_SYSTEM = (
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlDeviceGetCount",
)

# Two boards, one handle each.
_OF_PAIRS = ("nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetP2PStatus")
_OF_VGPUS = (
    "nvmlVgpuInstanceGetUUID",
    "nvmlVgpuInstanceGetVmID",
    "nvmlVgpuInstanceGetFbUsage",
)
_FIELD_BITS = 32

# One function of ours, the binding's functions that answer it, preferred first. Newer drivers
# drop deprecated symbols and older ones lack their successors. Processes are asked for by _v2
# because drivers around 535.54 answer _v3 with longer records than the binding allocates.
_SPELLINGS = {
    "nvmlSystemGetCudaDriverVersion": (
        "nvmlSystemGetCudaDriverVersion_v2",
        "nvmlSystemGetCudaDriverVersion",
    ),
    "nvmlDeviceGetMemoryInfo_v2": ("nvmlDeviceGetMemoryInfo",),
    "nvmlDeviceGetTemperature": ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"),
    "nvmlDeviceGetCurrentClocksEventReasons": (
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": ("nvmlDeviceGetNvLinkRemotePciInfo",),
    "nvmlDeviceGetComputeRunningProcesses": (
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
    ),
    "nvmlDeviceGetGraphicsRunningProcesses": (
        "nvmlDeviceGetGraphicsRunningProcesses_v2",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
    ),
}


class PynvmlLibrary:
    """The NVML of this machine; `nvmlInit` must be the first call.

    Threads may ask at once, if not the same. While one initialises or shuts down, none may ask;
    events and MIG devices belong to one caller.
    """

    def __init__(self) -> None:
        import pynvml

        self._pynvml: Any = pynvml
        self._handles: dict[str, Any] = {}
        self._event_set: Any = None
        self._gpm = GpmSamples(self._code)
        self._special: dict[str, Callable[[str | None, tuple[int, ...]], Plain]] = {
            "nvmlInit": self._init,
            "nvmlShutdown": self._shutdown,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._mig_device,
            "nvmlDeviceGetFieldValues": self._field_values,
            "nvmlDeviceGetGpuFabricInfoV": self._fabric_info,
            "nvmlDeviceGetPlatformInfo": self._platform_info,
            "nvmlDeviceGetAddressingMode": self._addressing_mode,
            "nvmlEventSetWait": self._next_xid,
            "nvmlDeviceGetTopologyNearestGpus": self._nearest_gpus,
            "nvmlDeviceGetProcessUtilization": self._process_samples,
            "nvmlDeviceGetVgpuUtilization": self._vgpu_samples,
            "nvmlGpmMetricsGet": self._gpm_metrics,
        }

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """Answer one call; see `library` for the shapes.

        Raises:
            NvmlError: the driver refused or failed, or the function is not one of the boundary's.
        """
        try:
            return self._answer(function, device, args)
        except self._pynvml.NVMLError as error:
            raise NvmlError(int(error.value)) from error
        except UnicodeDecodeError as error:
            raise NvmlError(UNKNOWN) from error

    def _answer(self, function: str, device: str | None, args: tuple[int, ...]) -> Plain:
        if function in self._special:
            return self._special[function](device, args)
        if function in _SYSTEM:
            return plain(self._invoke(function))
        if function in _OF_PAIRS:
            return self._of_pair(function, device, args)
        if function in _OF_VGPUS:
            return vgpu_answer(self._code, function, *args)
        if function not in DEVICE_ANSWERS:
            raise NvmlError(FUNCTION_NOT_FOUND)
        if function == "nvmlDeviceGetMemoryInfo_v2":
            args = (self._pynvml.nvmlMemory_v2,)
        if function == "nvmlDeviceGetGpuInstanceProfileInfo":
            args = (*args, 1)  # the version of the structure that every driver with MIG knows
        return DEVICE_ANSWERS[function](self._invoke(function, self._handle(device), *args))

    def _invoke(self, function: str, *args: Any) -> Any:
        *preferred, last = _SPELLINGS.get(function, (function,))
        for spelling in preferred:
            try:
                return self._invoke_spelling(spelling, args)
            except (self._pynvml.NVMLError_FunctionNotFound, NvmlError):
                continue
        return self._invoke_spelling(last, args)

    def _invoke_spelling(self, spelling: str, args: Sequence[Any]) -> Any:
        implementation = getattr(self._pynvml, spelling, None)
        if implementation is None:
            raise NvmlError(FUNCTION_NOT_FOUND)
        return implementation(*args)

    def _handle(self, device: str | None) -> Any:
        known = self._handles.get(device or "")
        if known is not None:
            return known
        board, index, instance = _parsed(device)
        name = board if instance is None else f"{board}/mig{instance}"
        if name not in self._handles and instance is not None:
            self._mig_device(board, (instance,))
        elif name not in self._handles:
            self._handles[name] = self._invoke("nvmlDeviceGetHandleByIndex", index)
        return self._handles[name]

    def _init(self, _device: str | None, _args: tuple[int, ...]) -> Plain:
        # Without this flag a host whose only GPU is broken or gone fails here, for all its parts.
        self._invoke("nvmlInitWithFlags", self._pynvml.NVML_INIT_FLAG_NO_GPUS)
        return None

    def _shutdown(self, _device: str | None, _args: tuple[int, ...]) -> Plain:
        self._gpm.free()
        self._handles.clear()
        event_set, self._event_set = self._event_set, None
        try:
            if event_set is not None:
                self._invoke("nvmlEventSetFree", event_set)
        finally:
            self._invoke("nvmlShutdown")
        return None

    def _mig_device(self, device: str | None, args: tuple[int, ...]) -> Plain:
        """Ask the driver each time: instances come, go and change their index."""
        (index,) = args
        name = f"{device}/mig{index}"
        self._handles.pop(name, None)
        parent = self._handle(device)
        self._handles[name] = self._invoke("nvmlDeviceGetMigDeviceHandleByIndex", parent, index)
        return name

    def _field_values(self, device: str | None, args: tuple[int, ...]) -> Plain:
        # Drivers have written one record past the end, which the binding's own wrapper invites.
        values = (FieldValue * (len(args) + 1))()
        for value, field in zip(values, args, strict=False):
            value.scopeId, value.fieldId = divmod(field, 1 << _FIELD_BITS)
        self._invoke_pointer("nvmlDeviceGetFieldValues", device, len(args), values)
        return field_values(values[: len(args)])

    def _of_pair(self, function: str, device: str | None, args: tuple[int, ...]) -> Plain:
        other, *rest = args
        return plain(
            self._invoke(function, self._handle(device), self._handle(f"gpu{other}"), *rest)
        )

    def _fabric_info(self, device: str | None, _args: tuple[int, ...]) -> Plain:
        function = "nvmlDeviceGetGpuFabricInfoV"
        try:
            return fabric_info(self._filled(function, device, FabricInfo3(), FabricInfo2()))
        except NvmlError as error:
            if error.code != FUNCTION_NOT_FOUND:
                raise
            return fabric_info(self._filled("nvmlDeviceGetGpuFabricInfo", device, FabricInfo()))

    def _platform_info(self, device: str | None, _args: tuple[int, ...]) -> Plain:
        structures = PlatformInfo2(), PlatformInfo1()
        return platform_info(self._filled("nvmlDeviceGetPlatformInfo", device, *structures))

    def _addressing_mode(self, device: str | None, _args: tuple[int, ...]) -> Plain:
        mode = self._filled("nvmlDeviceGetAddressingMode", device, AddressingMode())
        return int(mode.value)

    def _filled(self, function: str, device: str | None, *structures: Any) -> Any:
        """The first structure whose version the driver knows, filled by it."""
        *newer, last = structures
        for structure in newer:
            try:
                self._invoke_pointer(function, device, ctypes.byref(structure))
            except NvmlError as error:
                if error.code not in (ARGUMENT_VERSION_MISMATCH, INVALID_ARGUMENT):
                    raise
            else:
                return structure
        self._invoke_pointer(function, device, ctypes.byref(last))
        return last

    def _invoke_pointer(self, function: str, device: str | None, *args: Any) -> None:
        """Call the driver's own function, for which the binding has no wrapper or a wrong one."""
        code = self._code(function, self._handle(device), *args)
        if code:
            raise NvmlError(code)

    def _code(self, function: str, *args: Any) -> int:
        try:
            call = self._pynvml._nvmlGetFunctionPointer(function)
        except self._pynvml.NVMLError as error:
            return int(error.value)
        return int(call(*args))

    def _process_samples(self, device: str | None, args: tuple[int, ...]) -> Plain:
        return process_samples(self._code, self._handle(device), *args)

    def _vgpu_samples(self, device: str | None, args: tuple[int, ...]) -> Plain:
        return vgpu_samples(self._code, self._handle(device), *args)

    def _gpm_metrics(self, device: str | None, args: tuple[int, ...]) -> Plain:
        board, _, mig = _parsed(device)
        handle = self._handle(board)
        if mig is None:
            return self._gpm.means(board, handle, args)
        instance = self._invoke("nvmlDeviceGetGpuInstanceId", self._handle(device))
        return self._gpm.means(board, handle, args, instance=int(instance))

    def _nearest_gpus(self, device: str | None, args: tuple[int, ...]) -> Plain:
        found = self._invoke("nvmlDeviceGetTopologyNearestGpus", self._handle(device), *args)
        return sorted(_parsed(self._board_of(handle))[1] for handle in found)

    def _next_xid(self, _device: str | None, _args: tuple[int, ...]) -> Plain:
        if self._event_set is None:
            boards = self._boards()
            self._event_set = self._invoke("nvmlEventSetCreate")
            self._register_xid_events(boards)
        event = self._invoke("nvmlEventSetWait_v2", self._event_set, 0)
        return {"device": self._board_of(event.device), "xid": int(event.eventData)}

    def _register_xid_events(self, boards: Sequence[str]) -> None:
        for board in boards:
            try:
                self._invoke(
                    "nvmlDeviceRegisterEvents",
                    self._handle(board),
                    self._pynvml.nvmlEventTypeXidCriticalError,
                    self._event_set,
                )
            except self._pynvml.NVMLError as error:
                _log.info("no XID events from a GPU device=%s error=%s", board, error)

    def _boards(self) -> list[str]:
        return [f"gpu{index}" for index in range(self._invoke("nvmlDeviceGetCount"))]

    def _board_of(self, handle: Any) -> str:
        # The handle is compared first: a GPU that fell off the bus answers nothing any more.
        for board in self._boards():
            if board in self._handles and _address(self._handles[board]) == _address(handle):
                return board
        wanted = self._invoke("nvmlDeviceGetPciInfo_v3", handle).busId
        for board in self._boards():
            with suppress(self._pynvml.NVMLError):  # another board that is lost
                if self._invoke("nvmlDeviceGetPciInfo_v3", self._handle(board)).busId == wanted:
                    return board
        raise NvmlError(NOT_FOUND)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _parsed(device: str | None) -> tuple[str, int, int | None]:
    """`gpu0/mig2` as its board `gpu0`, 0 and 2."""
    match = re.fullmatch(r"(gpu(\d+))(?:/mig(\d+))?", device or "")
    if match is None:
        raise NvmlError(INVALID_ARGUMENT)
    board, index, instance = match.groups()
    return board, int(index), None if instance is None else int(instance)
