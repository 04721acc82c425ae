"""A topology for people's terminals: where devices hang, and how far apart they are.

Everything fits 80 columns: names are short (`GPU3`, `NIC0`) and said in full below, a matrix that
is too wide goes on in a second one, and what is cut at the end of a line of the tree is the model.
Colour repeats what the words say, so that nothing is lost in a pipe or under NO_COLOR.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from rich.tree import Tree

from seedance_obs.topology.device_facts import address, facts, numa_node
from seedance_obs.topology.host_name import is_rack_wide
from seedance_obs.topology.in_short import counted
from seedance_obs.topology.model import (
    Absent,
    Device,
    Kind,
    Path,
    Reading,
    Topology,
    known,
)
from seedance_obs.topology.naming import in_order, natural_key, number_list, short_names
from seedance_obs.topology.safe_text import printable
from seedance_obs.topology.shown_text import as_written

# By class: how it looks, and what it means.
LEGEND = {
    "NV": ("bold green", "n NVLinks, direct or through NVSwitches"),
    "C2C": ("bold green", "NVLink from chip to chip"),
    "PIX": ("cyan", "at most one PCIe switch"),
    "PXB": ("cyan", "several PCIe switches, one root complex"),
    "PHB": ("yellow", "a PCIe host bridge (CPU)"),
    "NODE": ("yellow", "host bridges of one NUMA node"),
    "SYS": ("red", "the interconnect between NUMA nodes"),
    "?": ("dim", "not known"),
}
IN_TREE = (Kind.GPU, Kind.NIC, Kind.NVME, Kind.NVSWITCH)
CELL = 5  # the widest class and a blank
NUMA = "NUMA"


def draw_topology(reading: Reading) -> RenderableType:
    """The tree, the matrices and their legend, what else is known, and the reader's warnings.

    Without any PCIe root complex there is no tree, and the devices are said in full below. Nor is
    there a matrix without a cell that is known; without GPUs there is a sentence.
    """
    topology = reading.topology
    devices = [device for kind in Kind for device in in_order(topology.of_kind(kind))]
    names = short_names(devices)
    has_tree = any(known(device.pcie_root) for device in devices)
    matrices = list(_matrices(topology, names))
    sections: list[list[RenderableType]] = [
        [_tree(topology, devices, names)] if has_tree else [],
        *([matrix] for matrix in matrices),
        [] if topology.gpus else [Text("No GPUs.")],
        [*_legend(topology)],
        [*_not_known(topology)],
        [] if has_tree else [*_in_full(topology, names, numa=not matrices)],
        [*_peer_to_peer(topology, names, also_fine=not matrices)],
        [*_domains(topology, names)],
        [as_written(f"warning: {warning}", style="yellow") for warning in reading.warnings],
    ]
    parts: list[RenderableType] = []
    for section in filter(None, sections):
        parts += [Text(), *section] if parts else section
    return Group(*parts)


def _tree(topology: Topology, devices: Sequence[Device], names: dict[str, str]) -> Tree:
    """Host, NUMA node, root complex, switch, device; a step that is not known is left out.

    But where some NUMA nodes are known, a device without one hangs below `NUMA node ?`.
    """
    numbers = _domain_numbers(topology)
    tree = Tree(as_written(topology.host or "host", style="bold"))
    branches: dict[tuple[str, ...], Tree] = {}
    hung = [device for device in devices if device.kind in IN_TREE]
    unknown = "NUMA node ?" if any(numa_node(device) for device in hung) else None
    steps_of = {device.name: _steps(device, numa_node(device) or unknown) for device in hung}
    for device in sorted(hung, key=lambda one: [natural_key(step) for step in steps_of[one.name]]):
        branch, steps = tree, steps_of[device.name]
        for depth, step in enumerate(steps, start=1):
            if steps[:depth] not in branches:
                branches[steps[:depth]] = branch.add(as_written(step))
            branch = branches[steps[:depth]]
        said = facts(
            device,
            healthy_links=bool(numbers) and isinstance(device.nvlinks, Absent),
            domain=numbers.get(topology.domains.get(device.name, "")),
        )
        branch.add(_line(device, names[device.name], [address(device), *said]))
    return tree


def _steps(device: Device, numa: str | None) -> tuple[str, ...]:
    switch = known(device.pcie_switch)
    steps = (numa, known(device.pcie_root), f"switch {switch}" if switch else None)
    return tuple(step for step in steps if step is not None)


def _line(device: Device, name: str, words: Sequence[str]) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(name, style="bold" if device.kind is Kind.GPU else "")
    return text.append("".join(f"  {printable(word)}" for word in words))


@dataclass(frozen=True, slots=True)
class Matrix:
    """Link classes from GPUs (rows) to devices (columns), split where the terminal ends."""

    topology: Topology
    rows: tuple[Device, ...]
    columns: tuple[Device, ...]
    names: dict[str, str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The parts, as equal as can be."""
        head = max(len(self.names[row.name]) for row in self.rows) + 1
        cell = max(CELL, *(len(self.names[column.name]) + 1 for column in self.columns))
        numa = max(len(NUMA), *(len(number_list(row.numa) or "") for row in self.rows)) + 1
        fit = max(1, (options.max_width - head - numa) // cell)
        parts = -(-len(self.columns) // fit)
        size = -(-len(self.columns) // parts)
        for start in range(0, len(self.columns), size):
            if start:
                yield Text()
            yield from self._part(self.columns[start : start + size])

    def _part(self, columns: Sequence[Device]) -> Iterator[Text]:
        numa = [number_list(row.numa) for row in self.rows]
        lines = [
            [
                Text(word, style="bold")
                for word in ("", *(self.names[column.name] for column in columns))
            ]
        ]
        for row in self.rows:
            cells = [self._cell(row, column) for column in columns]
            lines.append([Text(self.names[row.name], style="bold"), *cells])
        if any(numa):
            for line, near in zip(lines, [NUMA, *(near or "?" for near in numa)], strict=True):
                line.append(Text(near, style="bold" if near == NUMA else ""))
        widths = [
            max(CELL - 1, *(len(cell) for cell in column)) for column in zip(*lines, strict=True)
        ]
        for line in lines:
            yield _aligned(line, widths)

    def _cell(self, row: Device, column: Device) -> Text:
        if row.name == column.name:
            return Text("X", style="dim")
        return class_text(self.topology.path(row.name, column.name))


def _aligned(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    for cell, width in zip(cells, widths, strict=True):
        cell.pad_right(width + 1 - len(cell))
        line.append_text(cell)
    line.rstrip()
    return line


def class_text(path: Path) -> Text:
    """A path's link class in its colour; `?` where it is not known.

    `PIX?` is a PCIe level of two GPUs of which nobody knows whether NVLinks join them, too.
    """
    return Text(_shown_class(path), style=LEGEND[_family(path)][0])


def _shown_class(path: Path) -> str:
    return path.link_class or f"{path.pcie_class or ''}?"


def _family(path: Path) -> str:
    shown = _shown_class(path)
    return "NV" if shown.startswith("NV") else shown.removesuffix("?") or "?"


def _matrices(topology: Topology, names: dict[str, str]) -> Iterator[RenderableType]:
    gpus = tuple(in_order(topology.gpus))
    nics = tuple(in_order(topology.of_kind(Kind.NIC)))
    for columns in (gpus, nics):
        if _families(topology, columns) - {"?"}:
            yield Matrix(topology, gpus, columns, names)


def _families(topology: Topology, columns: Sequence[Device]) -> set[str]:
    """The families of classes in the matrix from the GPUs to some devices."""
    return {
        _family(topology.path(gpu.name, other.name))
        for gpu in topology.gpus
        for other in columns
        if gpu.name != other.name
    }


def _legend(topology: Topology) -> Iterator[RenderableType]:
    to_gpus = _families(topology, topology.gpus)
    to_nics = _families(topology, tuple(topology.of_kind(Kind.NIC)))
    drawn = set().union(*(families for families in (to_gpus, to_nics) if families - {"?"}))
    for family, (style, meaning) in LEGEND.items():
        if family in drawn:
            shown = "NVn" if family == "NV" else family
            yield Text.assemble((f"{shown:<5}", style), meaning)


def _not_known(topology: Topology) -> Iterator[RenderableType]:
    """What there is no matrix for, because all its cells would be question marks."""
    if _families(topology, topology.gpus) == {"?"}:
        yield Text("Link classes between GPUs: not known.")
    if _families(topology, tuple(topology.of_kind(Kind.NIC))) == {"?"}:
        yield Text("Link classes from GPUs to NICs: not known.")


def _in_full(topology: Topology, names: dict[str, str], *, numa: bool) -> Iterator[RenderableType]:
    """The GPUs and NICs that there is more to say of than their short names.

    Args:
        topology: the host.
        names: the short names.
        numa: whether to name every device, and its NUMA node: there is no matrix that does.
    """
    said: list[tuple[Device, list[str]]] = []
    for device in [*in_order(topology.gpus), *in_order(topology.of_kind(Kind.NIC))]:
        words = [numa_node(device) if numa else None, *facts(device, healthy_links=True)]
        if device.label or address(device) != names[device.name]:
            words.insert(0, known(device.bus_id) or (None if device.label else device.name))
        told = [word for word in words if word]
        if told or numa:
            said.append((device, told))
    if not said:
        return
    if all(len(told) <= 1 for _, told in said):
        short = [as_written(" ".join([names[device.name], *told])) for device, told in said]
        yield Columns(short, padding=(0, 2))
    else:
        yield from (_line(device, names[device.name], told) for device, told in said)


def _peer_to_peer(
    topology: Topology, names: dict[str, str], *, also_fine: bool
) -> Iterator[RenderableType]:
    """What the driver says of peer-to-peer access, as far as it is refused somewhere."""
    found: dict[str, dict[str, list[str]]] = {}
    for one, other in combinations(in_order(topology.gpus), 2):
        for capability, status in topology.path(one.name, other.name).p2p.items():
            pairs = found.setdefault(capability, {}).setdefault(status, [])
            pairs.append(f"{names[one.name]}-{names[other.name]}")
    for capability, by_status in found.items():
        if also_fine or set(by_status) != {"ok"}:
            (most, pairs), *rest = sorted(by_status.items(), key=lambda item: -len(item[1]))
            told = [f"{most} ({counted(len(pairs), 'pair')})"]
            told += [f"{status} ({', '.join(few)})" for status, few in rest]
            name = capability if capability == "p2p" else f"p2p {capability}"
            yield as_written(f"{name}: {'; '.join(told).replace('_', ' ')}")


def _domains(topology: Topology, names: dict[str, str]) -> Iterator[RenderableType]:
    for domain, number in _domain_numbers(topology).items():
        gpus = [gpu for gpu in topology.gpus if topology.domains.get(gpu.name) == domain]
        members = frozenset(int(names[gpu.name].removeprefix("GPU")) for gpu in gpus)
        reach = " (rack-wide)" if is_rack_wide(domain, gpus) else ""
        # A matrix has no better name for a domain than that of its first GPU.
        name = "" if domain in topology.by_name else f"  {domain}"
        yield as_written(f"NVLink domain {number}{reach}: GPU {number_list(members)}{name}")


def _domain_numbers(topology: Topology) -> dict[str, int]:
    """The domains in the order of their first GPU."""
    found = [topology.domains.get(gpu.name) for gpu in in_order(topology.gpus)]
    return {domain: number for number, domain in enumerate(dict.fromkeys(filter(None, found)))}
