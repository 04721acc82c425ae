"""A topology for people's terminals: where devices hang, and how far apart they are.

Everything fits 80 columns: names are short (`GPU3`, `NIC0`) and said in full below, a matrix that
is too wide goes on in a second one, and what is cut at the end of a line of the tree is the model.
Colour repeats what the words say, so that nothing is lost in a pipe or under NO_COLOR.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from seedance_obs.topology.model import (
    Absent,
    Device,
    Kind,
    Path,
    PcieLink,
    Reading,
    Topology,
    known,
)
from seedance_obs.topology.naming import in_order, natural_key, number_list, short_names

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
    """The tree, the matrices and their legend, the NVLink domains, and the reader's warnings.

    Without any PCIe root complex there is no tree; without GPUs there is a sentence.
    """
    topology = reading.topology
    devices = [device for kind in Kind for device in in_order(topology.of_kind(kind))]
    names = short_names(devices)
    parts: list[RenderableType] = []
    has_tree = any(known(device.pcie_root) for device in devices)
    if has_tree:
        parts += [_tree(topology, devices, names), Text()]
    parts += _matrices(topology, names) if topology.gpus else [Text("No GPUs.")]
    if not has_tree:
        parts += _nics_in_full(topology, names)
    parts += _domains(topology, names)
    parts.extend(Text(f"warning: {warning}", style="yellow") for warning in reading.warnings)
    return Group(*parts)


def _tree(topology: Topology, devices: Sequence[Device], names: dict[str, str]) -> Tree:
    """Host, NUMA node, root complex, switch, device; a step that is not known is left out."""
    numbers = _domain_numbers(topology)
    tree = Tree(Text(topology.host or "host", style="bold"))
    branches: dict[tuple[str, ...], Tree] = {}
    hung = [device for device in devices if device.kind in IN_TREE]
    for device in sorted(hung, key=lambda device: [natural_key(step) for step in _steps(device)]):
        branch, steps = tree, _steps(device)
        for depth, step in enumerate(steps, start=1):
            if steps[:depth] not in branches:
                branches[steps[:depth]] = branch.add(Text(step))
            branch = branches[steps[:depth]]
        domain = numbers.get(topology.domains.get(device.name, ""))
        branch.add(_leaf(device, names[device.name], domain))
    return tree


def _steps(device: Device) -> tuple[str, ...]:
    steps = (
        f"NUMA node {number_list(device.numa) or '?'}",
        known(device.pcie_root),
        f"switch {device.pcie_switch}" if known(device.pcie_switch) else None,
    )
    return tuple(step for step in steps if step is not None)


def _leaf(device: Device, name: str, domain: int | None) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(name, style="bold" if device.kind is Kind.GPU else "")
    model = known(device.model)
    said = [
        known(device.bus_id) or device.name,
        _pcie(device.pcie),
        None if domain is None else f"domain {domain}",
        None if device.present else "lost",
        device.label if device.label != model else None,
        model.removeprefix("NVIDIA ") if model else None,
    ]
    for word in said:
        if word:
            text.append(f"  {word}")
    return text


def _pcie(link: PcieLink) -> str | None:
    """`gen5 x16`, or `gen1/5 x8/16` where the link runs below what it could."""
    generation = _of(link.generation, link.generation_max)
    width = _of(link.width, link.width_max)
    words = [f"gen{generation}" if generation else "", f"x{width}" if width else ""]
    return " ".join(word for word in words if word) or None


def _of(now: int | Absent, best: int | Absent) -> str | None:
    if isinstance(now, Absent):
        return None
    return str(now) if isinstance(best, Absent) or now >= best else f"{now}/{best}"


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
            yield self._part(self.columns[start : start + size])

    def _part(self, columns: Sequence[Device]) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
        table.add_column("", no_wrap=True, style="bold")
        for column in columns:
            table.add_column(self.names[column.name], no_wrap=True, min_width=CELL - 1)
        numa = [number_list(row.numa) for row in self.rows]
        if any(numa):
            table.add_column(NUMA, no_wrap=True)
        for row, near in zip(self.rows, numa, strict=True):
            cells = [self._cell(row, column) for column in columns]
            table.add_row(self.names[row.name], *cells, *([near or "?"] if any(numa) else []))
        return table

    def _cell(self, row: Device, column: Device) -> Text:
        if row.name == column.name:
            return Text("X", style="dim")
        return class_text(self.topology.path(row.name, column.name))


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
        if columns:
            yield Matrix(topology, gpus, columns, names)
            yield Text()
    yield from _legend(topology, gpus, nics)


def _nics_in_full(topology: Topology, names: dict[str, str]) -> Iterator[RenderableType]:
    """What the short names of the NICs stand for, where they stand for anything."""
    nics = in_order(topology.of_kind(Kind.NIC))
    full = [(names[nic.name], nic.label or known(nic.bus_id) or nic.name) for nic in nics]
    if any(short != said for short, said in full):
        yield Columns([Text(f"{short} {said}") for short, said in full], padding=(0, 2))
        yield Text()


def _legend(
    topology: Topology, gpus: Sequence[Device], nics: Sequence[Device]
) -> Iterator[RenderableType]:
    drawn = {
        _family(topology.path(gpu.name, other.name))
        for gpu in gpus
        for other in (*gpus, *nics)
        if gpu.name != other.name
    }
    for family, (style, meaning) in LEGEND.items():
        if family in drawn:
            shown = "NVn" if family == "NV" else family
            yield Text.assemble((f"{shown:<5}", style), meaning)
    if drawn:
        yield Text()


def _domains(topology: Topology, names: dict[str, str]) -> Iterator[RenderableType]:
    for domain, number in _domain_numbers(topology).items():
        gpus = [gpu for gpu in topology.gpus if topology.domains.get(gpu.name) == domain]
        members = frozenset(int(names[gpu.name].removeprefix("GPU")) for gpu in gpus)
        yield Text(f"NVLink domain {number}: GPU {number_list(members)}  {domain}")


def _domain_numbers(topology: Topology) -> dict[str, int]:
    """The domains in the order of their first GPU."""
    found = [topology.domains.get(gpu.name) for gpu in in_order(topology.gpus)]
    return {domain: number for number, domain in enumerate(dict.fromkeys(filter(None, found)))}
