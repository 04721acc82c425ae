"""The driver's calls that fill a buffer or that the binding has wrong, asked without its wrappers.

The binding asks for the size first, takes a list of no samples for an error, and gives room for
four bytes of a vGPU's memory where the driver writes eight.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from seedance_obs.sources.nvml.answers import samples
from seedance_obs.sources.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NvmlError,
    Plain,
)
from seedance_obs.sources.nvml.structures import (
    ProcessInfoSample,
    ProcessInfoSamples,
    ProcessSample,
    VgpuSample,
)

Invoke = Callable[..., int]  # a function of the driver by its name: the code it returned
Fill = Callable[[int], tuple[int, int, Any]]  # room: the code, how many there are, the buffer

ROOM = 128
SPARE = 16  # for those that appear between two tries
TRIES = 3
TEXT_SIZE = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
_ASK_THE_OLDER = (
    FUNCTION_NOT_FOUND,
    NOT_SUPPORTED,  # one of the two is, on some boards that know the other
    ARGUMENT_VERSION_MISMATCH,
    INVALID_ARGUMENT,
)


def process_samples(invoke: Invoke, handle: Any, since: int) -> Plain:
    """The utilisation samples of processes by the newest call that the driver answers.

    Raises:
        NvmlError: the driver has none newer, or no call for them.
    """

    def newer(room: int) -> tuple[int, int, Any]:
        buffer = (ProcessInfoSample * (room + 1))()
        asked = ProcessInfoSamples()
        asked.processSamplesCount, asked.lastSeenTimeStamp = room, since
        asked.procUtilArray = ctypes.cast(buffer, ctypes.POINTER(ProcessInfoSample))
        code = invoke("nvmlDeviceGetProcessesUtilizationInfo", handle, ctypes.byref(asked))
        return code, int(asked.processSamplesCount), buffer

    def older(room: int) -> tuple[int, int, Any]:
        buffer = (ProcessSample * (room + 1))()
        count, newest = ctypes.c_uint(room), ctypes.c_ulonglong(since)
        function = "nvmlDeviceGetProcessUtilization"
        code = invoke(function, handle, buffer, ctypes.byref(count), newest)
        return code, count.value, buffer

    try:
        return samples(_filled(newer), "pid")
    except NvmlError as error:
        if error.code not in _ASK_THE_OLDER:
            raise
        refusal = error
    try:
        return samples(_filled(older), "pid")
    except NvmlError as error:
        raise refusal if error.code == FUNCTION_NOT_FOUND else error from error


def vgpu_samples(invoke: Invoke, handle: Any, since: int) -> Plain:
    """The utilisation samples of the vGPUs on a board.

    Raises:
        NvmlError: the driver has none newer, or no call for them.
    """

    def fill(room: int) -> tuple[int, int, Any]:
        buffer = (VgpuSample * (room + 1))()
        count, kind, newest = ctypes.c_uint(room), ctypes.c_uint(), ctypes.c_ulonglong(since)
        function = "nvmlDeviceGetVgpuUtilization"
        code = invoke(function, handle, newest, ctypes.byref(kind), ctypes.byref(count), buffer)
        return code, count.value, buffer

    return samples(_filled(fill), "vgpuInstance")


def vgpu_answer(invoke: Invoke, function: str, instance: int) -> Plain:
    """What one of the `nvmlVgpuInstanceGet...` calls of the boundary says.

    Raises:
        NvmlError: there is no such vGPU any more, or no such call.
        UnicodeDecodeError: the driver gave a text that is none.
    """
    if function == "nvmlVgpuInstanceGetFbUsage":
        used = ctypes.c_ulonglong()
        _check(invoke(function, ctypes.c_uint(instance), ctypes.byref(used)))
        return used.value
    text, kind = ctypes.create_string_buffer(TEXT_SIZE), ctypes.c_uint()
    more = (ctypes.byref(kind),) if function == "nvmlVgpuInstanceGetVmID" else ()
    _check(invoke(function, ctypes.c_uint(instance), text, ctypes.c_uint(TEXT_SIZE), *more))
    return text.value.decode()


def _filled(fill: Fill) -> Any:
    room = ROOM
    for _ in range(TRIES):
        code, count, buffer = fill(room)
        if code != INSUFFICIENT_SIZE:
            _check(code)
            return buffer[: min(count, room)]
        room = count + SPARE
    raise NvmlError(INSUFFICIENT_SIZE)


def _check(code: int) -> None:
    if code:
        raise NvmlError(code)
