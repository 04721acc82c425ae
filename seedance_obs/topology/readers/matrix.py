"""`nvidia-smi topo -m` and `-mp`: how every two devices of a host reach each other.

`-mp` prints the PCIe path even where NVLinks exist, so it tells nothing of NVLinks between GPUs.
No matrix tells whether NVLinks run over a switch.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from seedance_obs.topology.model import (
    UNKNOWN,
    Absent,
    Device,
    Kind,
    Path,
    PcieLevel,
    Reading,
    Topology,
)
from seedance_obs.topology.readers.affinity import Affinity, affinities
from seedance_obs.topology.readers.cells import Alphabet
from seedance_obs.topology.readers.grid import Grid, gpus_of, grid_of, is_peer_to_peer
from seedance_obs.topology.readers.header import is_gpu
from seedance_obs.topology.readers.lines import bounded, ranges

FORMAT = "topo-m"
_LEVELS = {
    "PIX": PcieLevel.PIX,
    "PXB": PcieLevel.PXB,
    "PHB": PcieLevel.PHB,
    "NODE": PcieLevel.NODE,
    "SYS": PcieLevel.SYS,
    "SOC": PcieLevel.SYS,  # its name before drivers told NODE from it
}
_ALPHABET = Alphabet(*_LEVELS, stem="NV", foreign="OK|[CGT]?NS|DR|U")
_PCIE_ONLY = re.compile(r"-mp\b|--matrix_pci")
_NIC_NAME = re.compile(r"\b(NIC[0-9]{1,4})\s*:[ \t]+([A-Za-z][\w.:-]*)", re.ASCII)
_NIC_CUT = re.compile(r"\b(NIC[0-9]{1,4})\s*:?\s*$", re.ASCII)


def recognises(text: str) -> bool:
    """Whether the text holds a matrix of `topo -m` or `-mp`."""
    grid = grid_of(text, _ALPHABET)
    return grid is not None and not is_peer_to_peer(grid)


def read(text: str) -> Reading:
    """The devices of the text's first matrix and the path between every two of them.

    What is cut, destroyed or contradicted is UNKNOWN and named by a warning. A GPU has a domain
    where its NVLinks leave no doubt which is the lowest GPU of it.
    """
    grid = grid_of(text, _ALPHABET)
    if grid is None or is_peer_to_peer(grid):
        return Reading(
            Topology(), ("there is no matrix of nvidia-smi topo -m in the text",), FORMAT
        )
    words = grid.pairs()
    hides = _hides_nvlinks(grid, words.values())
    paths = tuple(_path(pair, words.get(pair), hides=hides) for pair in grid.named_pairs())
    where = affinities(grid)
    labels = _labels(grid)
    devices = tuple(
        _device(name, where.get(name, Affinity()), labels.get(name, ""))
        for name in grid.columns
        if name
    )
    domains = _domains(grid, paths)
    return Reading(Topology(devices, paths, domains=domains), bounded(grid.warnings), FORMAT)


def _hides_nvlinks(grid: Grid, words: Iterable[str]) -> bool:
    """Whether the matrix is of `-mp`: its prompt says so, or its legend goes without NV#."""
    if any(word.startswith("NV") for word in words):
        return False
    if grid.command:
        return _PCIE_ONLY.search(grid.command) is not None
    keys = [line.split()[:2] for line in grid.below]
    told = [key[0] if key[1:] == ["="] else "" for key in keys]
    if "PIX" not in told or "SYS" not in told or "NV#" in told:
        return False
    return told.index("PIX") + 1 < len(told) - 1  # where a legend's cut, NV# may follow


def _path(pair: tuple[str, str], word: str | None, *, hides: bool) -> Path:
    if word is None:
        return Path(*pair)
    if word.startswith("NV"):
        return Path(*pair, nvlinks=int(word[2:]))
    hidden = hides and all(is_gpu(name) for name in pair)
    return Path(*pair, pcie=_LEVELS[word], nvlinks=UNKNOWN if hidden else 0)


def _device(name: str, where: Affinity, label: str) -> Device:
    if not is_gpu(name):
        return Device(name, Kind.NIC, label=label or ("" if name.startswith("NIC") else name))
    return Device(
        name,
        Kind.GPU,
        index=int(name[3:]),
        numa=where.numa,
        memory_node=where.memory_node,
        cpus=where.cpus,
    )


def _labels(grid: Grid) -> dict[str, str]:
    """The RDMA names of the legend by NIC."""
    labels: dict[str, str] = {}
    for line in filter(lambda line: "NIC" in line, grid.below):
        for name, label in _NIC_NAME.findall(line):
            labels.setdefault(name, label)
    cut = _NIC_CUT.search(grid.below[-1]) if grid.ends_open else None
    if cut and cut[1] in grid.columns:
        grid.warnings.append(f"{cut[1]}: its name in the legend is cut off")
    return labels


def _domains(grid: Grid, paths: Sequence[Path]) -> dict[str, str]:
    """The lowest GPU of each GPU's component, as far as no lost cell could name a lower one."""
    gpus = gpus_of(grid)
    either = set(gpus)
    between = [path for path in paths if path.source in either and path.target in either]
    joined = [path for path in between if isinstance(path.nvlinks, int) and path.nvlinks > 0]
    possible = joined + [path for path in between if isinstance(path.nvlinks, Absent)]
    lowest = _lowest(gpus, joined)
    could_be = _lowest(gpus, possible)
    members = {name for path in joined for name in (path.source, path.target)}
    unsure = [at for at, gpu in enumerate(gpus) if gpu in members and lowest[gpu] != could_be[gpu]]
    if unsure:
        grid.warnings.append(f"{ranges(gpus, unsure)}: lost cells leave their NVLink domain open")
    return {gpu: lowest[gpu] for gpu in gpus if gpu in members and lowest[gpu] == could_be[gpu]}


def _lowest(gpus: Sequence[str], joins: Sequence[Path]) -> Mapping[str, str]:
    """The lowest GPU that each GPU is connected with."""
    root = {gpu: gpu for gpu in gpus}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for join in joins:
        low, high = sorted((find(join.source), find(join.target)), key=lambda gpu: int(gpu[3:]))
        root[high] = low
    return {gpu: find(gpu) for gpu in gpus}
