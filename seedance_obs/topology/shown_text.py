"""Text that others wrote, made safe, and broken only where nothing is torn."""

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.text import Text

from seedance_obs.topology.safe_text import printable

_PIECE = re.compile(r"[^\s,]*,+|[^\s,]+|\s+")


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
