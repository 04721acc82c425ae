"""What one pass over many processes costs in CPU time, and how it is printed."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PASSES = 7
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Cost:
    """What one pass over all processes costs; `first` is the pass that meets them."""

    name: str
    processes: int
    seconds: float
    first: float
    rss_bytes: int

    @property
    def micros(self) -> float:
        """CPU microseconds a process."""
        return self.seconds / self.processes * 1e6

    def __str__(self) -> str:
        return (
            f"  {self.name:28} {self.seconds * 1e3:9.1f} ms {self.micros:8.2f} us a process"
            f"   first {self.first * 1e3:8.1f} ms   RSS {self.rss_bytes / 2**20:6.1f} MiB"
        )


def nothing() -> None:
    """What most passes need before them."""


def ours(
    name: str,
    pids: Sequence[int],
    work: Callable[[], object],
    *,
    before: Callable[[], object] = nothing,
) -> Cost:
    """What a pass of our own costs in this process, without what is done `before` each."""
    spent = []
    for _ in range(PASSES + 1):
        before()
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return Cost(name, len(pids), min(spent[1:]), spent[0], rss_bytes(os.getpid()))


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
