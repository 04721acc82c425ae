"""Suspects for people's terminals: what each is, whose, where it runs, and what to do next.

Everything fits the terminal but the names of suspects, which are to be pasted: pieces that do not
fit go to the next line, and another name that is longer than its place is cut in its middle. Texts
are expected to be printable; colour repeats what the words say. More than a few suspects of one
kind are counted, and an option shows them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from seedance_obs.leaks.report.drawn_tree import NAME_CELLS, draw_tree, process_name
from seedance_obs.leaks.report.in_words import money, next_step, number, numbers
from seedance_obs.leaks.report.looked_at import counted, looked_at, not_looked_at, probed
from seedance_obs.leaks.report.page import LeakPage, ToldSuspect, is_informational
from seedance_obs.leaks.report.terminal_lines import cut, flow, whole, words
from seedance_obs.leaks.suspect import INFORMATIONAL, KINDS

MOST_OF_A_KIND = 10
STALE_SECONDS = 300.0
INDENT = "    "


@dataclass(frozen=True, slots=True)
class LeakReport:
    """A page of leaks for a terminal; `kinds` are those asked for, none given: all."""

    page: LeakPage
    kinds: tuple[str, ...] = ()

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """The node and its probe, the suspects, their sum; without any, what was looked at."""
        width = options.max_width
        yield from flow(probed(self.page), width, joint="; ", indent="  ", lead="bold")
        if self.page.age_seconds > STALE_SECONDS:
            said = (
                "the probe is old, and so is what follows, or it lacks what could not be judged: "
                "look at the exporter's log"
            )
            yield from words(said, width, style="yellow")
        suspects = self.page.of_kinds(self.kinds)
        for kind, found in groupby(suspects, key=_kind_of):
            yield Text()
            yield from self._kind(kind, list(found), width)
        yield Text()
        if all(map(is_informational, suspects)):
            yield from _nothing(self.page, self.kinds, len(suspects), width)
        else:
            yield from flow(_sum(suspects, self.page.currency), width, joint=", ", indent="  ")

    def _kind(self, kind: str, found: Sequence[ToldSuspect], width: int) -> Iterator[Text]:
        style = "bold cyan" if kind in INFORMATIONAL else "bold red"
        about = f"{cut(kind, width // 2)} ({len(found)}): {KINDS.get(kind, 'not known here')}"
        yield from words(about, width, indent="  ", style=style)
        step = next_step(kind, found[0])
        if step:
            yield from words(f"next: {step}", width, start="  ", indent=INDENT)
        shown = found if self.kinds else found[:MOST_OF_A_KIND]
        for suspect in shown:
            yield from _suspect(suspect, self.page.currency, width)
        if len(shown) < len(found):
            yield Text(f"  and {len(found) - len(shown)} more: --kind {kind} shows all")


def _kind_of(suspect: ToldSuspect) -> str:
    return suspect.kind


def _suspect(suspect: ToldSuspect, currency: str, width: int) -> Iterator[Text]:
    most = max(NAME_CELLS, width // 2)
    titles = [*_subject(suspect), *(cut(word, most) for word in _whose(suspect))]
    yield from flow(titles, width, joint="  ", start="  ", indent=INDENT, lead="bold")
    yield from flow(numbers(suspect, currency), width, joint=", ", start=INDENT, indent=INDENT)
    yield from draw_tree(suspect, width, indent=INDENT, style="dim")
    places = [cut(place, width - len(INDENT)) for place in _places(suspect)]
    yield from flow(places, width, joint="  ", start=INDENT, indent=INDENT, style="dim")
    yield from whole("suspect", suspect.name, width, indent=INDENT, style="dim")


def _subject(suspect: ToldSuspect) -> Iterator[str]:
    more = len(suspect.processes) - 1
    if suspect.processes:
        yield process_name(suspect.processes[0]) + (f" and {more} more" if more > 0 else "")
    if suspect.gpu or suspect.gpu_uuid:
        board = f"GPU {cut(suspect.gpu, 10)}" if suspect.gpu else cut(suspect.gpu_uuid, 44)
        part = "" if suspect.gpu_instance is None else f" instance {suspect.gpu_instance}"
        yield f"{board}{part}"


def _whose(suspect: ToldSuspect) -> Iterator[str]:
    """The tenant and the workload; where there is none, the user whose process it is."""
    workload = suspect.identity or suspect.workload
    yield suspect.tenant or "tenant not known"
    if workload:
        yield workload
    elif suspect.user:
        yield f"user {suspect.user}"


def _places(suspect: ToldSuspect) -> Iterator[str]:
    """The namespaces that it is in, and its cgroup where nothing better says whose it is."""
    if suspect.chain:
        mount, net = suspect.mount_namespace, suspect.net_namespace
        yield f"mnt {'?' if mount is None else mount} net {'?' if net is None else net}"
    elif suspect.processes and suspect.kind != "dead_pid_memory":
        yield "process tree not known"
    if suspect.cgroup and not suspect.workload:
        yield f"cgroup {suspect.cgroup}"


def _sum(suspects: Sequence[ToldSuspect], currency: str) -> Iterator[str]:
    """`12 suspects (476 W, 0.29 EUR/h), 1 for information: 2 fd_growth`, and so on."""
    power = [one.power_watts for one in suspects if one.power_watts is not None]
    costs = [one.cost_per_hour for one in suspects if one.cost_per_hour is not None]
    burned = [f"{number(sum(power))} W"] if power else []
    burned += [money(sum(costs), currency)] if costs else []
    informational = sum(map(is_informational, suspects))
    told = counted(len(suspects) - informational, "suspect")
    told += f" ({', '.join(burned)})" if burned else ""
    told += f", {informational:,} for information" if informational else ""
    first, *rest = [
        f"{count:,} {cut(kind, 30)}" for kind, count in Counter(map(_kind_of, suspects)).items()
    ]
    yield f"{told}: {first}"
    yield from rest


def _nothing(
    page: LeakPage, kinds: Sequence[str], informational: int, width: int
) -> Iterator[Text]:
    """That there is no suspect, and how far that can be relied on."""
    looked, missed = looked_at(page), list(not_looked_at(page))
    said = "No suspects" + (f" of {', '.join(kinds)}" if kinds else "")
    said += " in what was looked at" if missed else ""
    said += f", {informational:,} for information" if informational else ""
    yield from words(f"{said}.", width, style="bold" if missed else "bold green")
    for about, things in (("Looked at", looked), ("Not looked at", missed)):
        if things:
            pieces = [f"{about}: {things[0]}", *things[1:]]
            yield from flow(pieces, width, joint="; ", indent="  ")
