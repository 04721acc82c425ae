"""The real binding in a child process, because LD_LIBRARY_PATH is read when a process starts."""

import json
import select
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from seedance_obs.sources.nvml.binding import PynvmlLibrary
from seedance_obs.sources.nvml.library import NvmlError, Plain

PATIENCE_S = 60.0


class NoAnswerError(Exception):
    """The child did not answer in time: its call hangs."""


class BindingInChild:
    """PynvmlLibrary behind a pipe; a context manager that never leaves its child behind."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """Answer as the child's library does.

        Raises:
            NvmlError: the child's.
            NoAnswerError: the call hangs.
        """
        self.ask(function, device, *args)
        return self.answer(patience_s=PATIENCE_S)

    def ask(self, function: str, device: str | None = None, *args: int) -> None:
        """Send a call without waiting for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([function, device, *args]) + "\n")

    def answer(self, *, patience_s: float) -> Plain:
        """The answer to the call sent last."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], patience_s)
        if not readable:
            raise NoAnswerError
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            raise NvmlError(reply["error"])
        answer: Plain = reply["answer"]
        return answer


def _serve() -> None:
    library = PynvmlLibrary()
    for line in sys.stdin:
        function, device, *args = json.loads(line)
        try:
            reply: dict[str, Plain] = {"answer": library.call(function, device, *args)}
        except NvmlError as error:
            reply = {"error": error.code}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
