"""The processes of one suspect as a tree below the first process of their container or job."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from seedance_obs.leaks.report.in_words import main_number
from seedance_obs.leaks.report.page import ToldFinding, ToldSuspect
from seedance_obs.leaks.report.terminal_lines import cut, flow
from seedance_obs.process_tree import ProcessName

MOST_PROCESSES = 6
NAME_CELLS = 24  # of a process, which Linux cuts at 15 bytes
INDENT = "  "  # of each step down

_Key = tuple[int, int | None]


@dataclass(slots=True)
class _Node:
    """A process, what is said of it, and those below it, the worst first."""

    process: ProcessName
    said: str = ""
    suspect: bool = False
    below: dict[_Key, "_Node"] = field(default_factory=dict)


def process_name(process: ProcessName) -> str:
    """`python3[4711]`."""
    return f"{cut(process.comm or '?', NAME_CELLS)}[{process.pid}]"


def draw_tree(suspect: ToldSuspect, width: int, *, indent: str, style: str = "") -> list[Text]:
    """The worst processes, each with its number where there are several; the others counted.

    A process whose parents nobody has looked at stands right below the first of them all, which
    it has in common with the others. Empty where nothing is known of the worst one's parents.
    """
    if not suspect.chain:
        return []
    lines = list(_draw(_grown(suspect), width, indent, style))
    left_out = len(suspect.processes) - MOST_PROCESSES
    if left_out > 0:
        lines += flow(
            [f"{indent}{INDENT}and {left_out:,} more of them"], width, joint="", style=style
        )
    return lines


def _grown(suspect: ToldSuspect) -> _Node:
    findings: dict[_Key, ToldFinding] = {}
    for finding in suspect.findings:
        findings.setdefault(_key(finding.process), finding)
    root = _Node(suspect.chain[0])
    several = len(suspect.processes) > 1
    for worst, process in enumerate(suspect.processes[:MOST_PROCESSES]):
        found = findings.get(_key(process), ToldFinding(process))
        chain = found.chain or (() if worst else suspect.chain)
        node = _put(root, [*(chain[1:] if chain[:1] == suspect.chain[:1] else ()), process])
        node.suspect = True
        node.said = main_number(suspect.kind, found.evidence) if several else ""
    return root


def _put(root: _Node, path: Sequence[ProcessName]) -> _Node:
    """The node at the end of a path below the root; what is on the way is added."""
    node = root
    for process in path:
        if _key(process) != _key(node.process):
            node = node.below.setdefault(_key(process), _Node(process))
    return node


def _draw(node: _Node, width: int, indent: str, style: str) -> Iterator[Text]:
    """A process on a line with those below it as long as there is one and nothing to say."""
    indent = indent[: width // 2]
    names = [process_name(node.process)]
    while not node.suspect and len(node.below) == 1:
        (node,) = node.below.values()
        names.append(process_name(node.process))
    line = _chain(names, width - len(indent))
    pieces = [line, node.said] if node.said else [line]
    yield from flow(
        pieces, width, joint="  ", start=indent, indent=f"{indent}{INDENT}", style=style
    )
    for below in node.below.values():
        yield from _draw(below, width, f"{indent}{INDENT}", style)


def _chain(names: list[str], width: int) -> str:
    """The chain on one line: where it is too long, some after the first process are left out."""
    first, *rest = names
    shown = rest
    while shown and cell_len(" > ".join([first, "...", *shown])) > width:
        shown = shown[1:]
    if len(shown) == len(rest) or cell_len(" > ".join(names)) <= width:
        return " > ".join(names)
    return " > ".join([first, "...", *(shown or rest[-1:])])


def _key(process: ProcessName) -> _Key:
    return process.pid, process.start_ticks
