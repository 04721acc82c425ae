"""NVML as a source that cannot hang its caller: a worker process, a deadline and a back-off."""

import logging
import subprocess
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from seedance_obs.errors import DriverReleasedError, SourceUnavailableError
from seedance_obs.processes import kill_process, python_command, python_environment
from seedance_obs.sources.readings import SourceSnapshot

LOG = logging.getLogger(__name__)
MAX_ABANDONED = 3
LONGEST_BACKOFF_SECONDS = 60.0
KILL_GRACE_SECONDS = 1.0


class NvmlSource:
    """The driver, read through a worker process that is killed when it misses its deadline.

    `release_file`: while it exists, no worker runs and no driver handle is held.
    `fast_interval_seconds`: how often the worker reads what bursts, None for never.
    """

    name = "nvml"

    def __init__(
        self,
        library: str,
        *,
        start_deadline_seconds: float,
        deadline_seconds: float,
        release_file: Path | None = None,
        fast_interval_seconds: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = library
        self._start_deadline_seconds = start_deadline_seconds
        self._deadline_seconds = deadline_seconds
        self._release_file = release_file
        self._fast_interval_seconds = fast_interval_seconds
        self._monotonic = monotonic
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._abandoned: list[subprocess.Popen[bytes]] = []
        self._failures = 0
        self._not_before = 0.0
        self._last_reason = ""
        self.restarts = 0

    @property
    def abandoned(self) -> int:
        """Workers that sit in an uninterruptible driver call and cannot be killed."""
        self._abandoned = [process for process in self._abandoned if process.poll() is None]
        return len(self._abandoned)

    def read(self) -> SourceSnapshot:
        """One snapshot of all GPUs.

        Raises:
            SourceUnavailableError: hung, absent, released or backing off; the message says which.
        """
        if self._release_file is not None and self._release_file.exists():
            self.close()
            self._failures, self._not_before = 0, 0.0
            raise DriverReleasedError(
                f"NVML is released: remove {self._release_file} to read the driver again"
            )
        if self._monotonic() < self._not_before:
            raise SourceUnavailableError(self._last_reason)
        try:
            snapshot = self._ask()
        except SourceUnavailableError as error:
            self._back_off(str(error))
            raise
        self._failures = 0
        return snapshot

    def close(self) -> None:
        """Let go of the driver: the worker shuts NVML down, or is killed."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return
        try:
            process.wait(timeout=KILL_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill(process)

    def _ask(self) -> SourceSnapshot:
        fresh = self._process is None
        connection = self._connection or self._start()
        deadline = self._start_deadline_seconds if fresh else self._deadline_seconds
        try:
            connection.send(None)
            if not connection.poll(deadline):
                raise SourceUnavailableError(
                    f"NVML did not answer within {deadline:g} s: the driver hangs; its worker was "
                    "killed and will be started again (look for NVRM lines in `dmesg`)"
                )
            answer = connection.recv()
        except (EOFError, OSError) as error:
            raise SourceUnavailableError(
                "the NVML worker ended while it was reading; it will be started again"
            ) from error
        if isinstance(answer, SourceSnapshot):
            return answer
        raise SourceUnavailableError(str(answer))

    def _start(self) -> Connection:
        if self.abandoned >= MAX_ABANDONED:
            raise SourceUnavailableError(
                f"{MAX_ABANDONED} NVML workers sit in uninterruptible driver calls: no more are "
                "started until one ends; this node's driver needs a reset or a reboot"
            )
        ours, theirs = Pipe()
        fast = self._fast_interval_seconds
        with theirs:
            self._process = subprocess.Popen(
                python_command(
                    "seedance_obs.sources.nvml.worker",
                    str(theirs.fileno()),
                    self._library,
                    *(() if fast is None else (str(fast),)),
                ),
                env=python_environment(),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        self._connection = ours
        return ours

    def _back_off(self, reason: str) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            self._kill(process)
            self.restarts += 1
        delay = min(LONGEST_BACKOFF_SECONDS, 2.0 ** min(self._failures, 10))
        self._failures += 1
        self._last_reason = reason
        self._not_before = self._monotonic() + delay

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        if not kill_process(process, grace_seconds=KILL_GRACE_SECONDS):
            LOG.error("event=nvml_worker_abandoned pid=%d reason=uninterruptible", process.pid)
            self._abandoned.append(process)
