"""Real processes that hold what a test tells them to."""

import mmap
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MIB = 2**20
PAGE = mmap.PAGESIZE
_OBEY = """\
import mmap, os, sys
held = []
for line in sys.stdin:
    exec(line)
    print(flush=True)
"""


class HoldingProcess:
    """A child process that runs lines of Python; what it puts in `held` stays."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _OBEY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.run("pass")

    def run(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "\n", f"the child failed at {line}"

    def open_fds(self, count: int) -> None:
        self.run(f"held += [os.open('/dev/null', 0) for _ in range({count})]")

    def touch(self, size: int, *, flags: str = "MAP_PRIVATE | mmap.MAP_ANONYMOUS") -> None:
        self.run(f"m = mmap.mmap(-1, {size}, flags=mmap.{flags}); held.append(m)")
        self.run(f"m[::{PAGE}] = b'x' * ({size} // {PAGE})")

    def read_mapped(self, file: Path) -> None:
        self.run(f"f = os.open({str(file)!r}, os.O_RDONLY)")
        self.run("m = mmap.mmap(f, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ); held.append(m)")
        self.run(f"m[::{PAGE}]")

    def kill(self) -> None:
        """End it; its pid is free when this returns."""
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()


@contextmanager
def holding_process() -> Iterator[HoldingProcess]:
    process = HoldingProcess()
    try:
        yield process
    finally:
        process.kill()
