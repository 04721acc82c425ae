"""The process that owns the driver: reads when asked, exits when its parent is gone.

NVML calls can block for ever, in states where no signal reaches the caller. So they happen here,
and whoever waits for the answer can give up, kill this process and start another.
"""

import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from seedance_obs.errors import SeedanceError, UsageError
from seedance_obs.processes import die_with_parent
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.fast_threads import FastThreads
from seedance_obs.sources.nvml.library import NvmlLibrary
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.wrapping import Unwrapped

PATIENCE_SECONDS = 1.0


def open_library(spec: str) -> NvmlLibrary:
    """The library behind `pynvml`, `sim:MACHINE@EPOCH` or `replay:FILE`.

    Imports only what the spec needs: a node with a driver never loads the simulator.

    Raises:
        UsageError: the machine or the recording cannot be read.
    """
    kind, _, argument = spec.partition(":")
    if kind == "sim":
        from seedance_obs.sources.sim.fleet import open_sim

        return open_sim(argument)
    if kind == "replay":
        from seedance_obs.sources.nvml.recording import ReplayLibrary

        return ReplayLibrary(_recorded_lines(Path(argument)))
    from seedance_obs.sources.nvml.binding import PynvmlLibrary

    return PynvmlLibrary()


def _recorded_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the NVML recording {file}: {error}") from error


class _Reading:
    """The passes, and where they are wanted the threads of the fast loop beside them."""

    def __init__(self, spec: str, fast_interval_seconds: float | None) -> None:
        library = open_library(spec)
        fast = None
        if fast_interval_seconds is not None:
            fast = FastReader(
                library,
                interval_seconds=fast_interval_seconds,
                monotonic=time.monotonic,
                unwrapped=Unwrapped(),
            )
        self.passes = NvmlReader(library, fast=fast)
        self._threads = None if fast is None else FastThreads(fast)

    def start(self) -> None:
        """Initialise the driver, then read it.

        Raises:
            SourceUnavailableError: it cannot be used.
        """
        self.passes.start()
        if self._threads is not None:
            self._threads.start()

    def stop(self) -> None:
        """Let go of the driver, unless a thread hangs in it."""
        if self._threads is None or self._threads.stop(patience_seconds=PATIENCE_SECONDS):
            self.passes.stop()


def serve(connection: Connection, spec: str, *, fast_interval_seconds: float | None = None) -> None:
    """Answer each request with a snapshot, or with one sentence and the end of this process.

    With `fast_interval_seconds` the snapshots have flows, which threads gather in between.
    """
    reading: _Reading | None = None
    try:
        while True:
            connection.recv()
            if reading is None:
                reading = _Reading(spec, fast_interval_seconds)
                reading.start()
            connection.send(reading.passes.read())
    except SeedanceError as error:
        connection.send(str(error))
    except (EOFError, ConnectionError):
        pass  # the parent has closed its end: let go of the driver
    if reading is not None:
        reading.stop()


def main() -> None:
    """Run as `python -m seedance_obs.sources.nvml.worker FD SPEC [FAST_INTERVAL_SECONDS]`."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, spec, *interval = sys.argv[1:]
    fast = float(interval[0]) if interval else None
    serve(Connection(int(descriptor)), spec, fast_interval_seconds=fast)


if __name__ == "__main__":
    main()
