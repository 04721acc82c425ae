"""An NVML on paper: a recording library writes every call and its answer, a replay gives them back.

A recording is JSON Lines. Each call makes two lines, one before it and one with its outcome:

    {"function": "nvmlDeviceGetPowerUsage", "device": "gpu0", "args": []}
    {"function": "nvmlDeviceGetPowerUsage", "device": "gpu0", "args": [], "ms": 0.12, "answer": 98}

with `"error": code` in place of `"answer"` where NVML refused. A call whose second line does not
follow never returned: that is how a capture of a hung driver shows which call hung. `settled`
drops the first lines of what did return and writes `"hung": true` into those that did not.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from seedance_obs.errors import UsageError
from seedance_obs.sources.nvml.library import (
    FUNCTION_NOT_FOUND,
    TIMEOUT,
    NvmlError,
    NvmlLibrary,
    Plain,
)

_FOREVER_S = 10.0**9
_UNRECORDED = {"nvmlEventSetWait": TIMEOUT, "nvmlShutdown": None}

# Their argument is where the reader left off, which a replay does not repeat to the microsecond.
_OF_A_MOMENT = ("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetVgpuUtilization")

Call = tuple[str, str | None, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call as its line says: begun only, answered, refused with `error`, or `hung`."""

    call: Call
    line: str
    begun: bool = False
    hung: bool = False
    error: int | None = None
    answer: Plain = None


class RecordingLibrary:
    """Passes calls on and writes them down.

    `write_line` gets each line without a newline and has to flush it: what it keeps back is lost
    when a call hangs.
    """

    def __init__(
        self,
        inner: NvmlLibrary,
        write_line: Callable[[str], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._write_line = write_line
        self._monotonic = monotonic

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """Answer as the inner library does.

        Raises:
            NvmlError: the inner library's, after it was written down.
        """
        entry: dict[str, Plain] = {"function": function, "device": device, "args": args}
        self._write_line(json.dumps(entry))
        started = self._monotonic()
        try:
            answer = self._inner.call(function, device, *args)
        except NvmlError as error:
            self._write_line(json.dumps({**entry, **self._took(started), "error": error.code}))
            raise
        self._write_line(json.dumps({**entry, **self._took(started), "answer": answer}))
        return answer

    def _took(self, started: float) -> dict[str, float]:
        return {"ms": round((self._monotonic() - started) * 1000, 3)}


class ReplayLibrary:
    """Answers as recorded: identical calls in their order, then the last answer for ever.

    Calls for the samples since a moment are identical whatever the moment.

    What was not recorded is FUNCTION_NOT_FOUND; events that were not recorded are none (TIMEOUT),
    and a recorded event comes once.
    """

    def __init__(
        self, lines: Iterable[str], *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._sleep = sleep
        self._outcomes: dict[Call, deque[RecordedCall]] = {}
        for recorded in read_calls(lines):
            self._outcomes.setdefault(_asked(recorded.call), deque()).append(recorded)

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """Answer as recorded; a call that hung sleeps for years.

        Raises:
            NvmlError: the recorded one, or that nothing was recorded.
        """
        outcome = self._next(_asked((function, device, args)))
        if outcome.hung:
            self._sleep(_FOREVER_S)
            raise NvmlError(TIMEOUT)
        if outcome.error is not None:
            raise NvmlError(outcome.error)
        return outcome.answer

    def _next(self, call: Call) -> RecordedCall:
        outcomes = self._outcomes.get(call, deque())
        if len(outcomes) > 1 or (outcomes and call[0] == "nvmlEventSetWait"):
            return outcomes.popleft()
        if outcomes:
            return outcomes[0]
        return RecordedCall(call, "", error=_UNRECORDED.get(call[0], FUNCTION_NOT_FOUND))


def _asked(call: Call) -> Call:
    function, device, _ = call
    return (function, device, ()) if function in _OF_A_MOMENT else call


def settled(lines: Iterable[str]) -> Iterator[str]:
    """The recording with one line for each call."""
    for recorded in read_calls(lines):
        yield (
            json.dumps({**json.loads(recorded.line), "hung": True})
            if recorded.hung
            else recorded.line
        )


def read_calls(lines: Iterable[str]) -> Iterator[RecordedCall]:
    """The calls of a recording, in the order in which they ended or hung.

    Raises:
        UsageError: a line is not one of a recording.
    """
    begun: RecordedCall | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        recorded = _parsed(line.strip(), number=number)
        if begun is not None and (recorded.begun or recorded.call != begun.call):
            yield replace(begun, hung=True)
        begun = recorded if recorded.begun else None
        if not recorded.begun:
            yield recorded
    if begun is not None:
        yield replace(begun, hung=True)


def _parsed(line: str, *, number: int) -> RecordedCall:
    try:
        entry = json.loads(line)
        error, hung = entry.get("error"), entry.get("hung", False)
        begun = not hung and "answer" not in entry and error is None
        call = (str(entry["function"]), entry["device"], tuple(int(arg) for arg in entry["args"]))
        return RecordedCall(call, line, begun, hung, error, entry.get("answer"))
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise UsageError(
            f"line {number} of the NVML recording is not a recorded call: {line[:80]!r}"
        ) from fault
