"""Lines for a terminal that keep whole what belongs together."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.text import Text


def cut(text: str, cells: int) -> str:
    """The text in at most so many cells, its middle left out where it is longer."""
    if len(text) <= cells and cell_len(text) <= cells:
        return text
    head, tail = text[:cells], text[-(cells // 2) :]
    while cell_len(tail) > (cells - 1) // 2:
        tail = tail[1:]
    kept = set_cell_size(head, cells - 1 - cell_len(tail)).rstrip()
    return f"{kept}…{tail}"


def flow(
    pieces: Iterable[str],
    width: int,
    *,
    joint: str,
    start: str = "",
    indent: str = "",
    style: str = "",
    lead: str = "",
) -> Iterator[Text]:
    """Lines of whole pieces, each on the next line where it does not fit on this one.

    Args:
        pieces: what is to stay together; one that is wider than a line is broken at its blanks,
            and a word that is wider is cut at its end.
        width: columns of the terminal.
        joint: what stands between two pieces.
        start: what the first line begins with.
        indent: what the others begin with.
        style: how it all looks.
        lead: how the first piece looks.
    """
    room = width - len(joint.rstrip())
    lines: list[str] = []
    first = 0
    for before, piece in _joined(pieces, room - len(indent), joint):
        if not lines:
            first = len(start + piece)
            lines.append(start + piece)
        elif cell_len(lines[-1] + before + piece) <= room:
            lines[-1] += before + piece
        else:
            lines[-1] += before.rstrip()
            lines.append(indent + piece)
    for place, line in enumerate(lines):
        text = Text(line, style=style, no_wrap=True, overflow="ellipsis")
        if lead and not place:
            text.stylize(lead, 0, first)
        yield text


def _joined(pieces: Iterable[str], room: int, joint: str) -> Iterator[tuple[str, str]]:
    """Each piece, or each word of one that is too wide, after what joins it to the one before."""
    for piece in pieces:
        if cell_len(piece) <= room:
            yield joint, piece
        else:
            first, *others = piece.split(" ")
            yield joint, first
            yield from ((" ", word) for word in others)


def words(
    said: str, width: int, *, start: str = "", indent: str = "", style: str = ""
) -> Iterator[Text]:
    """A sentence, broken at its blanks."""
    return flow(said.split(), width, joint=" ", start=start, indent=indent, style=style)


def whole(label: str, name: str, width: int, *, indent: str, style: str = "") -> Iterator[Text]:
    """A name that is to be pasted: on a line of its own, and never cut.

    One that is wider than a terminal sticks out, and is for the terminal to break.
    """
    line = f"{indent}{label} {name}"
    for part in [line] if cell_len(line) <= width else [f"{indent}{label}", name]:
        yield Text(part, style=style, no_wrap=True, overflow="ignore")
