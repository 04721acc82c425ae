"""Turns the bytes of a file into documents: YAML, JSON or JSON Lines, whichever it is."""

import codecs
from collections.abc import Iterator

from seedance_obs.errors import UsageError
from seedance_obs.topology.declared.json_text import looks_like_json, read_json
from seedance_obs.topology.declared.located import Note
from seedance_obs.topology.declared.yaml_text import read_yaml

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_documents(file: str, data: bytes, note: Note) -> Iterator[tuple[int, object]]:
    """Every document with its line (from 1); what begins like a JSON object is JSON, else YAML.

    Mappings are `Mapped`; `note` is told the line and name of each key that occurs twice.

    Raises:
        UsageError: the file is neither; the message has file, line and column.
    """
    text = _decoded(file, data)
    read = read_json if looks_like_json(text) else read_yaml
    return read(file, text, note)


def _decoded(file: str, data: bytes) -> str:
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise UsageError(f"{file}:{line}:{column}: is not UTF-8 text") from error
