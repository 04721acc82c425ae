"""The process that owns the driver: reads when asked, exits when its parent is gone.

NVML calls can block for ever, in states where no signal reaches the caller. So they happen here,
and whoever waits for the answer can give up, kill this process and start another.
"""

import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from seedance_obs.errors import SeedanceError, UsageError
from seedance_obs.processes import die_with_parent
from seedance_obs.sources.nvml.library import NvmlLibrary
from seedance_obs.sources.nvml.reader import NvmlReader


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


def serve(connection: Connection, spec: str) -> None:
    """Answer each request with a snapshot, or with one sentence and the end of this process."""
    reader: NvmlReader | None = None
    try:
        while True:
            connection.recv()
            if reader is None:
                reader = NvmlReader(open_library(spec))
                reader.start()
            connection.send(reader.read())
    except SeedanceError as error:
        connection.send(str(error))
    except (EOFError, ConnectionError):
        pass  # the parent has closed its end: let go of the driver
    if reader is not None:
        reader.stop()


def main() -> None:
    """Run as `python -m seedance_obs.sources.nvml.worker FD SPEC`."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])), sys.argv[2])


if __name__ == "__main__":
    main()
