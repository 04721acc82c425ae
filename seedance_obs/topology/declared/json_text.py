"""JSON and JSON Lines with the line of every object, at the speed of the C scanner.

An object's line is not among what the scanner tells. It does tell of each object when that object
ends, and a search for braces outside of strings finds the ends in the same order.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator

from seedance_obs.errors import UsageError
from seedance_obs.topology.declared.located import Mapped, Note

_LOOKS_LIKE_JSON = re.compile(r'\s*+\{\s*+["}]')
_BETWEEN = re.compile(r"(?:\s|---(?=\s|$))*+")
_TO_BRACE_OR_BREAK = re.compile(r'[^"{}\n]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\n]*+)*+([{}\n])')


def looks_like_json(text: str) -> bool:
    """Whether a text begins as a JSON object does."""
    return _LOOKS_LIKE_JSON.match(text) is not None


def read_json(file: str, text: str, note: Note) -> Iterator[tuple[int, object]]:
    """Every document of a text with its line: one, one a line, or one after the other.

    `note` is told of keys that occur twice.

    Raises:
        UsageError: the text is not JSON; the message has file, line and column.
    """
    lines = _lines_in_order_of_end(text)

    def located(pairs: list[tuple[str, object]]) -> Mapped:
        value = Mapped(pairs)
        value.line = next(lines)
        if len(value) != len(pairs):
            times = Counter(key for key, _ in pairs)
            for key in (key for key in times if times[key] > 1):
                note(value.line, key)
        return value

    decode = json.JSONDecoder(object_pairs_hook=located).raw_decode
    line, counted = 1, 0
    at = _end_of_gap(text, 0)
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = decode(text, at)
        except (ValueError, RecursionError) as error:
            raise UsageError(_refusal(file, line, error)) from error
        yield line, value
        at = _end_of_gap(text, end)


def _end_of_gap(text: str, start: int) -> int:
    gap = _BETWEEN.match(text, start)
    return gap.end() if gap else start


def _lines_in_order_of_end(text: str) -> Iterator[int]:
    line = 1
    begun = []
    for match in _TO_BRACE_OR_BREAK.finditer(text):
        found = match[1]
        if found == "{":
            begun.append(line)
        elif found == "}":
            yield begun.pop()
        else:
            line += 1


def _refusal(file: str, line: int, error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{file}:{error.lineno}:{error.colno}: is not JSON: {error.msg}"
    if isinstance(error, RecursionError):
        return f"{file}:{line}:1: is nested too deeply"
    return f"{file}:{line}:1: is not JSON: {error}"
