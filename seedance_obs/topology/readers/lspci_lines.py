"""The lines of `lspci`, `-n`, `-nn`, `-D`, `-k` and `-v`: a function each, and its details.

The position of a function is not in them, unless `-v` tells the buses of every bridge above it and
that the topmost one stands on a root bus (a root port, or a host bridge beside it).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seedance_obs.identity import canonical_bus_id
from seedance_obs.pcie import generation, width
from seedance_obs.topology.model import UNKNOWN, Absent
from seedance_obs.topology.pci import HOST_BRIDGE, root_complex
from seedance_obs.topology.readers.pci_names import class_of, split_codes

_LINE = re.compile(
    r"[>\s]*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+"
    r"([^:\[\]]+?)(?:\s+\[([0-9a-f]{4})\])?:\s+(\S.*?)\s*$"
)
_NUMA = re.compile(r"\s+NUMA node: (\d{1,4})\b")
_BUSES = re.compile(r"\s+Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}), subordinate=")
_ROOT_PORT = re.compile(r"\s+Capabilities: .*Express.* Root Port\b")
_LINK = re.compile(r"\s+Lnk(Cap|Sta):.*?Speed ([\d.]+ ?GT/s).*?Width (x\d+)")


@dataclass(slots=True)
class Function:
    """A PCI function as one listing tells it; `pci_class` is empty for classes of no interest."""

    bus_id: str
    pci_class: str
    name: str
    vendor: int | None
    numa: frozenset[int] | Absent = UNKNOWN
    secondary: int | None = None
    root_port: bool = False
    generation: int | Absent = UNKNOWN
    width: int | Absent = UNKNOWN
    generation_max: int | Absent = UNKNOWN
    width_max: int | Absent = UNKNOWN


def lists_functions(text: str) -> bool:
    """Whether a text holds a line of `lspci` for a class of interest."""
    return any(function.pci_class for function in read_lines(enumerate(text.splitlines())))


def read_lines(lines: Iterable[tuple[int, str]]) -> list[Function]:
    """The functions of a listing in order; other lines are passed over."""
    functions: list[Function] = []
    for _, line in lines:
        match = _LINE.match(line)
        bus_id = canonical_bus_id(match[1]) if match else None
        if match and bus_id:
            name, vendor, _ = split_codes(match[4])
            pci_class = match[3] or class_of(match[2])
            functions.append(Function(bus_id, pci_class, name, vendor))
        elif functions:
            _add_detail(functions[-1], line)
    return functions


def positions(
    functions: Iterable[Function],
) -> Mapping[str, tuple[str | Absent, tuple[str, ...] | Absent]]:
    """The root complex and the ports above each function, as far as `-v` tells."""
    functions = list(functions)
    bridges = {
        (_domain(one.bus_id), one.secondary): one for one in functions if one.secondary is not None
    }
    hosts = {_bus(one.bus_id) for one in functions if one.pci_class == HOST_BRIDGE}
    return {one.bus_id: _position(one, bridges, hosts) for one in functions}


def _add_detail(function: Function, line: str) -> None:
    if match := _NUMA.match(line):
        function.numa = frozenset({int(match[1])})
    elif match := _BUSES.match(line):
        function.secondary = int(match[1], 16)
    elif _ROOT_PORT.match(line):
        function.root_port = True
    elif match := _LINK.match(line):
        speed, lanes = generation(match[2]) or UNKNOWN, width(match[3]) or UNKNOWN
        if match[1] == "Cap":
            function.generation_max, function.width_max = speed, lanes
        else:
            function.generation, function.width = speed, lanes


def _position(
    function: Function,
    bridges: Mapping[tuple[int, int], Function],
    hosts: set[tuple[int, int]],
) -> tuple[str | Absent, tuple[str, ...] | Absent]:
    ports: list[str] = []
    top = function
    while (above := bridges.get(_bus(top.bus_id))) and above.bus_id not in ports:
        ports.insert(0, above.bus_id)
        top = above
    if top.root_port or _bus(top.bus_id) in hosts:
        return root_complex(*_bus(top.bus_id)), tuple(ports)
    return UNKNOWN, UNKNOWN


def _domain(bus_id: str) -> int:
    return int(bus_id.split(":")[0], 16)


def _bus(bus_id: str) -> tuple[int, int]:
    domain, bus, _ = bus_id.split(":")
    return int(domain, 16), int(bus, 16)
