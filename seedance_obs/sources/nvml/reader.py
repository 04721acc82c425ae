"""One pass over all GPUs through NVML: every call optional, every fault kept to its device.

Knows which answers mean "do not ask every time" (NOT_SUPPORTED, asked again when the board is
described anew or its MIG mode changes), which mean that one GPU is gone, and which mean that the
driver itself went away.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.identity import canonical_uuid
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.asking import DRIVER_GONE, NEVER_AGAIN, integer, optional
from seedance_obs.sources.nvml.board import Board, describe
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.pairs import Pairs
from seedance_obs.sources.nvml.reads import BOARD_READS, MEMORY_READS, Read
from seedance_obs.sources.readings import (
    GpuPair,
    GpuProcess,
    GpuReadings,
    MigReadings,
    SourceSnapshot,
    Xid,
)

LOG = logging.getLogger(__name__)
STATIC_PASSES = 60
MAX_EVENTS = 256
_MIG_PROFILE = re.compile(r"MIG (\S+)$")

ADVICE = {
    nvml.LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not installed: install the NVIDIA driver here, "
    "or mount its libraries into the container",
    nvml.DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded: see `dmesg`, or load it with "
    "`modprobe nvidia`",
    nvml.LIB_RM_VERSION_MISMATCH: "the driver was upgraded under its library: reboot, or restart "
    "this exporter once both match",
    nvml.NO_PERMISSION: "access to /dev/nvidia* was refused: check the device permissions",
}


class NvmlReader:
    """Reads a whole node through one NVML library; `read` is one pass."""

    def __init__(
        self, library: NvmlLibrary, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._library = library
        self._monotonic = monotonic
        self._boards: dict[int, Board] = {}
        self._pairs = Pairs()
        self._uuids: dict[str, str] = {}  # lost boards too: their last XID names them
        self._count = -1
        self._passes = 0
        self._versions: dict[str, str] = {}
        self._dropped: Counter[str] = Counter()
        self._early_xids: list[Xid] = []

    def start(self) -> None:
        """Initialise the driver.

        Raises:
            SourceUnavailableError: it cannot be used; the message says what to do.
        """
        try:
            self._library.call("nvmlInit")
        except NvmlError as error:
            raise _unavailable(error) from error
        self._versions = dict(self._read_versions())

    def stop(self) -> None:
        """Let go of the driver."""
        try:
            self._library.call("nvmlShutdown")
        except NvmlError as error:
            LOG.debug("event=nvml_shutdown error=%s", error.name)

    def read(self) -> SourceSnapshot:
        """Every reading of every GPU that answers.

        Raises:
            SourceUnavailableError: the driver as a whole does not answer.
        """
        self._dropped = Counter()
        self._early_xids = []
        try:
            self._look_for_devices()
        except NvmlError as error:
            raise _unavailable(error) from error
        gpus = tuple(self._read_gpus())
        pairs = self._read_pairs()
        xids = (*self._early_xids, *self._drain_events())
        return SourceSnapshot(
            source="nvml",
            taken_at=self._monotonic(),
            gpus=gpus,
            xids=xids,
            versions=self._versions,
            dropped=dict(self._dropped),
            pairs=pairs,
        )

    def _read_gpus(self) -> Iterator[GpuReadings]:
        for index in range(self._count):
            try:
                yield self._read_gpu(index)
            except NvmlError as error:
                if error.code in DRIVER_GONE:
                    raise _unavailable(error) from error
                self._boards.pop(index, None)
                self._pairs.forget(index)
                self._dropped[error.name] += 1

    def _read_pairs(self) -> tuple[GpuPair, ...]:
        uuids = {index: board.uuid for index, board in self._boards.items()}
        try:
            return self._pairs.read(self._library, uuids)
        except NvmlError as error:
            raise _unavailable(error) from error

    def _read_versions(self) -> Iterator[tuple[str, str]]:
        for key, function in (
            ("driver_version", "nvmlSystemGetDriverVersion"),
            ("nvml_version", "nvmlSystemGetNVMLVersion"),
        ):
            answer = optional(self._library, function)
            if isinstance(answer, str):
                yield key, answer
        cuda = optional(self._library, "nvmlSystemGetCudaDriverVersion")
        if isinstance(cuda, int) and cuda > 0:
            yield "cuda_version", f"{cuda // 1000}.{cuda % 1000 // 10}"

    def _look_for_devices(self) -> None:
        count = integer(self._library.call("nvmlDeviceGetCount"))
        if self._count not in (-1, count):
            # Indices mean other boards now, and handles of the old ones must not be kept. The
            # events of the old ones go with the handles: take them first.
            self._early_xids = list(self._drain_events())
            self._library.call("nvmlShutdown")
            self._library.call("nvmlInit")
            count = integer(self._library.call("nvmlDeviceGetCount"))
            self._forget_boards()
        if self._passes % STATIC_PASSES == 0:
            self._forget_boards()
        self._passes += 1
        self._count = count

    def _forget_boards(self) -> None:
        self._boards.clear()
        self._pairs.forget()

    def _read_gpu(self, index: int) -> GpuReadings:
        board = self._boards.get(index)
        if board is None:
            board = self._boards[index] = describe(self._library, index)
            self._uuids[board.name] = board.uuid
        values = dict(board.maxima)
        self._read_mig_mode(board, values)
        values.update(self._read_values(board, board.name, BOARD_READS))
        return GpuReadings(
            uuid=board.uuid,
            index=index,
            pci_bus_id=board.pci_bus_id,
            model=board.model,
            values=values,
            facts=board.facts,
            mig=tuple(self._read_mig_devices(board)) if board.mig else (),
            nvlinks=None if board.mig and not board.nvlinks else board.nvlinks,
            fabric=board.fabric,
            place=board.place,
            processes=self._read_processes(board),
        )

    def _read_mig_mode(self, board: Board, values: dict[str, float]) -> None:
        mode = self._call_remembering(board, board.name, "nvmlDeviceGetMigMode", ())
        enabled = board.mig and ("nvmlDeviceGetMigMode", board.name, ()) not in board.unsupported
        if isinstance(mode, list):
            enabled = mode[0] == 1
            values["mig_enabled"] = float(enabled)
        if enabled != board.mig:
            board.mig = enabled
            board.unsupported.clear()

    def _read_mig_devices(self, board: Board) -> Iterator[MigReadings]:
        slots = self._call_remembering(board, board.name, "nvmlDeviceGetMaxMigDeviceCount", ())
        for slot in range(slots if isinstance(slots, int) else 0):
            name = optional(self._library, "nvmlDeviceGetMigDeviceHandleByIndex", board.name, slot)
            if not isinstance(name, str):
                continue
            instance = optional(self._library, "nvmlDeviceGetGpuInstanceId", name)
            if not isinstance(instance, int):
                continue
            compute = optional(self._library, "nvmlDeviceGetComputeInstanceId", name)
            uuid = optional(self._library, "nvmlDeviceGetUUID", name)
            profile = _MIG_PROFILE.search(str(optional(self._library, "nvmlDeviceGetName", name)))
            yield MigReadings(
                gpu_instance=instance,
                compute_instance=compute if isinstance(compute, int) else None,
                uuid=canonical_uuid(uuid) if isinstance(uuid, str) else None,
                profile=profile.group(1) if profile else None,
                values=dict(self._read_values(board, name, MEMORY_READS)),
            )

    def _read_processes(self, board: Board) -> tuple[GpuProcess, ...] | None:
        computing = self._list_processes(board, graphics=False)
        if computing is None:
            return None
        drawing = self._list_processes(board, graphics=True) or ()
        found = {process.pid: process for process in (*drawing, *computing)}
        return tuple(found[pid] for pid in sorted(found))

    def _list_processes(self, board: Board, *, graphics: bool) -> list[GpuProcess] | None:
        function = f"nvmlDeviceGet{'Graphics' if graphics else 'Compute'}RunningProcesses"
        answer = self._call_remembering(board, board.name, function, ())
        if not isinstance(answer, list):
            return None
        return [_process(entry, graphics=graphics) for entry in answer if isinstance(entry, dict)]

    def _read_values(
        self, board: Board, name: str, reads: tuple[Read, ...]
    ) -> Iterator[tuple[str, float]]:
        taken: set[str] = set()
        for read in reads:
            if taken.issuperset(read.quantities):
                continue  # an older spelling of what a newer call has already answered
            answer = self._call_remembering(board, name, read.function, read.args)
            if answer is None:
                continue
            for quantity, value in read.take(answer):
                if QUANTITIES[quantity].admits(value):
                    taken.add(quantity)
                    yield quantity, value
                else:
                    self._dropped["out_of_range"] += 1

    def _call_remembering(
        self, board: Board, name: str, function: str, args: tuple[int, ...]
    ) -> Plain:
        key = (function, name, args)
        if key in board.unsupported:
            return None
        try:
            return self._library.call(function, name, *args)
        except NvmlError as error:
            if error.code in NEVER_AGAIN:
                board.unsupported.add(key)
            elif error.code in (nvml.GPU_IS_LOST, nvml.RESET_REQUIRED, *DRIVER_GONE):
                raise
            else:
                self._dropped[error.name] += 1
            return None

    def _drain_events(self) -> Iterator[Xid]:
        for _ in range(MAX_EVENTS):
            event = self._next_event()
            if not isinstance(event, dict):
                return
            uuid = self._uuids.get(str(event["device"]))
            if uuid is not None:
                yield Xid(uuid=uuid, code=integer(event["xid"]))

    def _next_event(self) -> Plain:
        try:
            return self._library.call("nvmlEventSetWait")
        except NvmlError as error:
            if error.code not in (nvml.TIMEOUT, *NEVER_AGAIN):
                self._dropped[f"event_{error.name}"] += 1
            return None


def _process(entry: dict[str, Plain], *, graphics: bool) -> GpuProcess:
    memory, instance = entry.get("usedGpuMemory"), entry.get("gpuInstanceId")
    return GpuProcess(
        pid=integer(entry["pid"]),
        memory_bytes=memory if isinstance(memory, int) else None,
        gpu_instance=instance if isinstance(instance, int) else None,
        graphics=graphics,
    )


def _unavailable(error: NvmlError) -> SourceUnavailableError:
    advice = ADVICE.get(error.code, "see the driver's messages in `dmesg`")
    return SourceUnavailableError(f"NVML is not available: {error.name}; {advice}")
