"""The processes on a board, and on which MIG device each is."""

from collections.abc import Sequence
from dataclasses import replace

from seedance_obs.sources.nvml.asking import integer
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.calls import Calls
from seedance_obs.sources.nvml.library import Plain
from seedance_obs.sources.readings import GpuProcess, MigReadings

COMPUTING = "nvmlDeviceGetComputeRunningProcesses"
DRAWING = "nvmlDeviceGetGraphicsRunningProcesses"


def read_processes(
    calls: Calls, board: Board, devices: Sequence[tuple[str, MigReadings]]
) -> tuple[GpuProcess, ...] | None:
    """The processes by pid, None where they cannot be listed.

    Of a board in MIG mode the list is refused to all but root, and older drivers leave out where
    a process is: then each of the board's MIG `devices` is asked.

    Raises:
        NvmlError: the board is lost or the driver is gone.
    """
    computing = _listed(calls, board, COMPUTING)
    if devices and (computing is None or any(one.gpu_instance is None for one in computing)):
        of_devices = _of_devices(calls, board, devices)
        computing = computing if of_devices is None else of_devices
    if computing is None:
        return None
    drawing = _listed(calls, board, DRAWING) or ()
    found = {process.pid: process for process in (*drawing, *computing)}
    return tuple(found[pid] for pid in sorted(found))


def _of_devices(
    calls: Calls, board: Board, devices: Sequence[tuple[str, MigReadings]]
) -> list[GpuProcess] | None:
    """What all devices list together; None where one does not, for the rest is not all."""
    found: list[GpuProcess] = []
    for device, instance in devices:
        listed = _listed(calls, board, COMPUTING, device=device)
        if listed is None:
            return None
        found += [
            replace(
                process,
                gpu_instance=instance.gpu_instance,
                compute_instance=instance.compute_instance,
            )
            for process in listed
        ]
    return found


def _listed(
    calls: Calls, board: Board, function: str, *, device: str | None = None
) -> list[GpuProcess] | None:
    answer = calls.ask(board, function, device=device)
    if not isinstance(answer, list):
        return None
    graphics = function == DRAWING
    return [_process(entry, graphics=graphics) for entry in answer if isinstance(entry, dict)]


def _process(entry: dict[str, Plain], *, graphics: bool) -> GpuProcess:
    def known(member: str) -> int | None:
        value = entry.get(member)
        return value if isinstance(value, int) else None

    return GpuProcess(
        pid=integer(entry["pid"]),
        memory_bytes=known("usedGpuMemory"),
        gpu_instance=known("gpuInstanceId"),
        graphics=graphics,
        compute_instance=known("computeInstanceId"),
    )
