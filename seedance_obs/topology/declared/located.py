"""A mapping that knows its line: what the readers of YAML and JSON have in common."""

from collections.abc import Callable
from math import isnan

from seedance_obs.topology.declared.findings import shown

Note = Callable[[int, str], None]


class Mapped(dict[str, object]):
    """A mapping of a document; `line` (from 1) is where it begins."""

    __slots__ = ("line",)
    line: int


def described(value: object) -> str:
    """A value of a document in words, for a sentence that says what was found instead."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(shown(value)) if value else "an empty text"
    if isinstance(value, int):
        return f"the number {shown(str(value))}"
    if isinstance(value, float):
        return "a number" if isnan(value) else f"the number {value:g}"
    return "a list" if isinstance(value, list) else "a mapping"
