"""Files that are given to commands, and the sentence where one cannot be read."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from seedance_obs.errors import UsageError


def shown_name(file: str) -> str:
    """What messages call a file that was given as an argument."""
    return "<stdin>" if file == "-" else click.format_filename(file)


def contents(files: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """The name for messages and the content of each file; - is standard input.

    Raises:
        UsageError: a file cannot be read.
    """
    for file in files:
        name = shown_name(file)
        try:
            with click.open_file(file, "rb") as stream:
                yield name, stream.read()
        except (OSError, RuntimeError) as error:  # standard input may be closed
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{name}: cannot be read: {reason}") from error


def decoded(content: bytes) -> str:
    """The text of a file that a tool wrote: UTF-8, or UTF-16 where its mark says so (PowerShell).

    What is neither becomes replacement characters, never an error.
    """
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def text_of(file: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: cannot be read: it is not UTF-8 text") from error


def node_of(file: Path) -> dict[str, Any]:
    """A Kubernetes node as kubectl prints it in JSON; of that, its metadata.

    Raises:
        UsageError: the file cannot be read, or holds no node.
    """
    try:
        node = json.loads(text_of(file))
    except ValueError as error:
        raise UsageError(f"{file}: this is not JSON: {error}") from error
    metadata = node.get("metadata") if isinstance(node, dict) else None
    if isinstance(metadata, dict):
        maps = [metadata.get(name) or {} for name in ("labels", "annotations")]
        if all(isinstance(found, dict) for found in maps):
            return {"metadata": metadata}
    raise UsageError(f"{file}: a node as `kubectl get node NAME -o json` prints it is wanted")
