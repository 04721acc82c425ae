"""JSON of strangers: every value as the type that is wanted, empty where it is another."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

Json: TypeAlias = object
JsonObject: TypeAlias = Mapping[str, Json]


def mapping(value: Json) -> JsonObject:
    """An object, empty if it is none."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Json) -> tuple[JsonObject, ...]:
    """The objects of a list."""
    if not isinstance(value, list):
        return ()
    return tuple(each for each in value if isinstance(each, Mapping))


def text(value: Json) -> str:
    """A text, empty if it is none."""
    return value if isinstance(value, str) else ""


def whole(value: Json) -> int | None:
    """A whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def at(value: Json, *path: str) -> Json:
    """What objects in each other hold under these names; None where one is missing."""
    for name in path:
        value = mapping(value).get(name)
    return value


def texts_under(value: Json, name: str = "") -> Iterator[str]:
    """Every text in a value, however deep; with a name, only those that are called so."""
    left: list[tuple[str, Json]] = [("", value)]
    while left:
        called, each = left.pop()
        if isinstance(each, Mapping):
            left += [(str(key), inner) for key, inner in each.items()]
        elif isinstance(each, list):
            left += [(called, inner) for inner in each]
        elif isinstance(each, str) and name in ("", called):
            yield each
