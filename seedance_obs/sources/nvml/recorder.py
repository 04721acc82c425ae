"""The process that records a driver for `capture`: it may hang, and is then killed from outside."""

import sys
import time
from pathlib import Path

from seedance_obs.errors import SeedanceError
from seedance_obs.processes import die_with_parent
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.recording import RecordingLibrary
from seedance_obs.sources.nvml.worker import open_library


def record(spec: str, file: Path, *, passes: int, pause_seconds: float) -> None:
    """Write every call of some passes over the GPUs to a file, each line as it happens.

    Raises:
        SourceUnavailableError: the driver refused; the recording shows how.
    """
    with file.open("w", encoding="utf-8", buffering=1) as stream:
        library = RecordingLibrary(open_library(spec), lambda line: print(line, file=stream))
        reader = NvmlReader(library)
        reader.start()
        for number in range(passes):
            if number:
                time.sleep(pause_seconds)
            reader.read()
        reader.stop()


def main() -> None:
    """Run as `python -m seedance_obs.sources.nvml.recorder SPEC FILE PASSES PAUSE_SECONDS`."""
    die_with_parent()
    spec, file, passes, pause = sys.argv[1:]
    try:
        record(spec, Path(file), passes=int(passes), pause_seconds=float(pause))
    except SeedanceError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
