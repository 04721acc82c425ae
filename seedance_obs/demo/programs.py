"""The programs a stack is made of: found or asked for, started, watched, and stopped for good."""

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.errors import SeedanceError, SourceUnavailableError
from seedance_obs.processes import python_environment, stop_process, tied_command

STOP_GRACE_SECONDS = 5.0
PACKAGES = {
    "prometheus": ("prometheus", ("prometheus",)),
    "alertmanager": ("prometheus-alertmanager", ("prometheus-alertmanager", "alertmanager")),
}


def find_program(name: str) -> str:
    """The path of `prometheus` or `alertmanager`.

    Raises:
        SourceUnavailableError: it is not installed; the message says how to install it.
    """
    package, spellings = PACKAGES[name]
    for spelling in spellings:
        path = shutil.which(spelling)
        if path is not None:
            return path
    raise SourceUnavailableError(
        f"{name} is not installed: on Debian or Ubuntu, `sudo apt-get install {package}`"
    )


def free_port() -> int:
    """A loopback port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Program:
    """A running child, by the name a person knows it under, and where it writes its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self) -> str:
        """The last line of its log, for the message about its end."""
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else "it said nothing"
        return "its log is gone"


class Programs:
    """Starts children that die with this process, and stops them in the reverse order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[Program] = []

    def start(self, name: str, command: Sequence[str]) -> Program:
        """Start one; its output goes to `NAME.log`."""
        log = self._folder / f"{name}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                tied_command(command),
                env=python_environment(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        program = Program(name=name, process=process, log=log)
        self._running.append(program)
        return program

    def check(self) -> None:
        """Notice a child that has ended by itself.

        Raises:
            SeedanceError: one has; the message carries its last line.
        """
        for program in self._running:
            code = program.process.poll()
            if code is not None:
                if code < 0:
                    name = signal.Signals(-code).name
                    raise SeedanceError(f"{program.name} was ended from outside by {name}")
                raise SeedanceError(
                    f"{program.name} ended with status {code}: {program.last_words()}"
                )

    def last_words_of(self, name: str) -> str:
        """The last log line of the first program whose name begins so."""
        return next(p.last_words() for p in self._running if p.name.startswith(name))

    def stop(self) -> None:
        """End every child, last started first, and wait until all are gone."""
        while self._running:
            stop_process(self._running.pop().process, grace_seconds=STOP_GRACE_SECONDS)


def wait_until(done: Callable[[], bool], programs: Programs, *, seconds: float, what: str) -> None:
    """Ask again and again until something holds.

    Raises:
        SeedanceError: it did not within the time, or a program ended meanwhile.
    """
    deadline = time.monotonic() + seconds
    while not done():
        programs.check()
        if time.monotonic() > deadline:
            raise SeedanceError(f"{what} did not happen within {seconds:g} s")
        time.sleep(0.2)
