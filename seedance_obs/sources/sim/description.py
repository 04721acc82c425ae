"""Reads one mapping of a YAML description, and says where and what was wanted when it is wrong."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import NoReturn

from seedance_obs.errors import UsageError

REQUIRED = object()


class Section:
    """A mapping of a description. Every key must be asked for before `close`."""

    def __init__(self, value: object, *, file: str, path: str = "") -> None:
        self._file = file
        self._path = path
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            self.reject(None, f"a mapping is wanted, found {_shown(value)}")
        self._value: Mapping[str, object] = value
        self._asked: set[str] = set()

    def reject(self, key: str | None, complaint: str) -> NoReturn:
        """Refuse the description because of one key, or of the whole section.

        Raises:
            UsageError: always; names the file and the path of the key.
        """
        where = ".".join(part for part in (self._path, key) if part) or "the top"
        raise UsageError(f"{self._file}: {where}: {complaint}")

    def _get(self, key: str, wanted: str, default: object) -> object:
        self._asked.add(key)
        value = self._value.get(key)
        if value is None and default is REQUIRED:
            self.reject(key, f"missing, {wanted} is wanted")
        return default if value is None else value

    def text(self, key: str, default: object = REQUIRED) -> str:
        """A string; a missing key is an error unless there is a default."""
        value = self._get(key, "text", default)
        if not isinstance(value, str):
            self.reject(key, f"text is wanted (in quotes), found {_shown(value)}")
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None where the key is missing."""
        return self.text(key, "") or None

    def flag(self, key: str) -> bool:
        """A boolean; False where the key is missing."""
        value = self._get(key, "true or false", default=False)
        if not isinstance(value, bool):
            self.reject(key, f"true or false is wanted, found {_shown(value)}")
        return value

    def integer(self, key: str, default: object = REQUIRED, *, low: int = 0) -> int:
        """A whole number from `low` on."""
        value = self._get(key, "a whole number", default)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            self.reject(key, f"a whole number of at least {low} is wanted, found {_shown(value)}")
        return value

    def optional_integer(self, key: str) -> int | None:
        """A whole number from 0 on, or None where the key is missing."""
        return self.integer(key) if self._get(key, "", None) is not None else None

    def number(
        self, key: str, default: object = REQUIRED, *, low: float = 0.0, high: float = 1e12
    ) -> float:
        """A finite number within [low, high]."""
        return self._number(key, self._get(key, "a number", default), low, high)

    def optional_number(self, key: str, *, low: float = 0.0) -> float | None:
        """A finite number from `low` on, or None where the key is missing."""
        value = self._get(key, "", None)
        return None if value is None else self._number(key, value, low, 1e12)

    def _number(self, key: str, value: object, low: float, high: float) -> float:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not isfinite(value)
            or not low <= value <= high
        ):
            self.reject(key, f"a number from {low:g} to {high:g} is wanted, found {_shown(value)}")
        return float(value)

    def list_of(self, key: str, wanted: str) -> list[object]:
        """A list; empty where the key is missing."""
        value = self._get(key, wanted, [])
        if not isinstance(value, list):
            self.reject(key, f"{wanted} is wanted, found {_shown(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty where the key is missing."""
        items = self.list_of(key, "a list of texts")
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.reject(f"{key}[{index}]", f"text is wanted, found {_shown(item)}")
        return tuple(str(item) for item in items)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers from 0 on; empty where the key is missing."""
        items = self.list_of(key, "a list of whole numbers")
        found: list[int] = []
        for index, item in enumerate(items):
            if isinstance(item, bool) or not isinstance(item, int) or item < 0:
                self.reject(f"{key}[{index}]", f"a whole number is wanted, found {_shown(item)}")
            found.append(item)
        return tuple(found)

    def section(self, key: str) -> "Section | None":
        """A mapping below this one, or None where the key is missing."""
        value = self._get(key, "a mapping", None)
        return None if value is None else Section(value, file=self._file, path=self._below(key))

    def sections(self, key: str) -> Iterator["Section"]:
        """Each mapping of a list; none where the key is missing."""
        for index, item in enumerate(self.list_of(key, "a list of mappings")):
            yield Section(item, file=self._file, path=f"{self._below(key)}[{index}]")

    def names(self) -> tuple[str, ...]:
        """The keys as written, for a section whose keys are names."""
        return tuple(self._value)

    def close(self) -> None:
        """Refuse what nobody asked for.

        Raises:
            UsageError: the section has an unknown key.
        """
        for key in self._value:
            if key not in self._asked:
                known = ", ".join(sorted(self._asked))
                self.reject(key, f"unknown key; known here: {known}")

    def _below(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
