"""Child processes that never outlive their parent, and word of those that cannot be killed."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PACKAGE_PARENT = str(Path(__file__).resolve().parent.parent)
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signal_number: int = signal.SIGKILL) -> None:
    """Ask Linux to signal this process when the thread that started it ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def tied_command(command: Sequence[str]) -> list[str]:
    """The command that runs another one, which then dies with this process.

    The child asks for that itself, after its own exec: between fork and exec a process that has
    threads of gRPC may only abort.
    """
    return python_command(__name__, str(os.getpid()), *command)


def python_command(module: str, *args: str) -> list[str]:
    """The command that runs a module of this very package, from whichever folder."""
    return [sys.executable, "-P", "-m", module, *args]


def python_environment() -> dict[str, str]:
    """This process's environment, with this package importable ahead of any other copy."""
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_PACKAGE_PARENT, path)))}


def stop_process(process: subprocess.Popen[bytes], *, grace_seconds: float) -> bool:
    """End a child: SIGTERM, then SIGKILL; False when not even that ends it (state D)."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return True
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=grace_seconds)
    return process.poll() is not None


def kill_process(process: subprocess.Popen[bytes], *, grace_seconds: float) -> bool:
    """End a child at once; False when it sits in an uninterruptible call and stays."""
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=grace_seconds)
    return process.poll() is not None


def _become(parent: int, command: list[str]) -> None:
    die_with_parent()
    if os.getppid() == parent:  # else it has ended already
        os.execvp(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
