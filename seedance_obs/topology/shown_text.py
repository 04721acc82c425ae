"""Text that others wrote, made safe for a terminal, and broken only where nothing is torn."""

import re
from collections.abc import Iterable, Iterator
from unicodedata import category

from rich.cells import cell_len
from rich.text import Text

REPLACEMENT = "\ufffd"
# Controls (ESC), formats (right-to-left marks) and halves of characters move a cursor or cannot
# be written.
UNSAFE = ("Cc", "Cf", "Cs")
BREAKS = ("Zl", "Zp")
_PIECE = re.compile(r"[^\s,]*,+|[^\s,]+|\s+")


def printable(text: str) -> str:
    """The text on one line, with U+FFFD for every character that a terminal would act on."""
    return "".join(map(_safe, text))


def _safe(character: str) -> str:
    kind = category(character)
    if character in "\t\n\r" or kind in BREAKS:
        return " "
    return REPLACEMENT if kind in UNSAFE else character


def as_written(text: str, style: str = "") -> Text:
    """Text in which `[red]` and `:smile:` are only characters."""
    return Text(printable(text), style=style)


def folded(pieces: Iterable[str], width: int, *, indent: str = "") -> str:
    """Pieces one after the other, each on a new line where it does not fit.

    A piece that is wider than a line is broken at blanks and after commas, and nowhere else.

    Args:
        pieces: text that is to stay together, with the blanks between one and the next.
        width: columns of a terminal.
        indent: what the lines after the first begin with.
    """
    lines = [""]
    for part in _parts(pieces, width - len(indent)):
        if lines[-1].strip() and cell_len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        at_start = not lines[-1] and len(lines) > 1
        lines[-1] += f"{indent}{part.lstrip()}" if at_start else part
    return "\n".join(line.rstrip() for line in lines)


def _parts(pieces: Iterable[str], width: int) -> Iterator[str]:
    for piece in pieces:
        yield from [piece] if cell_len(piece.rstrip()) <= width else _PIECE.findall(piece)
