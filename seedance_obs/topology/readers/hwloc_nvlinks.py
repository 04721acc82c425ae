"""hwloc's NVLinkBandwidth matrix: MB/s one way, summed over the links between two objects.

How many links that is follows from the speed of one, which hwloc takes from the generation:
20000 for NVLink 1, 25000 for 2 to 4, 50000 from 5 on. The diagonal is made up.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.topology.model import Device, Edge, Kind
from seedance_obs.topology.readers.xml_text import Element

_NAME = "NVLinkBandwidth"
_PER_LINK = (
    (re.compile(r"\bP100\b"), 20000),
    (re.compile(r"\b(B100|B200|B300|GB200|GB300)\b"), 50000),
    (re.compile(r"\b([VAH]\d{2,3}|GH200|RTX|Quadro|TITAN)"), 25000),
)
_ALL_SPEEDS = (20000, 25000, 50000)
_NUMBER = re.compile(r"\d{1,12}")
_MOST_OBJECTS = 640  # NCCL's limit: 576 GPUs and their switches


@dataclass(slots=True)
class Wiring:
    """NVLink edges, and the GPUs all of whose links are among them."""

    edges: list[Edge] = field(default_factory=list)
    complete: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)


def read_wiring(root: Element, devices: Mapping[str, Device], names: Mapping[str, str]) -> Wiring:
    """The NVLinks of hwloc's matrix; `names` gives the device of an object's gp_index.

    Empty without a matrix. A matrix that is cut or garbled is left out as a whole; a cell that no
    whole number of links explains makes the links of its GPU unknown. Each is a warning.
    """
    wiring = Wiring()
    for element in root.children:
        if element.tag.startswith("distances2") and element.get("name") == _NAME:
            _read_matrix(element, devices, names, wiring)
    return wiring


def _read_matrix(
    element: Element, devices: Mapping[str, Device], names: Mapping[str, str], wiring: Wiring
) -> None:
    ends = [names.get(token.rpartition(":")[2], "") for token in _tokens(element, "indexes")]
    values = _tokens(element, "u64values")
    size = len(ends)
    whole = element.closed and len(values) == size * size and str(size) == element.get("nbobjs")
    if not whole or size > _MOST_OBJECTS or not all(map(_NUMBER.fullmatch, values)):
        where = f"line {element.line}, <{element.tag}>"
        wiring.warnings.append(f"{where}: {_NAME} is not whole; the NVLinks are unknown")
        return
    for place, end in enumerate(ends):
        if end in devices and devices[end].kind is Kind.GPU:
            row = zip(ends, map(int, values[place * size : (place + 1) * size]), strict=True)
            others = {there: mb for there, mb in row if there != end}
            _read_row(devices[end], others, wiring)


def _read_row(gpu: Device, row: Mapping[str, int], wiring: Wiring) -> None:
    linked = {there: mb for there, mb in row.items() if mb}
    per_link = _speed_of_one(gpu, list(linked.values()))
    if per_link is None or "" in linked:
        why = f"{sorted(linked.values())} MB/s are no whole number of its links"
        if "" in linked:
            why = "one leads to an object that is not in the tree"
        wiring.warnings.append(f"{_NAME}, {gpu.name}: {why}; its NVLinks are unknown")
        return
    wiring.complete.add(gpu.name)
    told = {(edge.source, edge.target) for edge in wiring.edges if edge.target == gpu.name}
    for there, mb in linked.items():
        if (there, gpu.name) not in told:
            edge = Edge(gpu.name, there, "nvlink", mb // per_link, mb * 1e6)
            wiring.edges.append(edge)


def _speed_of_one(gpu: Device, sums: list[int]) -> int | None:
    """MB/s of one link by the GPU's model, or the only speed that explains every sum."""
    model = gpu.model if isinstance(gpu.model, str) else ""
    named = [speed for pattern, speed in _PER_LINK if pattern.search(model)][:1]
    fitting = [speed for speed in named or _ALL_SPEEDS if all(total % speed == 0 for total in sums)]
    return fitting[0] if len(fitting) == 1 or not sums else None


def _tokens(element: Element, tag: str) -> list[str]:
    return [token for part in element.all(tag) for token in part.text.split()]
