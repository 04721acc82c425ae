"""`lspci`: the tree of `-tv`, the lines of `-nn` and `-v`, or both pasted together.

The tree knows positions but neither classes nor NUMA nodes, the lines know classes but (without
`-v`) no positions. Neither knows NVLinks.
"""

from collections.abc import Iterable

from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Kind,
    PcieLink,
    Reading,
)
from seedance_obs.topology.pci import NVIDIA, kind_of_class
from seedance_obs.topology.pcie_tree import assembled, nearest_switch
from seedance_obs.topology.readers.lspci_lines import (
    Function,
    lists_functions,
    positions,
    read_lines,
)
from seedance_obs.topology.readers.lspci_tree import Drawing, draws_tree, read_drawing
from seedance_obs.topology.readers.pci_names import (
    is_nvidia,
    kind_of_name,
    name_in_brackets,
    split_codes,
)

FORMAT = "lspci"
TREE_FORMAT = "lspci-tree"
ACROSS = "lspci names no NUMA nodes here: NODE and SYS cannot be told apart"
NO_TREE = "no tree: PCIe levels are unknown; lspci -tv shows it"
NO_NAMES = "no names: what hangs in the tree is unknown; lspci -tv shows them"


def recognises(text: str) -> bool:
    """Whether a text holds a tree or lines of lspci."""
    return draws_tree(text) or lists_functions(text)


def read(text: str) -> Reading:
    """The GPUs, NVSwitches, NICs and NVMe drives that lspci shows, and their PCIe levels.

    A last line without a line end may be cut; it counts only if it ends in a bracket, as names
    of NVIDIA's and Mellanox's devices and all lines of `-nn` do.
    """
    lines, warnings = _whole_lines(text)
    drawing = read_drawing(lines) if draws_tree(text) else Drawing()
    functions = read_lines(line for line in lines if line[0] not in drawing.lines)
    warnings += [f"line {number}: it continues no branch of the tree" for number in drawing.strays]
    devices = _devices(drawing, functions)
    topology = assembled(devices.values())
    warnings += [
        f"{device.name} is {device.model}: whether that is a GPU cannot be told"
        for device in topology.of_kind(Kind.UNKNOWN)
    ]
    if any(path.pcie is UNKNOWN for path in topology.paths):
        warnings.append(
            ACROSS if any(isinstance(d.ports, tuple) for d in devices.values()) else NO_TREE
        )
    if drawing.leaves and not devices and not any(leaf.name for leaf in drawing.leaves):
        warnings.append(NO_NAMES)
    return Reading(topology, tuple(warnings), TREE_FORMAT if drawing.lines else FORMAT)


def _whole_lines(text: str) -> tuple[list[tuple[int, str]], list[str]]:
    lines = list(enumerate(text.splitlines(), start=1))
    if not lines or text.endswith("\n") or lines[-1][1].rstrip().endswith(("]", ")")):
        return lines, []
    number, last = lines.pop()
    return lines, [f"line {number} may be cut, no line end follows: {last.strip()!r}"]


def _devices(drawing: Drawing, functions: Iterable[Function]) -> dict[str, Device]:
    """The devices of both views; a listed class goes before what a name in the tree suggests."""
    devices = {}
    for leaf in drawing.leaves:
        name, _, number = split_codes(leaf.name)
        kind = kind_of_name(name, number)
        if kind is not None and leaf.bus.root is not None:
            devices[leaf.bus_id] = _device(leaf.bus_id, kind, name, leaf.bus.root, leaf.bus.ports)
    functions = list(functions)
    listed = positions(functions)
    drawn = {leaf.bus_id: (leaf.bus.root or UNKNOWN, leaf.bus.ports) for leaf in drawing.leaves}
    for function in functions:
        kind = _kind(function)
        if kind is None:
            devices.pop(function.bus_id, None)
            continue
        root, ports = drawn.get(function.bus_id, listed[function.bus_id])
        devices[function.bus_id] = _device(
            function.bus_id, kind, function.name, root, ports, function
        )
    return devices


def _kind(function: Function) -> Kind | None:
    """The kind by class; an unnamed vendor is known by its number."""
    vendor = function.vendor
    if vendor is None and is_nvidia(function.name):
        vendor = NVIDIA
    return kind_of_class(function.pci_class, vendor)


def _device(
    bus_id: str,
    kind: Kind,
    name: str,
    root: str | Absent,
    ports: tuple[str, ...] | Absent,
    function: Function | None = None,
) -> Device:
    return Device(
        bus_id,
        kind,
        label=name_in_brackets(name),
        bus_id=bus_id,
        model=name or UNKNOWN,
        numa=function.numa if function else UNKNOWN,
        pcie_root=root,
        pcie_switch=nearest_switch(ports),
        ports=ports,
        pcie=_link(function) if function else PcieLink(),
        nvlinks=UNKNOWN if kind is Kind.GPU else UNSUPPORTED,
    )


def _link(function: Function) -> PcieLink:
    return PcieLink(
        function.generation, function.width, function.generation_max, function.width_max
    )
