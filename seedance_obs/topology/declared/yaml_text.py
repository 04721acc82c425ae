"""YAML with the line of every mapping, built from the parser's events.

Events, because PyYAML's own composer recurses, forgets keys that occur twice, and follows aliases
however much they multiply. Nothing here is ever constructed from a tag.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from seedance_obs.errors import UsageError
from seedance_obs.topology.declared.located import Mapped, Note

MOST_ALIASED = 1_000_000  # values that aliases may add to a file

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_TAG = "tag:yaml.org,2002:"
_NO_KEY = object()


def read_yaml(file: str, text: str, note: Note) -> Iterator[tuple[int, object]]:
    """Every document of a text with its line; `note` is told of keys that occur twice.

    Raises:
        UsageError: the text is not YAML, or its aliases make too much of it; the message has file,
            line and column.
    """
    try:
        loader = _Loader(text)
        composer = _Composer(file, note)
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.DocumentEndEvent):
                yield composer.line, composer.root
            else:
                composer.take(event)
    except yaml.YAMLError as error:
        raise UsageError(_refusal(file, text, error)) from error


@dataclass(slots=True)
class _Frame:
    value: Mapped | list[object]
    anchor: str | None
    size_before: int
    key: object = _NO_KEY


class _Composer:
    """Builds one document after the other."""

    def __init__(self, file: str, note: Note) -> None:
        self._file = file
        self._note = note
        self._size = 0
        self._aliased = 0
        self._begin()

    def _begin(self) -> None:
        self.root: object = None
        self.line = 1
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[object, int]] = {}

    def take(self, event: yaml.Event) -> None:
        """The next event of the document."""
        self._size += 1
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._put(value, event)
        elif isinstance(event, yaml.MappingStartEvent):
            value = Mapped()
            value.line = _line(event)
            self._open(value, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open([], event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._alias(event), event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._begin()

    def _open(self, value: Mapped | list[object], event: yaml.CollectionStartEvent) -> None:
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, event)
        self._frames.append(_Frame(value, event.anchor, self._size))

    def _close(self) -> None:
        frame = self._frames.pop()
        if isinstance(frame.value, Mapped) and "<<" in frame.value:
            self._merge(frame.value)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, self._size - frame.size_before)

    def _put(self, value: object, event: yaml.NodeEvent) -> None:
        if not self._frames:
            self.root, self.line = value, _line(event)
            return
        frame = self._frames[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is _NO_KEY:
            frame.key = value if isinstance(value, str) else f"({type(value).__name__})"
            if frame.key in frame.value:
                self._note(_line(event), str(frame.key))
        else:
            frame.value[str(frame.key)] = value
            frame.key = _NO_KEY

    def _alias(self, event: yaml.AliasEvent) -> object:
        if event.anchor not in self._anchors:
            raise UsageError(f"{self._where(event)}: is not YAML: no anchor {event.anchor!r} above")
        value, size = self._anchors[event.anchor]
        self._borrow(size, self._where(event))
        return value

    def _merge(self, value: Mapped) -> None:
        """Fill in what `<<` names, a mapping or several; what stands beside it goes first."""
        bases = value.pop("<<")
        for base in bases if isinstance(bases, list) else [bases]:
            if isinstance(base, Mapped):
                self._borrow(len(base), f"{self._file}:{value.line}:1")
                for key, item in base.items():
                    value.setdefault(key, item)

    def _borrow(self, size: int, where: str) -> None:
        self._size += size
        self._aliased += size
        if self._aliased > MOST_ALIASED:
            raise UsageError(f"{where}: aliases add more than {MOST_ALIASED} values to this file")

    def _where(self, event: yaml.Event) -> str:
        column = event.start_mark.column + 1 if event.start_mark else 1
        return f"{self._file}:{_line(event)}:{column}"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _scalar(event: yaml.ScalarEvent) -> object:
    """A plain scalar as Kubernetes would take it; whatever is quoted or tagged is a text."""
    text: str = event.value
    if event.tag is None and event.implicit[0]:
        for tag, pattern in _RESOLVERS.get(text[:1], ()):
            if pattern.match(text):
                return _typed(tag.removeprefix(_TAG), text)
    return text


def _typed(tag: str, text: str) -> object:
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() in {"yes", "true", "on"}
    if tag not in {"int", "float"}:
        return text
    digits = text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan")
    try:
        return int(digits) if tag == "int" else float(digits)
    except ValueError:
        return float("nan")


def _refusal(file: str, text: str, error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line, column = error.problem_mark.line + 1, error.problem_mark.column + 1
        return f"{file}:{line}:{column}: is not YAML: {error.problem}"
    if isinstance(error, yaml.reader.ReaderError):
        return f"{file}:{_line_and_column(text, error.position)}: is not YAML: {error.reason}"
    return f"{file}: is not YAML: {error}"


def _line_and_column(text: str, position: int) -> str:
    """Where a position in the text as UTF-8 is: that is how the C loader counts."""
    before = text.encode()[:position]
    return f"{before.count(bytes([10])) + 1}:{position - before.rfind(bytes([10]))}"
