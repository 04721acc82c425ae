"""Processes under a pid that was another's, as a kernel that hands pids on makes them."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
PATIENCE_SECONDS = 60.0  # others on the machine may take the pid first, and hold it for a while


def start_as(pid: int, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """What `start` starts, under a pid that is free.

    Skips the test where this process may not say which pid comes next: that takes root, and a
    kernel with checkpointing.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            LAST_PID.write_text(f"{pid - 1}")
        except OSError as error:
            pytest.skip(f"the next pid cannot be chosen here: {error}")
        process = start()
        if process.pid == pid:
            return process
        process.kill()
        process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"no process got the pid {pid} in {PATIENCE_SECONDS} s: is it free?")


@contextmanager
def stranger(pid: int) -> Iterator[None]:
    """Let another process, which does nothing, have a pid that is free."""
    process = start_as(pid, lambda: subprocess.Popen(["sleep", "600"]))
    try:
        yield
    finally:
        process.kill()
        process.wait()
