"""How much of a host's memory is in use, page cache and what else can be freed left out."""

import re
from pathlib import Path

from seedance_obs.sources.small_files import read_bytes

_HEAD_BYTES = 4096  # both lines are among the first
_LINE = re.compile(rb"^(MemTotal|MemAvailable):\s+(\d{1,18}) kB$", re.MULTILINE)


class MemoryUse:
    """Reads `/proc/meminfo` under a root such as `/host`."""

    def __init__(self, root: str | Path) -> None:
        self._file = str(Path(root) / "proc/meminfo")

    def read(self) -> float | None:
        """The share (0 to 1) of memory in use now: (MemTotal - MemAvailable) / MemTotal.

        None where either is not told. Kernels before 3.14 lack MemAvailable; what could be freed
        there is not guessed from other lines.
        """
        found = dict(_LINE.findall(read_bytes(self._file, _HEAD_BYTES) or b""))
        if len(found) < 2:
            return None
        total, available = int(found[b"MemTotal"]), int(found[b"MemAvailable"])
        return (total - available) / total if 0 < total >= available else None
