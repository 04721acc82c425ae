"""NVML as a simulated machine answers it, faults included."""

import re
import time
from collections.abc import Callable

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
from seedance_obs.sources.sim.board_answers import BOARD_ANSWERS, BOARD_UNSUPPORTED_IN_MIG_MODE
from seedance_obs.sources.sim.gpm_answers import GPM, THROUGHPUT_ANSWERS, GpmAnswers
from seedance_obs.sources.sim.link_answers import LINK_ANSWERS, LINKS_UNSUPPORTED_IN_MIG_MODE
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.mig_answers import MIG_ANSWERS, PROFILE_ANSWERS
from seedance_obs.sources.sim.physics import boards
from seedance_obs.sources.sim.place_answers import PLACE_ANSWERS
from seedance_obs.sources.sim.use_answers import USE_ANSWERS, USE_UNSUPPORTED_IN_MIG_MODE

ANSWERS = {
    **BOARD_ANSWERS,
    **LINK_ANSWERS,
    **PLACE_ANSWERS,
    **PROFILE_ANSWERS,
    **THROUGHPUT_ANSWERS,
    **USE_ANSWERS,
}
UNSUPPORTED_IN_MIG_MODE = (
    BOARD_UNSUPPORTED_IN_MIG_MODE | LINKS_UNSUPPORTED_IN_MIG_MODE | USE_UNSUPPORTED_IN_MIG_MODE
)
LONGEST_SLEEP_S = 1e6
_DEVICE = re.compile(r"^gpu(\d+)(?:/mig(\d+))?$")
_DRIVERLESS = ("nvmlInit", "nvmlShutdown")


class SimNvml:
    """An `NvmlLibrary` over a machine; `now` gives seconds since the machine's epoch.

    Like the driver it wants `nvmlInit` first, delivers only XID events newer than that, and
    hangs in `sleep` during a hang fault.
    """

    def __init__(
        self,
        machine: Machine,
        now: Callable[[], float],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.machine = machine
        self._now = now
        self._sleep = sleep
        self._boards = boards(machine)
        self._initialized = False
        self._events_until = float("inf")
        self._events: list[tuple[int, int]] = []
        self._gpm = GpmAnswers()

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """Answer one NVML call; see `NvmlLibrary`.

        Raises:
            NvmlError: as the driver would.
        """
        match = _DEVICE.match(device) if device is not None else None
        gpu = int(match[1]) if match else None
        self._hang(gpu)
        if function in _DRIVERLESS:
            self._start_or_stop(function)
            return None
        if not self._initialized:
            raise NvmlError(UNINITIALIZED)
        if device is None:
            return self._system(function)
        if match is None or gpu is None or gpu >= len(self._boards):
            raise NvmlError(INVALID_ARGUMENT)
        return self._of_device(function, gpu, int(match[2]) if match[2] else None, args)

    def _hang(self, gpu: int | None) -> None:
        now = self._now()
        for fault in self.machine.faults:
            if fault.hang_s is None or fault.gpu not in (None, gpu):
                continue
            if fault.at_s <= now < fault.at_s + fault.hang_s:
                self._sleep(min(fault.at_s + fault.hang_s - now, LONGEST_SLEEP_S))

    def _start_or_stop(self, function: str) -> None:
        if self.machine.driver_version is None:
            raise NvmlError(LIBRARY_NOT_FOUND)
        self._initialized = function == "nvmlInit"
        self._events = []
        self._gpm = GpmAnswers()
        self._events_until = self._now()

    def _system(self, function: str) -> Plain:
        driver = self.machine.driver_version or ""
        if function == "nvmlSystemGetDriverVersion":
            return driver
        if function == "nvmlSystemGetNVMLVersion":
            return f"{self.machine.cuda_version // 1000}.{driver}"
        if function == "nvmlSystemGetCudaDriverVersion":
            return self.machine.cuda_version
        if function == "nvmlDeviceGetCount":
            return len(self._boards)
        if function == "nvmlEventSetWait":
            return self._next_event()
        known = function == GPM or function in ANSWERS or function in MIG_ANSWERS
        raise NvmlError(INVALID_ARGUMENT if known else FUNCTION_NOT_FOUND)

    def _next_event(self) -> Plain:
        now = self._now()
        fresh = [
            (fault.at_s, fault.gpu, fault.xid)
            for fault in self.machine.faults
            if fault.gpu is not None
            and fault.xid is not None
            and self._events_until < fault.at_s <= now
        ]
        self._events += [(gpu, xid) for _, gpu, xid in sorted(fresh)]
        self._events_until = max(now, self._events_until)
        if not self._events:
            raise NvmlError(TIMEOUT)
        gpu, xid = self._events.pop(0)
        return {"device": f"gpu{gpu}", "xid": xid}

    def _of_device(
        self, function: str, gpu: int, instance: int | None, args: tuple[int, ...]
    ) -> Plain:
        board, now = self._boards[gpu], self._now()
        if now >= board.lost_at:
            raise NvmlError(GPU_IS_LOST)
        if instance is not None and instance >= len(board.gpu.mig):
            raise NvmlError(NOT_FOUND)
        if function == GPM:
            return self._gpm.means(board, instance, now, args)
        if function not in ANSWERS and function not in MIG_ANSWERS:
            raise NvmlError(FUNCTION_NOT_FOUND)
        if instance is not None:
            if function not in MIG_ANSWERS:
                raise NvmlError(NOT_SUPPORTED)
            return MIG_ANSWERS[function](board, instance, now)
        in_mig_mode = bool(board.gpu.mig) and function in UNSUPPORTED_IN_MIG_MODE
        if in_mig_mode or function in board.model.unsupported or function not in ANSWERS:
            raise NvmlError(NOT_SUPPORTED)
        return ANSWERS[function](board, now, args)
