"""Real processes that are related as a test wants, and end when it does."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from seedance_obs.processes import stop_process

_SECONDS = 30  # never waited for but where something is wrong
_BEGINNING = """
import ctypes, json, os, sys, threading

def tell(**told):
    os.write(1, json.dumps(told).encode() + b"\\n")

def rest():
    while os.read(0, 1): pass

def child(act=rest):
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid

def child_of_child():
    r, w = os.pipe()
    def middle():
        os.write(w, str(child()).encode())
    os.waitpid(child(middle), 0)
    return int(os.read(r, 32))

def adopt_orphans():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
"""


@dataclass(frozen=True)
class Family:
    """The first process, and what it tells, a line of JSON at a time."""

    first: subprocess.Popen[bytes]
    _stdin: IO[bytes]
    _stdout: IO[bytes]

    @property
    def pid(self) -> int:
        return self.first.pid

    def told(self) -> dict[str, int]:
        assert select.select([self._stdout], [], [], _SECONDS)[0], "nobody tells anything"
        line = self._stdout.readline()
        assert line, "the first process has failed"
        found: dict[str, int] = json.loads(line)
        return found

    def poke(self) -> None:
        """Give a byte to whoever reads one, which must be one process only."""
        self._stdin.write(b".")


@contextmanager
def family(program: str, *wrapper: str) -> Iterator[Family]:
    """Run a program of `child`, `tell` and so on in a session of its own; `rest` ends with it."""
    command = [*wrapper, sys.executable, "-I", "-S", "-c", _BEGINNING + program]
    first = subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert first.stdin is not None
    assert first.stdout is not None
    with first.stdin, first.stdout:
        try:
            yield Family(first, first.stdin, first.stdout)
        finally:
            first.stdin.close()  # which ends it
            stop_process(first, grace_seconds=_SECONDS)


def can_unshare() -> bool:
    """Whether this machine lets us make namespaces."""
    if os.geteuid() != 0:
        return False
    made = subprocess.run(["unshare", "--mount", "--net", "true"], check=False, capture_output=True)
    return made.returncode == 0
