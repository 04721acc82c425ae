"""Real processes that hold exactly what a test asks for: descriptors, memory, children, a pid."""

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chosen_pid import start_as

PROGRAM = Path(__file__).with_name("puppet_program.py")
PATIENCE_SECONDS = 60.0


class PuppetError(Exception):
    """A puppet did not do as it was told."""


class Puppet:
    """A process that does as it is told, and has done so when a call returns.

    Memory is held in whole pages, rounded down. File names may not hold spaces.
    """

    def __init__(self, pid: int, ask: Callable[[str], str]) -> None:
        self.pid = pid
        self._ask = ask

    def fds(self, count: int) -> None:
        """Hold exactly so many open descriptors, its own included."""
        self._do(f"fds {count}")

    def anon(self, size: int) -> None:
        """Hold and touch so many bytes of anonymous memory, beyond its interpreter's."""
        self._do(f"anon {size}")

    def advised(self, size: int) -> None:
        """The same in an area of its own, in transparent huge pages where the kernel has them."""
        self._do(f"advised {size}")

    def shm(self, size: int) -> None:
        """Hold and touch so many bytes of shared memory."""
        self._do(f"shm {size}")

    def huge(self, size: int) -> bool:
        """Hold and touch so many bytes of huge pages; False where the machine has none to give."""
        return self._answer(f"huge {size}") == "done"

    def map(self, file: Path, size: int | None = None) -> None:
        """Map a file privately and read the first bytes of it, or all, besides what it has read."""
        self._do(f"map {'all' if size is None else size} {file}")

    def spin(self, seconds: float) -> None:
        """Use so much CPU time."""
        self._do(f"spin {seconds}")

    def fork(self) -> "Puppet":
        """Its child, a puppet too, which ends when its parent does."""
        pid = int(self._answer("fork"))
        child = Puppet(pid, lambda line: self._ask(f"tell {pid} {line}"))
        child._do("ready")
        return child

    def exit(self) -> None:
        """End, with all children. A child is reaped by then, another when its block ends."""
        self._ask("exit")

    def _do(self, line: str) -> None:
        answer = self._answer(line)
        if answer != "done":
            raise PuppetError(f"{line}: {answer}")

    def _answer(self, line: str) -> str:
        answer = self._ask(line)
        if not answer or answer.startswith(("error", "gone")):
            raise PuppetError(f"{line}: {answer or 'it has ended'}")
        return answer


@contextmanager
def puppet() -> Iterator[Puppet]:
    """A puppet while the block runs; it has ended and is reaped, children and all, after it."""
    with _driven(_start()) as found:
        yield found


@contextmanager
def reborn(pid: int) -> Iterator[Puppet]:
    """A puppet under a pid that is free, such as that of one whose block has ended.

    Skips the test where this process may not say which pid comes next.
    """
    with _driven(start_as(pid, _start)) as found:
        yield found


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", str(PROGRAM)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


@contextmanager
def _driven(process: subprocess.Popen[bytes]) -> Iterator[Puppet]:
    try:
        found = Puppet(process.pid, lambda line: _ask(process, line))
        found._do("ready")
        yield found
    finally:
        _end(process)


def _ask(process: subprocess.Popen[bytes], line: str) -> str:
    """One line to a process and its answer; empty when it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{line}\n".encode())
    except BrokenPipeError:
        return ""
    answers = select.poll()
    answers.register(process.stdout, select.POLLIN)
    if not answers.poll(1000 * PATIENCE_SECONDS):
        raise PuppetError(f"{line}: no answer in {PATIENCE_SECONDS:g} s")
    return process.stdout.readline().decode().strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its input, which ends it and its children; kill it where that does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
