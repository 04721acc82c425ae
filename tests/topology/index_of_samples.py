"""The tables of the sample folder's INDEX.md, as what a person read off each file by eye."""

import os
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = Path(os.environ.get("SEEDANCE_SHARED", ROOT.parent / "shared")) / "data" / "topo"

needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample folder is not here")

Pair = tuple[int, int]


@dataclass(frozen=True)
class Matrix:
    """A row of the table: GPUs by number; a GPU absent from `numa` has no node by eye."""

    file: str
    gpus: int
    nics: int
    quirks: str
    nvlinks: dict[Pair, int]
    numa: dict[int, int]
    memory_nodes: dict[int, int]
    cpus: dict[int, frozenset[int]]

    @property
    def is_cut(self) -> bool:
        return re.search(r"\bcut (in|at)\b|no final newline", self.quirks) is not None


def text_of(file: str) -> str:
    """A sample as it is, CRLF too."""
    return (SAMPLES / file).read_bytes().decode()


def matrices() -> list[Matrix]:
    """The matrices of the first table, in order; none where the folder is absent."""
    found: list[Matrix] = []
    for row in _rows(columns=6):
        file, _, devices, quirks, links, numa = row
        gpus, nics = (int(count) for count in devices.split("/"))
        above = found[-1].nvlinks if found else {}
        nvlinks = above if "as above" in links else _nvlinks(links, gpus)
        found.append(
            Matrix(file, gpus, nics, quirks, nvlinks, _numa(numa, gpus), _memory(numa), _cpus(numa))
        )
    return found


def others() -> dict[str, str]:
    """What the second table says of each file in other/."""
    return dict(_rows(columns=2))


def _rows(columns: int) -> list[list[str]]:
    index = SAMPLES / "INDEX.md"
    lines = index.read_text().splitlines() if index.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in rows if len(row) == columns and row[0].endswith(".txt")]


def _nvlinks(cell: str, gpus: int) -> dict[Pair, int]:
    if cell.startswith("none"):
        return {}
    if found := re.fullmatch(r"all (\d+) pairs NV(\d+)", cell):
        pairs = list(combinations(range(gpus), 2))
        assert len(pairs) == int(found[1])
        return dict.fromkeys(pairs, int(found[2]))
    if found := re.fullmatch(r"(\d+) of (\d+) readable pairs NV(\d+) \((\d+)-(\d+) lost\)", cell):
        pairs = list(combinations(range(gpus), 2))
        pairs.remove((int(found[4]), int(found[5])))
        assert len(pairs) == int(found[1]) == int(found[2]) - 1
        return dict.fromkeys(pairs, int(found[3]))
    if found := re.fullmatch(r"((?:\d+-\d+(?:, )?)+) NV(\d+)", cell):
        return dict.fromkeys(_pairs(found[1]), int(found[2]))
    links = {
        pair: int(count)
        for count, pairs in re.findall(r"NV(\d+)((?: \d+-\d+)+)", cell)
        for pair in _pairs(pairs)
    }
    if found := re.search(r"(\d+) pairs", cell):
        assert len(links) == int(found[1])
    assert links, cell
    return links


def _pairs(text: str) -> list[Pair]:
    return [(int(one), int(other)) for one, other in re.findall(r"(\d+)-(\d+)", text)]


def _numa(cell: str, gpus: int) -> dict[int, int]:
    if found := re.fullmatch(r"all:(\d+)", cell):
        return dict.fromkeys(range(gpus), int(found[1]))
    if found := re.match(r"CPU node ([\d/]+)", cell):
        return dict(enumerate(int(node) for node in found[1].split("/")))
    if re.match(r"no column|N/A$|GPU\d+:(unknown|N/A)$", cell):
        return {}
    nodes = {
        gpu: int(node)
        for first, last, node in re.findall(r"GPU(\d+)(?:-(\d+))?:(\d+)", cell)
        for gpu in range(int(first), int(last or first) + 1)
    }
    assert nodes, cell
    return nodes


def _memory(cell: str) -> dict[int, int]:
    found = re.search(r"GPU memory node ([\d/]+)", cell)
    return dict(enumerate(int(node) for node in found[1].split("/"))) if found else {}


def _cpus(cell: str) -> dict[int, frozenset[int]]:
    """Some rows without NUMA nodes say which CPUs are near which GPUs instead."""
    near = {}
    for cpus, first, last in re.findall(r"([\d,-]+): GPU(\d+)-(\d+)", cell):
        ranges = [part.split("-") for part in cpus.split(",")]
        numbers = frozenset(cpu for low, high in ranges for cpu in range(int(low), int(high) + 1))
        near.update(dict.fromkeys(range(int(first), int(last) + 1), numbers))
    return near
