"""The matrices that `nvidia-smi topo` prints, whatever their cells mean.

A grid is a header and rows; where the header is lost, or names fewer columns than most rows have,
each column is the device whose row has its X there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from seedance_obs.topology.readers.cells import SELF, Alphabet, Row, row_of
from seedance_obs.topology.readers.header import Header, header_of, is_gpu
from seedance_obs.topology.readers.lines import lines_of, ranges

_LONGEST = 20_000  # characters: no matrix has a longer line
_LEGEND = re.compile(r"\bLegend\s*:?\s*$")
_PEER_TO_PEER = re.compile(r"-p2p\b|--p2p_capabilities|=\s*Status Ok")
_MARKS = re.compile(r"[|*\"`']")
_STRING_END = re.compile(r"[`\"'][,;)]*\s*$")
_MARKUP = str.maketrans({"|": " ", "*": " ", '"': None, "`": None})
_COMMAND = re.compile(r"\btopo\s+(-\S.*)$")


@dataclass(slots=True)
class Grid:
    """A matrix as found: its columns, its rows in order, and what could not be read.

    `header` is None where there is none that fits the rows. `command` holds the arguments of the
    `topo` that printed it, empty where no prompt shows them; `below` are the lines under the rows.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    header: Header | None
    command: str = ""
    below: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ends_open(self) -> bool:
        """Whether the last line under the rows has text but no end."""
        return bool(self.below and self.below[-1])

    def pairs(self) -> dict[tuple[str, str], str]:
        """The word between two devices, by names in column order; a pair nobody tells is absent.

        A cell lost in one half is taken from the other; halves that disagree tell nothing.
        """
        said: dict[tuple[int, int], dict[str, str]] = {}
        for row in self.rows:
            own = self.columns.index(row.name)
            for place, cell in enumerate(row.cells):
                if cell is not None and place != own:
                    pair = (own, place) if own < place else (place, own)
                    said.setdefault(pair, {}).setdefault(cell, row.name)
        words = {}
        for (low, high), told in said.items():
            pair_names = self.columns[low], self.columns[high]
            if len(told) == 1:
                words[pair_names] = next(iter(told))
            elif all(pair_names):
                each = ", ".join(f"{word} in the row of {name}" for word, name in told.items())
                self.warnings.append(f"{pair_names[0]} x {pair_names[1]}: {each}")
        return words

    def named_pairs(self) -> Iterator[tuple[str, str]]:
        """Every two devices, in column order."""
        return combinations([name for name in self.columns if name], 2)


def grid_of(text: str, alphabet: Alphabet) -> Grid | None:
    """The first matrix of a text, or None where it holds none."""
    lines = [_bare(line) if len(line) <= _LONGEST else "" for line in lines_of(text)]
    lines[-1] = alphabet.whole_tokens(lines[-1])
    header, at = _header(lines, alphabet)
    grid = _scan(lines, alphabet, header, at)
    if 2 * sum(len(row.cells) > len(grid.columns) for row in grid.rows) > len(grid.rows) and header:
        grid = _scan(lines, alphabet, None, at + 1)
        grid.warnings.insert(0, "the header names fewer columns than the rows have: it is not used")
    if not grid.rows and (grid.header is None or not grid.header.affinity):
        return None
    if grid.header is None:
        _name_columns(grid)
        if not gpus_of(grid):
            return None
    is_cut = len({row.name for row in grid.rows}) < len(grid.columns)
    last = grid.rows[-1] if grid.rows and is_cut else None
    grid.rows = [row for row in grid.rows if _settle(grid, row, is_end=row is last)]
    _report_missing_rows(grid)
    return grid


def _bare(line: str) -> str:
    """A line of a Markdown table or a quoted string without what marks it as one."""
    if not _MARKS.search(line):
        return line
    return _STRING_END.sub("", line).translate(_MARKUP)


def _header(lines: Sequence[str], alphabet: Alphabet) -> tuple[Header | None, int]:
    """The first header with a row before the next one, else the first that is no prose for sure."""
    last: Header | None = None
    at = 0
    rowless: tuple[Header | None, int] = (None, 0)
    for number, line in enumerate(lines):
        header = header_of(line)
        if header is not None:
            last, at = header, number
            if header.affinity and rowless[0] is None:
                rowless = (header, number)
        elif last and row_of(line, alphabet, last.devices, fields=last.tabs, is_open=False):
            return last, at
    return rowless


def _scan(lines: Sequence[str], alphabet: Alphabet, header: Header | None, at: int) -> Grid:
    """The rows from a line on, to the legend or to the next header."""
    columns = header.devices if header else ()
    grid = Grid(columns, [], header, command=_command(lines[: at + 1]))
    tabs = header.tabs if header else 0
    below = at + 1 if header else at
    for number in range(below, len(lines)):
        line = lines[number]
        if grid.rows and "Legend" in line and _LEGEND.search(line):
            break
        if header_of(line) is not None and not _is_cut_row(line, columns):
            if grid.rows and header is not None:
                grid.warnings.append(f"line {number + 1}: one more matrix begins; it is not read")
                lines = lines[:number]
                break
            continue
        is_open = number == len(lines) - 1
        row = row_of(line, alphabet, columns, fields=0 if is_open else tabs, is_open=is_open)
        if row is not None:
            grid.rows.append(row)
            below = number + 1
    grid.below = list(lines[below:])
    return grid


def _is_cut_row(line: str, columns: Sequence[str]) -> bool:
    """Whether a line is a row of which nothing but the name is left."""
    return len(columns) > 1 and line.strip() in columns


def _command(lines: Sequence[str]) -> str:
    for line in reversed(lines):
        if found := _COMMAND.search(line):
            return found[1]
    return ""


def _name_columns(grid: Grid) -> None:
    """Names columns after the rows' own X."""
    width = max((len(row.cells) for row in grid.rows), default=0)
    names = [""] * width
    for row in grid.rows:
        at = [place for place, cell in enumerate(row.cells) if cell == SELF]
        if len(at) == 1 and row.name not in names and not names[at[0]]:
            names[at[0]] = row.name
    grid.columns = tuple(names)
    if any(names):
        grid.warnings.append("there is no header: each column is named by the row with its X there")
    nameless = [place for place, name in enumerate(names) if not name]
    if nameless:
        numbers = [str(place + 1) for place in range(width)]
        grid.warnings.append(f"columns {ranges(numbers, nameless)}: nothing names them")


def _settle(grid: Grid, row: Row, *, is_end: bool) -> bool:
    """Keeps what of a row stands in its place for sure; False where its X contradicts that.

    `is_end` is the last row where there should be more: its own end may be missing too.
    """
    if row.name not in grid.columns:
        grid.warnings.append(f"{row.name}: the row has no column; it is not read")
        return False
    own = grid.columns.index(row.name)
    width = len(grid.columns)
    if len(row.cells) > width:
        _drop_surplus(row, own, width)
    selves = [place for place, cell in enumerate(row.cells) if cell == SELF]
    if selves not in ([], [own]) or (not selves and row.cells[own : own + 1] not in ([], [None])):
        grid.warnings.append(f"{row.name}: its X is not in its own column; the row is not read")
        return False
    behind = row.tail is None or bool(row.tail.strip())
    read = len(row.cells)
    if read < width and None in row.cells:
        del row.cells[row.cells.index(None) + 1 :]
    elif read < width and behind:  # a cell is gone without a trace: only the X tells where it isn't
        del row.cells[own + 1 if selves else 0 :]
    elif (read < width or is_end) and not row.open and row.tail == "" and _ends_in_number(row):
        row.cells.pop()
    _report_lost_cells(grid, row, own, cut=not behind)
    row.cells += [None] * (width - len(row.cells))
    if read < width:
        row.tail = None if behind else ""
    return True


def _drop_surplus(row: Row, own: int, width: int) -> None:
    """Loses what a row with too many words has on the side of its X that the surplus is on."""
    selves = [place for place, cell in enumerate(row.cells) if cell == SELF]
    left = own + len(row.cells) - width
    if selves == [left]:
        row.cells[:left] = [None] * own
    elif selves in ([], [own]):
        kept = row.cells[: own + 1] if selves else []
        row.cells[:] = [*kept, *[None] * (width - len(kept))]


def _ends_in_number(row: Row) -> bool:
    return row.cells[-1] is not None and row.cells[-1][-1].isdigit()


def _report_lost_cells(grid: Grid, row: Row, own: int, *, cut: bool) -> None:
    unread = [at for at, cell in enumerate(row.cells) if cell is None and at != own]
    beyond = [*range(len(row.cells), len(grid.columns))]
    if own in beyond[:1] + beyond[-1:]:
        beyond.remove(own)
    for places, why in ((unread, "unreadable"), (beyond, "cut off" if cut else "unreadable")):
        named = [at for at in places if grid.columns[at]]
        if named:
            grid.warnings.append(f"{row.name} x {ranges(grid.columns, named)}: {why}")


def _report_missing_rows(grid: Grid) -> None:
    present = {row.name for row in grid.rows}
    missing = [at for at, name in enumerate(grid.columns) if name and name not in present]
    if missing:
        grid.warnings.append(f"{ranges(grid.columns, missing)}: no row to read")


def is_peer_to_peer(grid: Grid) -> bool:
    """Whether a matrix with nothing but X in its cells (one GPU) is of `topo -p2p`."""
    if any(cell not in (None, SELF) for row in grid.rows for cell in row.cells):
        return False
    return any(_PEER_TO_PEER.search(line) for line in [grid.command, *grid.below])


def gpus_of(grid: Grid) -> list[str]:
    """The names of the GPUs in column order."""
    return [name for name in grid.columns if is_gpu(name)]
