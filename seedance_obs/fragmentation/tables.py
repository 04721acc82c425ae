"""Nodes and requests as tables: CSV with the columns of Alibaba's public trace, or JSON.

Every number that is wrong is refused with the file's name and the row's place. A number that is not
there is not known, or has the default that is said at the reader.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from seedance_obs.errors import UsageError
from seedance_obs.fragmentation.request import WHOLE_GPU, FreeNode, Request

MOST_GPUS = 1024  # of a node, or asked for at once
MOST_SHOWN = 40
_FREE_GPU = re.compile(r"gpu\d+_milli_free")
_ISLAND = re.compile(r"gpu\d+_island")
_LISTS = {"gpu_milli_free": "gpu{}_milli_free", "gpu_island": "gpu{}_island"}  # in JSON


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A node of a table.

    Attributes:
        name: What the table calls it.
        free: What nobody holds on it.
        islands: The island of each GPU; None where the table names none.
    """

    name: str
    free: FreeNode
    islands: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A row, with what is said of it in a message."""

    place: str
    cells: Mapping[str, object]

    def cell(self, column: str) -> str:
        """What stands there, empty where nothing does.

        Raises:
            UsageError: it is no single value.
        """
        value = self.cells.get(column)
        if isinstance(value, dict | list):
            raise self.error(f"{column} is {str(value)[:MOST_SHOWN]!r}, wanted a single value")
        return "" if value is None else str(value).strip()

    def stated(self, columns: re.Pattern[str]) -> int:
        """How many of such columns are not empty."""
        return sum(bool(columns.fullmatch(name) and self.cell(name)) for name in self.cells)

    def number(self, column: str, *, most: float = float("inf")) -> int | None:
        """A number of at least 0, rounded down; None where the cell is empty.

        Raises:
            UsageError: it is none, or more than `most`.
        """
        text = self.cell(column)
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not (isfinite(number) and 0 <= number <= most):
            wanted = f"a number from 0 to {most:g}" if isfinite(most) else "a number from 0 up"
            raise self.error(f"{column} is {text[:MOST_SHOWN]!r}, wanted {wanted}")
        return int(number)

    def count(self, column: str, *, most: float = float("inf")) -> int | None:
        """A whole number of at least 0; None where the cell is empty.

        Raises:
            UsageError: it is none, or more than `most`.
        """
        found, text = self.number(column, most=most), self.cell(column)
        if found is not None and found != float(text):
            raise self.error(f"{column} is {text[:MOST_SHOWN]!r}, wanted a whole number")
        return found

    def error(self, what: str) -> UsageError:
        return UsageError(f"{self.place}: {what}")


def read_nodes(text: str, *, name: str) -> list[NamedNode]:
    """The nodes of a table.

    Columns: `sn` or `name`; `gpu0_milli_free`, `gpu1_milli_free`... (thousandths, empty where there
    is no such GPU), and `cpu_milli_free`; or `gpu` (how many) and `cpu_milli`, and then nothing
    is held. `model` and `gpu0_island`... may be left out. In JSON the lists `gpu_milli_free` and
    `gpu_island` may stand for the numbered columns.

    Raises:
        UsageError: a row is wrong, or there is none.
    """
    nodes: dict[str, NamedNode] = {}
    for row in _rows(text, name):
        node = _node(row)
        if node.name in nodes:
            raise row.error(f"a second node is called {node.name[:MOST_SHOWN]!r}")
        nodes[node.name] = node
    if not nodes:
        raise UsageError(f"{name}: there is no node in it")
    return list(nodes.values())


def read_requests(text: str, *, name: str) -> list[Request]:
    """The requests of a table.

    Columns: `num_gpu`; `gpu_milli` of each (empty: whole GPUs), `cpu_milli` (empty: 0) and
    `gpu_spec` (models that will do, with | between them; empty: any).

    Raises:
        UsageError: a row is wrong, or there is none.
    """
    requests = [_request(row) for row in _rows(text, name)]
    if not requests:
        raise UsageError(f"{name}: there is no request in it")
    return requests


def _node(row: _Row) -> NamedNode:
    title = row.cell("sn") or row.cell("name")
    if not title:
        raise row.error("the node has no name: a column sn or name is wanted")
    gpus = row.count("gpu", most=MOST_GPUS)
    free, cpu = tuple(_free_gpus(row)), "cpu_milli_free"
    if not free and not any(column.endswith("_milli_free") for column in row.cells):
        if gpus is None:
            raise row.error("a column gpu, or gpu0_milli_free and so on, is wanted")
        free, cpu = (WHOLE_GPU,) * gpus, "cpu_milli"
    if gpus is not None and gpus != len(free):
        raise row.error(f"gpu is {gpus}, but there are free thousandths of {len(free)}")
    node = FreeNode(free, row.number(cpu), row.cell("model"))
    return NamedNode(title, node, _islands(row, len(free)))


def _islands(row: _Row, gpus: int) -> tuple[str, ...] | None:
    islands = tuple(row.cell(f"gpu{number}_island") for number in range(gpus))
    if row.stated(_ISLAND) > sum(map(bool, islands)):
        raise row.error(f"there are {gpus} GPUs, but an island is named for another")
    if any(islands) and not all(islands):
        raise row.error("an island is named for some of its GPUs alone")
    return islands if any(islands) else None


def _free_gpus(row: _Row) -> Iterator[int]:
    """What is free of GPU 0, 1, 2... up to the first that there is not.

    Raises:
        UsageError: one is left out.
    """
    for index in range(row.stated(_FREE_GPU)):
        number = row.number(f"gpu{index}_milli_free", most=WHOLE_GPU)
        if number is None:
            raise row.error(f"gpu{index}_milli_free is empty, but a later GPU's is not")
        yield number


def _request(row: _Row) -> Request:
    gpus = row.count("num_gpu", most=MOST_GPUS)
    if gpus is None:
        raise row.error("num_gpu, how many GPUs are asked for, is wanted")
    milli = row.number("gpu_milli", most=WHOLE_GPU)
    if gpus and milli == 0:
        raise row.error("it asks for GPUs, but gpu_milli, what it wants of each, is 0")
    wanted = (WHOLE_GPU if milli is None else milli) if gpus else 0
    models = filter(None, map(str.strip, row.cell("gpu_spec").split("|")))
    return Request(gpus, wanted, row.number("cpu_milli") or 0, frozenset(models))


def _rows(text: str, name: str) -> Iterator[_Row]:
    return _json_rows(text, name) if text.lstrip()[:1] in ("[", "{") else _csv_rows(text, name)


def _csv_rows(text: str, name: str) -> Iterator[_Row]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        _check_each_once(header, name)
        for cells in reader:
            row = _Row(f"{name}:{reader.line_num}", dict(zip(header, cells, strict=False)))
            if len(cells) not in (0, len(header)):
                raise row.error(f"{len(cells)} cells under {len(header)} columns")
            if cells:
                yield row
    except csv.Error as error:
        raise UsageError(f"{name}:{reader.line_num}: this is not CSV: {error}") from error


def _json_rows(text: str, name: str) -> Iterator[_Row]:
    try:
        items = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, name))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: this is not JSON: {error}") from error
    if not isinstance(items, list):
        raise UsageError(f"{name}: a list of objects is wanted")
    for number, item in enumerate(items, 1):
        place = f"{name}: item {number}"
        if not isinstance(item, dict):
            raise UsageError(f"{place}: an object is wanted")
        yield _Row(place, dict(_cells(place, item)))


def _object(pairs: list[tuple[str, object]], name: str) -> dict[str, object]:
    _check_each_once([key for key, _ in pairs], name)
    return dict(pairs)


def _check_each_once(columns: Sequence[str], name: str) -> None:
    doubled = [column for column, count in Counter(columns).items() if column and count > 1]
    if doubled:
        raise UsageError(f"{name}: {doubled[0][:MOST_SHOWN]!r} is there twice")


def _cells(place: str, item: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The columns of an object; its lists are those of several columns, or of several models."""
    for key, value in item.items():
        if key in _LISTS and value is not None:
            if not isinstance(value, list):
                found = str(value)[:MOST_SHOWN]
                raise UsageError(f"{place}: {key} is {found!r}, wanted a list, one for each GPU")
            yield from ((_LISTS[key].format(number), one) for number, one in enumerate(value))
        elif key == "gpu_spec" and isinstance(value, list):
            models = _Row(place, {f"{key}[{number}]": one for number, one in enumerate(value)})
            yield key, "|".join(map(models.cell, models.cells))
        else:
            yield key, value
