"""The tree that `lspci -tv` draws: which function hangs below which bridge.

A line continues a branch of an earlier line: the column of its `+-` or `\\-` says which one. All
lines may be indented or quoted alike, and drawn in ASCII or in box characters.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from seedance_obs.topology.model import Absent
from seedance_obs.topology.pci import root_complex

_ASCII = str.maketrans("├└─│┬┌╰\u00a0", "+\\-|++\\ ")
_ROOT_BUS = re.compile(r"\[([0-9a-f]{4,8}):([0-9a-f]{2})\]")
_FUNCTION = re.compile(r"([0-9a-f]{2})\.([0-7])")
_BRIDGE = re.compile(r"-\[([0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_BRANCH = re.compile(r"[>\s]*[ |]*[+\\]-(?:[0-9a-f]{2}\.[0-7]|\[)")
_INDENT = re.compile(r"[>\s]*[ |]*")


@dataclass(frozen=True, slots=True)
class Bus:
    """A bus, the bridges above it and its root complex."""

    domain: int = 0
    number: int = 0
    ports: tuple[str, ...] = ()
    root: str | Absent | None = None  # None: above all root buses


@dataclass(frozen=True, slots=True)
class Leaf:
    """A function that is no bridge with a bus below it; `name` is empty without `-v`."""

    bus_id: str
    name: str
    bus: Bus


@dataclass(slots=True)
class Drawing:
    """What a drawing tells; `strays` are lines inside it that belong to no branch."""

    leaves: list[Leaf] = field(default_factory=list)
    strays: list[int] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    branches: list[tuple[int, Bus]] = field(default_factory=list)
    first: bool = False  # the last line read was the first one of a tree


def draws_tree(text: str) -> bool:
    """Whether a text holds such a tree: all of them name their root buses."""
    return re.search(r"-\[[0-9a-f]{4,8}:[0-9a-f]{2}\]-", text.translate(_ASCII)) is not None


def read_drawing(lines: Iterable[tuple[int, str]]) -> Drawing:
    """The functions of a tree from its numbered lines, in order.

    Lines before and after the tree are passed over; a branch that continues none, and any other
    line inside the tree, is left out and listed.
    """
    drawing = Drawing()
    unread: list[int] = []
    for number, line in lines:
        if _read_line(drawing, line.expandtabs(8).translate(_ASCII)):
            drawing.lines.add(number)
            drawing.strays += unread
            unread = []
        elif _BRANCH.match(line.expandtabs(8).translate(_ASCII)):
            drawing.strays += [*unread, number]
            unread = []
        elif drawing.lines and line.strip(" |\r\n\t"):
            unread.append(number)
    return drawing


def _read_line(drawing: Drawing, line: str) -> bool:
    place = _INDENT.match(line).end()  # type: ignore[union-attr]  # the pattern matches nothing too
    if re.match(r"-(\[[0-9a-f]{4,8}:|\+-\[)", line[place:]):
        drawing.branches.clear()
        _follow(drawing, line, place + 1, Bus())
        drawing.first = True
        return True
    if not re.match(r"[+\\]-", line[place:]):
        return False
    if drawing.first or not drawing.branches:
        _align(drawing, line, place)
        drawing.first = False
    open_here = [number for number, (column, _) in enumerate(drawing.branches) if column == place]
    if not open_here:
        return False
    _, bus = drawing.branches[open_here[0]]
    del drawing.branches[open_here[0] + (line[place] == "+") :]
    _follow(drawing, line, place + 2, bus)
    return True


def _align(drawing: Drawing, line: str, place: int) -> None:
    """Move the branches of a first line to where the second line continues them.

    Pasting often shifts the first line against the others, by stripping or by a prompt; below a
    lost first line, a root bus still shows that it hangs on the host.
    """
    if not drawing.branches:
        if _ROOT_BUS.match(line, place + 2):
            drawing.branches.append((place, Bus()))
        return
    columns = {column for column, _ in drawing.branches}
    drawn = {place, *(column for column in range(place) if line[column] == "|")}
    shifts = sorted((column - place for column in columns), key=abs)
    fitting = (shift for shift in shifts if {column + shift for column in drawn} <= columns)
    shift = next(fitting, 0)
    drawing.branches = [(column - shift, bus) for column, bus in drawing.branches]


def _follow(drawing: Drawing, line: str, place: int, bus: Bus) -> None:
    """Read a line from a branch on, down to the function or empty bus at its end."""
    while place < len(line):
        if line.startswith("+-", place):
            drawing.branches.append((place, bus))
            place += 2
        elif line[place] == "-":
            place += 1
        elif found := _ROOT_BUS.match(line, place):
            bus = _root_bus(bus, int(found[1], 16), int(found[2], 16))
            place = found.end()
        elif found := _FUNCTION.match(line, place):
            bus_id = f"{bus.domain:04x}:{bus.number:02x}:{found[0]}"
            place = found.end()
            bridge = _BRIDGE.match(line, place)
            if bridge is None:
                drawing.leaves.append(Leaf(bus_id, line[place:].strip(), bus))
                return
            bus = replace(bus, number=int(bridge[1], 16), ports=(*bus.ports, bus_id))
            place = bridge.end()
        else:
            return


def _root_bus(above: Bus, domain: int, number: int) -> Bus:
    if above.root is None:
        return Bus(domain, number, (), root_complex(domain, number))
    return replace(above, domain=domain, number=number)
