"""Suspects for people's terminals: what each is, whose, where it runs, and what to do next.

Everything fits the terminal: pieces that do not fit go to the next line, and a name that is longer
than its place is cut in its middle. Texts are expected to be printable; colour repeats what the
words say. More than a few suspects of one kind are counted, and an option shows them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from seedance_obs.leaks.in_words import duration, money, next_step, number, numbers
from seedance_obs.leaks.page import LeakPage, ToldSuspect, ToldWindow
from seedance_obs.leaks.suspect import KINDS, ProcessName

MOST_OF_A_KIND = 10
STALE_SECONDS = 300.0
NAME_CELLS = 24  # of a process, which Linux cuts at 15 bytes
INDENT = "    "
# Why processes could not be read, where the outcome of the probe is no word for people.
UNREAD = {
    "gone": "ended meanwhile",
    "no_permission": "not permitted",
    "hidden": "hidden or ended",
    "fds_unknown": "open files unknown",
}


@dataclass(frozen=True, slots=True)
class LeakReport:
    """A page of leaks for a terminal; `kinds` are those asked for, none given: all."""

    page: LeakPage
    kinds: tuple[str, ...] = ()

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The node and its probe, then the suspects or what was looked at, then the sum."""
        width = options.max_width
        yield from _flow(_head(self.page), width, joint="; ", indent="  ", lead="bold")
        if self.page.age_seconds > STALE_SECONDS:
            said = "the probe is old, and what follows is too, or lacks a kind: look at the exporter's log"
            yield from _flow(said.split(), width, joint=" ", style="yellow")
        suspects = self.page.of_kinds(self.kinds)
        for kind, found in groupby(suspects, key=_kind_of):
            yield Text()
            yield from self._kind(kind, list(found), width)
        yield Text()
        if suspects:
            yield from _flow(_sum(suspects, self.page.currency), width, joint=", ", indent="  ")
        else:
            yield from _nothing(self.page, self.kinds, width)

    def _kind(self, kind: str, found: Sequence[ToldSuspect], width: int) -> Iterator[Text]:
        style = "bold cyan" if kind == "sparse_residency" else "bold red"
        about = f"{_cut(kind, width // 2)} ({len(found)}): {KINDS.get(kind, 'not known here')}"
        yield from _flow(about.split(), width, joint=" ", indent="  ", style=style)
        step = next_step(kind, found[0])
        if step:
            yield from _flow(f"next: {step}".split(), width, joint=" ", start="  ", indent=INDENT)
        shown = found if self.kinds else found[:MOST_OF_A_KIND]
        for suspect in shown:
            yield from _suspect(suspect, self.page.currency, width)
        if len(shown) < len(found):
            yield Text(f"  and {len(found) - len(shown)} more: --kind {kind} shows all")


def _kind_of(suspect: ToldSuspect) -> str:
    return suspect.kind


def _counted(number_of: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`, `409 processes`."""
    plural = "" if number_of == 1 else "es" if noun.endswith("s") else "s"
    return f"{number_of:,} {noun}{plural}"


def _head(page: LeakPage) -> Iterator[str]:
    read, probed = page.processes.get("read", 0), sum(page.processes.values())
    of_all = "" if read == probed else f"{read:,} of "
    counted = f"{of_all}{_counted(probed, 'process')}"
    yield f"{_cut(page.node, 40)}: {counted} read {duration(page.age_seconds)} ago"
    if read != probed:
        yield f"others: {_unread(page)}"
    node, workloads = _windows(page)
    if node is not None:
        yield f"idle window {_state(node)}"
    if workloads:
        yield f"workloads' own: {sum(one.open for one in workloads)} of {len(workloads)} open"


def _unread(page: LeakPage) -> str:
    """How many processes could not be read, by reason, the most first."""
    return ", ".join(
        f"{count:,} {_cut(UNREAD.get(outcome, _spoken(outcome)), 30)}"
        for outcome, count in sorted(page.processes.items(), key=lambda item: -item[1])
        if outcome != "read" and count
    )


def _windows(page: LeakPage) -> tuple[ToldWindow | None, list[ToldWindow]]:
    """The node's idle window, and those of workloads."""
    of_node = [window for window in page.windows if not window.workload]
    return (of_node[0] if of_node else None), [one for one in page.windows if one.workload]


def _state(window: ToldWindow) -> str:
    if window.open:
        return "open"
    return f"closed ({_cut(_spoken(window.reason), 30)})" if window.reason else "closed"


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _suspect(suspect: ToldSuspect, currency: str, width: int) -> Iterator[Text]:
    most = max(NAME_CELLS, width // 2)
    whose = [suspect.tenant or "tenant not known", suspect.identity or suspect.workload]
    titles = [*_subject(suspect), *(_cut(word, most) for word in whose if word)]
    yield from _flow(titles, width, joint="  ", start="  ", indent=INDENT, lead="bold")
    yield from _flow(numbers(suspect, currency), width, joint=", ", start=INDENT, indent=INDENT)
    tree = [*_tree(suspect, width - len(INDENT)), f"suspect {_cut(suspect.name, most)}"]
    yield from _flow(tree, width, joint="  ", start=INDENT, indent=INDENT, style="dim")


def _subject(suspect: ToldSuspect) -> Iterator[str]:
    more = len(suspect.processes) - 1
    if suspect.processes:
        yield _process(suspect.processes[0]) + (f" and {more} more" if more > 0 else "")
    if suspect.gpu or suspect.gpu_uuid:
        board = f"GPU {_cut(suspect.gpu, 10)}" if suspect.gpu else _cut(suspect.gpu_uuid, 44)
        part = "" if suspect.gpu_instance is None else f" instance {suspect.gpu_instance}"
        yield f"{board}{part}"


def _process(process: ProcessName) -> str:
    return f"{_cut(process.comm or '?', NAME_CELLS)}[{process.pid}]"


def _tree(suspect: ToldSuspect, width: int) -> Iterator[str]:
    """The chain from the sandbox's first process down, and the namespaces it is in."""
    if suspect.chain:
        yield _chain([_process(process) for process in suspect.chain], width)
        mount, net = suspect.mount_namespace, suspect.net_namespace
        yield f"mnt {'?' if mount is None else mount} net {'?' if net is None else net}"
    elif suspect.processes and suspect.kind != "dead_pid_memory":
        yield "process tree not known"


def _chain(names: list[str], width: int) -> str:
    """The chain on one line: where it is too long, some after the first process are left out."""
    first, *rest = names
    shown = rest
    while shown and cell_len(" > ".join([first, "...", *shown])) > width:
        shown = shown[1:]
    if len(shown) == len(rest) or cell_len(" > ".join(names)) <= width:
        return " > ".join(names)
    return " > ".join([first, "...", *(shown or rest[-1:])])


def _sum(suspects: Sequence[ToldSuspect], currency: str) -> Iterator[str]:
    """`12 suspects (476 W, 0.29 EUR/h): 2 fd_growth`, and so on."""
    power = [one.power_watts for one in suspects if one.power_watts is not None]
    costs = [one.cost_per_hour for one in suspects if one.cost_per_hour is not None]
    burned = [f"{number(sum(power))} W"] if power else []
    burned += [money(sum(costs), currency)] if costs else []
    told = _counted(len(suspects), "suspect") + (f" ({', '.join(burned)})" if burned else "")
    first, *rest = [
        f"{count:,} {_cut(kind, 30)}" for kind, count in Counter(map(_kind_of, suspects)).items()
    ]
    yield f"{told}: {first}"
    yield from rest


def _nothing(page: LeakPage, kinds: Sequence[str], width: int) -> Iterator[Text]:
    """That there is no suspect, and how far that can be relied on."""
    of_kinds = f" of {', '.join(kinds)}" if kinds else ""
    yield from _flow(f"No suspects{of_kinds}.".split(), width, joint=" ", style="bold green")
    looked, missed = _looked_at(page)
    for words, things in (("Looked at", looked), ("Not looked at", missed)):
        if things:
            pieces = [f"{words}: {things[0]}", *things[1:]]
            yield from _flow(pieces, width, joint="; ", indent="  ")


def _looked_at(page: LeakPage) -> tuple[list[str], list[str]]:
    """What the last probe has looked at, and what it has not."""
    looked, missed = [], []
    read, probed = page.processes.get("read", 0), sum(page.processes.values())
    if read:
        looked.append(f"open files of {_counted(read, 'process')}")
    if read != probed:
        missed.append(f"{_counted(probed - read, 'process')} ({_unread(page)})")
    elif not probed:
        missed.append("processes (none holds a GPU, or belongs to one that does)")
    node, workloads = _windows(page)
    open_ones = sum(window.open for window in workloads)
    if node is not None and node.open:
        looked += ["growth of memory"] if read else []
    else:
        if open_ones:
            looked.append(f"growth of memory in {open_ones} of {len(workloads)} workloads")
        why = "" if node is None or not node.reason else f", {_cut(_spoken(node.reason), 30)}"
        told = "growth of memory elsewhere" if open_ones else "growth of memory"
        missed.append(f"{told} (no idle window{why}; {_last_idle(page)})")
    if page.gpus:
        looked.append(f"{_counted(page.gpus, 'GPU')} and who holds them")
    else:
        missed.append("GPUs (none is seen)")
    return looked, missed


def _last_idle(page: LeakPage) -> str:
    if page.idle_age_seconds is None:
        return "never yet"
    return f"last one {duration(page.idle_age_seconds)} ago"


def _cut(text: str, cells: int) -> str:
    """The text in at most so many cells, its middle left out where it is longer."""
    if len(text) <= cells and cell_len(text) <= cells:
        return text
    head, tail = text[:cells], text[-(cells // 2) :]
    while cell_len(tail) > (cells - 1) // 2:
        tail = tail[1:]
    kept = set_cell_size(head, cells - 1 - cell_len(tail)).rstrip()
    return f"{kept}…{tail}"


def _flow(
    pieces: Iterable[str],
    width: int,
    *,
    joint: str,
    start: str = "",
    indent: str = "",
    style: str = "",
    lead: str = "",
) -> Iterator[Text]:
    """Lines of whole pieces, each on the next line where it does not fit on this one.

    Args:
        pieces: what is to stay together; one that is wider than a line is cut at its end.
        width: columns of the terminal.
        joint: what stands between two pieces.
        start: what the first line begins with.
        indent: what the others begin with.
        style: how it all looks.
        lead: how the first piece looks.
    """
    lines: list[str] = []
    first = None
    for piece in pieces:
        if first is None:
            first = len(start + piece)
            lines.append(start + piece)
        elif cell_len(lines[-1] + joint + piece) <= width - len(joint.rstrip()):
            lines[-1] += joint + piece
        else:
            lines[-1] += joint.rstrip()
            lines.append(indent + piece)
    for place, line in enumerate(lines):
        text = Text(line, style=style, no_wrap=True, overflow="ellipsis")
        if lead and not place:
            text.stylize(lead, 0, first)
        yield text
