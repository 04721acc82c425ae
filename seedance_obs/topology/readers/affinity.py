"""The affinity columns of a matrix's rows: near CPUs, near NUMA nodes, the GPU's own node.

Any of the three may be empty, and then only the layout tells which one a value belongs to: single
tabs do, blanks sometimes. Where it does not, nothing is told.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seedance_obs.topology.model import UNKNOWN, Absent
from seedance_obs.topology.readers.cells import Row
from seedance_obs.topology.readers.grid import Grid
from seedance_obs.topology.readers.header import CPU, GPU_NUMA, NUMA, is_gpu
from seedance_obs.topology.readers.lines import ranges

_ALL = (CPU, NUMA, GPU_NUMA)
_TAB_CELLS = {1: (0,), 2: (0, 1), 3: (0, 1, 3)}  # nvidia-smi leaves a cell free before the last
_LIST = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?){0,1023}")
_NOT_SAID = ("", "N/A", "-1")
# Grace gives each GPU's memory so many NUMA nodes in a row; all but the first are listed as near.
_NODES_PER_GPU = 8
_CELL_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Affinity:
    """What a row says of where its GPU is."""

    cpus: frozenset[int] | Absent = UNKNOWN
    numa: frozenset[int] | Absent = UNKNOWN
    memory_node: int | Absent = UNKNOWN


def affinities(grid: Grid) -> dict[str, Affinity]:
    """The affinity of each GPU that has a row; what cannot be read is UNKNOWN, with a warning."""
    rows = [row for row in grid.rows if is_gpu(row.name)]
    columns = (grid.header.affinity if grid.header else ()) or _unnamed(grid, rows)
    told: dict[str, list[Affinity]] = {}
    for row in rows:
        tail = row.tail
        is_cut = row.open or (row is rows[-1] and _may_be_cut(rows, len(columns)))
        if is_cut and tail and not row.open:
            tail = tail[: len(tail) - len(tail.split()[-1])] if not tail[-1].isspace() else tail
        values = _values(grid, row, tail, columns, is_cut=is_cut)
        told.setdefault(row.name, []).append(
            _affinity(grid, row.name, columns, values, is_cut=is_cut)
        )
    for name, said in told.items():
        if any(one != said[0] for one in said):
            grid.warnings.append(f"{name}: its rows disagree about its affinity")
            told[name] = [Affinity()]
    return {name: said[0] for name, said in told.items()}


def _may_be_cut(rows: Sequence[Row], most: int) -> bool:
    """Whether the last row tells less than another one does, and has not all its tabs either."""
    tails = [row.tail or "" for row in rows]
    tabs = [tail.count("\t") for tail in tails]
    values = [min(len(tail.split()), most) for tail in tails]
    return 0 < values[-1] < max(values) and (tabs[-1] < max(tabs) or not any(tabs))


def _unnamed(grid: Grid, rows: Sequence[Row]) -> tuple[str, ...]:
    """Three values behind the cells are the three columns; fewer may be any of them."""
    counts = {len((row.tail or "").split()) for row in rows if not row.open}
    if counts == {len(_ALL)}:
        return _ALL
    if counts - {0}:
        grid.warnings.append("no header names the affinity columns: they are not read")
    return ()


def _values(
    grid: Grid, row: Row, tail: str | None, columns: Sequence[str], *, is_cut: bool
) -> list[str | None]:
    """One text per column, empty where the cell is, None where it is lost."""
    unknown: list[str | None] = [None] * len(columns)
    if tail is None:
        return unknown
    tokens = tail.split()
    if row.single_tabs and tuple(columns) == _ALL[: len(columns)]:
        cells = _tab_cells(tail, len(columns), is_cut=is_cut)
        if cells is not None:
            return cells
    if len(tokens) == len(columns):
        return [*tokens]
    if set(tokens) <= {"N/A"} and not is_cut and len(tokens) < len(columns):
        return [""] * len(columns)
    if "\t" in tail or len(tokens) > len(columns) or tuple(columns) != _ALL[: len(columns)]:
        return unknown
    header = grid.header
    if header is None or header.cpu_at is None or header.first_at < row.name_end:
        return unknown
    beyond = row.tail_at - header.cpu_at
    return _blank_cells(tail, beyond, len(columns), is_cut=is_cut)


def _tab_cells(tail: str, count: int, *, is_cut: bool) -> list[str | None] | None:
    """The cells between single tabs, or None where there are not as many as nvidia-smi prints."""
    places = _TAB_CELLS.get(count, ())
    cells = [cell.strip() for cell in tail.split("\t")[1:]]
    width = places[-1] + 1 if places else 0
    while cells and not cells[-1] and (is_cut or len(cells) > width):
        cells.pop()
    if len(cells) > width or (len(cells) < width and not is_cut):
        return None
    return [cells[place] if place < len(cells) else None for place in places]


def _blank_cells(tail: str, beyond: int, count: int, *, is_cut: bool) -> list[str | None]:
    """The cells of a copy with blanks, fewer of them than columns.

    An empty first cell leaves a gap as wide as a cell and puts the next value to the right of where
    the first column starts, `beyond` before the tail. Behind a value, N/A is the last column's.
    """
    tokens = tail.split()
    lost: list[str | None] = [None] * count
    if not tokens:
        return lost if is_cut else [""] * count
    gap = len(tail) - len(tail.lstrip())
    if gap >= _CELL_WIDTH and beyond + gap > 1:
        return ["", *tokens] if len(tokens) == count - 1 else lost
    if not 1 < gap < _CELL_WIDTH:
        return lost
    if len(tokens) == 1:
        return [tokens[0], None if is_cut or count > 2 else "", *lost[2:]]
    return [tokens[0], "" if tokens[1] == "N/A" else None, *tokens[2:], *lost][:count]


def _affinity(
    grid: Grid, name: str, columns: Sequence[str], values: Sequence[str | None], *, is_cut: bool
) -> Affinity:
    read = [None if value is None else _numbers(value) for value in values]
    sets = {column: found for column, found in zip(columns, read, strict=True) if found is not None}
    own = sets.get(GPU_NUMA, UNKNOWN)
    if not isinstance(own, Absent) and len(own) > 1:
        del sets[GPU_NUMA]
    near = sets.get(NUMA, UNKNOWN)
    if not isinstance(near, Absent) and len(near) > 1 and GPU_NUMA in set(columns) - set(sets):
        del sets[NUMA]  # some of them may be the GPU's own
    lost = [at for at, column in enumerate(columns) if column not in sets]
    if lost:
        why = "cut off" if is_cut else "unreadable"
        grid.warnings.append(f"{name} x {ranges(columns, lost)}: {why}")
    memory = _only(sets.get(GPU_NUMA, UNKNOWN))
    return Affinity(
        cpus=sets.get(CPU, UNKNOWN),
        numa=_with_cpus(sets.get(NUMA, UNKNOWN), memory),
        memory_node=memory,
    )


def _only(numbers: frozenset[int] | Absent) -> int | Absent:
    return numbers if isinstance(numbers, Absent) else next(iter(numbers))


def _with_cpus(near: frozenset[int] | Absent, memory: int | Absent) -> frozenset[int] | Absent:
    """The near nodes without GPUs' memory: this one's own, and what runs as long as another's."""
    if isinstance(near, Absent) or isinstance(memory, Absent) or len(near) == 1:
        return near
    rest = near - set(range(memory, memory + _NODES_PER_GPU))
    starts = {node for node in rest if rest >= set(range(node, node + _NODES_PER_GPU - 1))}
    spare = {node + step for node in starts for step in range(_NODES_PER_GPU - 1)}
    return (rest - spare) or UNKNOWN


def _numbers(text: str) -> frozenset[int] | Absent | None:
    """`0,5-11` as a set; UNKNOWN where the cell says nothing, None where it cannot be read."""
    if text in _NOT_SAID:
        return UNKNOWN
    if not _LIST.fullmatch(text):
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if high < low:
            return None
        numbers.update(range(low, high + 1))
    return frozenset(numbers)
