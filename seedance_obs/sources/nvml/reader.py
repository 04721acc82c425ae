"""One pass over all GPUs through NVML: every call optional, every fault kept to its device.

Knows which answers mean "do not ask every time" (NOT_SUPPORTED, asked again when the board is
described anew or its MIG mode changes), which mean that one GPU is gone, and which mean that the
driver itself went away.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.flow import Flow
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.asking import (
    DRIVER_GONE,
    NEVER_AGAIN,
    fields,
    integer,
    optional,
)
from seedance_obs.sources.nvml.board import Board, describe
from seedance_obs.sources.nvml.calls import Calls
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.mean_rates import MeanRates
from seedance_obs.sources.nvml.mig import read_board_slices, read_mig_devices
from seedance_obs.sources.nvml.nvlinks import links_changed, read_nvlinks
from seedance_obs.sources.nvml.pairs import Pairs
from seedance_obs.sources.nvml.processes import read_processes
from seedance_obs.sources.nvml.reads import (
    ACTIVITY_READS,
    BOARD_READS,
    COUNTER_READS,
    RECOVERY_ACTION,
    WRAPPING,
)
from seedance_obs.sources.nvml.samples import PID_MAX, SampleReader
from seedance_obs.sources.nvml.vgpus import read_vgpus, vgpu_samples
from seedance_obs.sources.nvml.wrapping import Unwrapped
from seedance_obs.sources.readings import (
    GpuPair,
    GpuReadings,
    ProcessUse,
    SourceSnapshot,
    Xid,
)

LOG = logging.getLogger(__name__)
STATIC_PASSES = 60
MAX_EVENTS = 256

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
    """Reads a whole node through one NVML library; `read` is one pass.

    `fast` reads the same library between the passes, whose snapshots take its windows along.
    """

    def __init__(
        self,
        library: NvmlLibrary,
        *,
        fast: FastReader | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = library
        self._fast = fast
        self._monotonic = monotonic
        self._boards: dict[int, Board] = {}
        self._pairs = Pairs()
        self._uuids: dict[str, str] = {}  # lost boards too: their last XID names them
        self._count = -1
        self._passes = 0
        self._versions: dict[str, str] = {}
        self._calls = Calls(library)
        self._process_samples = SampleReader("nvmlDeviceGetProcessUtilization", "pid", PID_MAX)
        self._vgpu_samples = vgpu_samples()
        self._unwrapped = Unwrapped() if fast is None else fast.unwrapped
        self._rates = MeanRates()
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
        self._calls.dropped = Counter()
        self._early_xids = []
        try:
            self._look_for_devices()
        except NvmlError as error:
            raise _unavailable(error) from error
        gpus = tuple(self._read_gpus())
        pairs = self._read_pairs()
        xids = (*self._early_xids, *self._drain_events())
        flows = self._take_flows()
        return SourceSnapshot(
            source="nvml",
            taken_at=self._monotonic(),
            gpus=gpus,
            xids=xids,
            versions=self._versions,
            dropped=dict(self._calls.dropped),
            pairs=pairs,
            flows=flows,
        )

    def _take_flows(self) -> tuple[Flow, ...]:
        if self._fast is None:
            return ()
        self._fast.watch(tuple(self._boards.values()))
        dropped = self._fast.take_dropped()
        if dropped:
            self._calls.dropped["windows_not_taken"] += dropped
        return self._fast.take()

    def _read_gpus(self) -> Iterator[GpuReadings]:
        for index in range(self._count):
            try:
                yield self._read_gpu(index)
            except NvmlError as error:
                if error.code in DRIVER_GONE:
                    raise _unavailable(error) from error
                board = self._boards.get(index)
                self._forget_board(index)
                self._calls.dropped[error.name] += 1
                if board is not None and error.code == nvml.RESET_REQUIRED:
                    yield from self._read_verdict(index, board)

    def _read_verdict(self, index: int, board: Board) -> Iterator[GpuReadings]:
        """A board that answers nothing else until it is reset: it is there, and says so."""
        asked = (RECOVERY_ACTION, 0)
        try:
            action = fields(self._library, board.name, asked).get(asked)
        except NvmlError as error:
            self._calls.dropped[error.name] += 1
            return
        if action is not None and QUANTITIES["recovery_action"].admits(action):
            yield GpuReadings(
                uuid=board.uuid,
                index=index,
                pci_bus_id=board.pci_bus_id,
                model=board.model,
                values={"recovery_action": action},
                facts=board.facts,
            )

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
            with nullcontext() if self._fast is None else self._fast.quiet():
                self._library.call("nvmlShutdown")
                self._library.call("nvmlInit")
            self._unwrapped.restart()
            self._rates.forget()
            count = integer(self._library.call("nvmlDeviceGetCount"))
            self._forget_boards()
        if self._passes % STATIC_PASSES == 0:
            self._forget_boards()
        self._passes += 1
        self._count = count

    def _forget_boards(self) -> None:
        self._boards.clear()
        self._pairs.forget()

    def _forget_board(self, index: int) -> None:
        self._boards.pop(index, None)
        self._pairs.forget(index)
        uuid = self._uuids.get(f"gpu{index}")
        if uuid is not None:
            self._unwrapped.restart(uuid)
            self._rates.forget(uuid)

    def _read_gpu(self, index: int) -> GpuReadings:
        board = self._boards.get(index)
        if board is None:
            board = self._boards[index] = describe(self._library, index)
            self._uuids[board.name] = board.uuid
        elif board.nvlinks and links_changed(self._library, board.name, board.nvlinks):
            # A switch that fails takes links of many boards with it, and jobs run on detours or
            # hang: nobody should wait for the next look at what seldom changes.
            board.nvlinks = read_nvlinks(self._library, board.name)
            self._pairs.forget(index)
        values = dict(board.maxima)
        self._read_mig_mode(board, values)
        values.update(self._calls.values(board, BOARD_READS))
        values.update(self._read_counters(board))
        values.update(self._calls.values(board, ACTIVITY_READS))
        devices = read_mig_devices(self._calls, board) if board.mig else []
        return GpuReadings(
            uuid=board.uuid,
            index=index,
            pci_bus_id=board.pci_bus_id,
            model=board.model,
            values=values,
            facts=board.facts,
            mig=tuple(readings for _, readings in devices),
            nvlinks=None if board.mig and not board.nvlinks else board.nvlinks,
            fabric=board.fabric,
            place=board.place,
            processes=read_processes(self._calls, board, devices),
            process_use=self._read_process_use(board),
            mig_slices=read_board_slices(self._calls, board) if board.mig else None,
            vgpus=read_vgpus(self._calls, board, self._vgpu_samples, self._monotonic()),
        )

    def _read_counters(self, board: Board) -> dict[str, float]:
        """Byte counters that go on where they wrap, with their rates since the pass before."""
        with self._unwrapped.lock:
            values = dict(self._calls.values(board, COUNTER_READS))
            at = self._monotonic()
            for name in values.keys() & set(WRAPPING):
                total = self._unwrapped.total(board.uuid, name, int(values.pop(name)), at)
                if total is not None:
                    values[name] = total
        for name in values.keys() & set(WRAPPING):
            rate = self._rates.per_second(board.uuid, name, values[name], at)
            if rate is not None:
                values[f"{name}_per_second"] = rate
        return values

    def _read_mig_mode(self, board: Board, values: dict[str, float]) -> None:
        mode = self._calls.ask(board, "nvmlDeviceGetMigMode")
        enabled = board.mig and ("nvmlDeviceGetMigMode", board.name, ()) not in board.unsupported
        if isinstance(mode, list):
            enabled = mode[0] == 1
            values["mig_enabled"] = float(enabled)
        if enabled != board.mig:
            board.mig = enabled
            board.unsupported.clear()

    def _read_process_use(self, board: Board) -> tuple[ProcessUse, ...] | None:
        shares = self._process_samples.read(self._calls, board, self._monotonic())
        if shares is None:
            return None
        return tuple(
            ProcessUse(pid, sm or 0.0, memory, encoder, decoder)
            for pid, (sm, memory, encoder, decoder) in shares.items()
        )

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
                self._calls.dropped[f"event_{error.name}"] += 1
            return None


def _unavailable(error: NvmlError) -> SourceUnavailableError:
    advice = ADVICE.get(error.code, "see the driver's messages in `dmesg`")
    return SourceUnavailableError(f"NVML is not available: {error.name}; {advice}")
