"""A placement report as a person reads it in a terminal: tables, or blocks where it is narrow.

A number or a range of GPUs is never cut or broken; what does not fit beside each other is stacked.
"""

from collections.abc import Iterator

from rich import box
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from seedance_obs.topology.bandwidth import Basis
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Absent
from seedance_obs.topology.placement.allocator_score import Allocator
from seedance_obs.topology.placement.gpu_lists import shown_gpus
from seedance_obs.topology.placement.placements import Standing
from seedance_obs.topology.placement.policy import Check, Contribution, TopologyPolicy
from seedance_obs.topology.placement.report import Report, ReportedSet
from seedance_obs.topology.placement.report_stack import (
    LETTERS,
    UNKNOWN_SIGN,
    fact,
    gigabytes,
    joined_roles,
    points,
    shown,
    stacked_policy,
    stacked_sets,
)
from seedance_obs.topology.placement.set_search import exhaustible
from seedance_obs.topology.safe_text import printable
from seedance_obs.topology.shown_text import folded

SOME = 0.005  # what is less would be rounded to 0%
# What is tried before the stack: blanks between columns, and the width that GPU lists, or labels
# and found words of the policy, are folded to.
SETS_LAYOUTS = ((2, None), (1, None), (1, 12))
POLICY_LAYOUTS = ((None, None), (24, 12))
ANY_WIDTH = 10_000
BASES = {
    Basis.NVLINK: "NVLinks times the rate the driver states or the product has",
    Basis.PCIE: "PCIe generation and width",
    Basis.ASSUMED: "NCCL's constants, for want of a link rate or a PCIe generation",
}


def print_report(report: Report, console: Console) -> None:
    """Print the sets, the policy's parts and how the actual set compares."""
    host = f" on {report.topology.host}" if report.topology.host else ""
    _say(console, f"Sets of {report.size} of {len(report.gpus)} GPUs{host}{_free(report)}")
    console.print()
    tables = (_sets(report, *layout) for layout in SETS_LAYOUTS)
    _show(console, tables, stacked_sets(report, console.width))
    console.print()
    for line in _notes(report):
        _say(console, line, style="dim")
    if report.policy:
        console.print()
        tables = (_policy(report, report.policy, *layout) for layout in POLICY_LAYOUTS)
        _show(console, tables, stacked_policy(report, report.policy, console.width))
    if report.choiceless or report.standings:
        console.print()
    if report.choiceless:
        _say(console, f"The policy has no choice: {_why_choiceless(report)}.")
    for among, standing in report.standings:
        _say(console, _standing(among, standing))


def _say(console: Console, line: str, *, style: str = "") -> None:
    """A sentence, of which no word and no range of GPUs is broken."""
    console.print(Text(folded([printable(line)], console.width), style=style), soft_wrap=True)


def _show(console: Console, tables: Iterator[Table], stack: Iterator[str]) -> None:
    """The first table that fits, or else the stack."""
    options = console.options.update(max_width=ANY_WIDTH)
    for table in tables:
        if Measurement.get(console, options, table).maximum <= console.width:
            console.print(table)
            return
    for line in stack:
        console.print(Text(line), soft_wrap=True)


def _free(report: Report) -> str:
    if report.free is None:
        return ""
    few = "" if report.enough_free else " (too few for a set)"
    return f"; free: {shown_gpus(report.topology, report.free)}{few}"


def _why_choiceless(report: Report) -> str:
    free = report.gpus if report.free is None else report.free
    if not report.enough_free:
        return "there are too few free GPUs"
    looked_at = "" if exhaustible(len(free), report.size) else " that was looked at"
    return f"every set of free GPUs{looked_at} breaks a constraint"


def _table(*columns: str, left: int, gap: int = 2) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),  # the box draws one more
        header_style="bold",
    )
    for place, column in enumerate(columns):
        justify: JustifyMethod = "left" if place < left else "right"
        table.add_column(Text(column), justify=justify, no_wrap=True)
    return table


def _sets(report: Report, gap: int, gpus_width: int | None) -> Table:
    columns = ("", "set", "GPUs", "slowest\nGB/s", "mean\nGB/s", "worst\nlink", "NUMA\nnodes")
    table = _table(*columns, "plugin\nscore", "HAMi\nscore", left=3, gap=gap)
    for letter, found in zip(LETTERS, report.sets, strict=False):
        placement = found.placement
        cells = (
            letter,
            joined_roles(found.roles),
            _cell(shown_gpus(report.topology, placement.gpus), gpus_width),
            gigabytes(placement.bottleneck),
            gigabytes(placement.mean),
            shown(placement.worst_class),
            shown(placement.numa_spread),
            *(shown(value) for _, value in found.scores),
        )
        table.add_row(*map(Text, cells))
    return table


def _cell(text: str, width: int | None) -> str:
    return printable(text) if width is None else folded([printable(text)], width)


def _notes(report: Report) -> Iterator[str]:
    pairs = [pair for found in report.sets for pair in found.placement.pairs]
    bases = [BASES[basis] for basis in Basis if any(pair.basis is basis for pair in pairs)]
    yield from _alike(report)
    if bases:
        yield f"GB/s between two GPUs, one way, from {'; '.join(bases)}."
    absent = {value for found in report.sets for value in _absent(found)}
    signs = ((UNKNOWN, UNKNOWN_SIGN, "not known"), (UNSUPPORTED, "-", "there is no such thing"))
    meanings = [f"{sign}: {meaning}." for value, sign, meaning in signs if value in absent]
    if meanings:
        yield "  ".join(meanings)
    if not all(found.exact for found in report.sets):
        yield "Too many sets to look at each: best and worst are those of a greedy search."
    yield (
        f"Higher scores are better. plugin: {Allocator.GO_GPUALLOCATOR}, which NVIDIA's device "
        "plugin asks; HAMi: that of the HAMi scheduler."
    )


def _alike(report: Report) -> Iterator[str]:
    """Why the best set is the worst one, too, where it is."""
    for found in report.sets:
        if {"best of all", "worst of all"} <= set(found.roles):
            if len(report.gpus) == report.size:
                yield "There is one set only: all GPUs."
            elif isinstance(found.placement.bottleneck, Absent) and report.size > 1:
                yield "Nothing is known that tells the sets apart."
            elif found.exact:
                yield "All sets of this size are as good as each other."


def _absent(found: ReportedSet) -> Iterator[Absent]:
    """Why values that the tables show are not there."""
    placement = found.placement
    shown = [placement.bottleneck, placement.worst_class, placement.numa_spread]
    shown += [value for _, value in found.scores]
    if found.policy:
        shown += [part.value for part in found.policy.contributions]
        shown += [check.found for check in found.policy.checks if isinstance(check.found, Absent)]
    return (value for value in shown if isinstance(value, Absent))


def _policy(
    report: Report, policy: TopologyPolicy, label_width: int | None, found_width: int | None
) -> Table:
    scored = [found.policy for found in report.sets if found.policy]
    title = _cell(f"policy {policy.name}", label_width)
    table = _table(title, "weight", *LETTERS[: len(scored)], left=1)
    for place, rule in enumerate(policy.rules):
        parts = [_part(found.contributions[place]) for found in scored]
        table.add_row(Text(rule.type), Text(f"{rule.weight:g}"), *parts)
    table.add_section()
    totals = [Text(f"{found.total:.1f}") for found in scored]
    table.add_row(Text("total"), Text(f"{policy.most:g}"), *totals, style="bold")
    for place, constraint in enumerate(policy.constraints):
        checks = [_check(found.checks[place], found_width) for found in scored]
        table.add_row(Text(_cell(str(constraint), label_width)), Text(), *checks)
    return table


def _part(part: Contribution) -> Text:
    return Text.assemble(f"{part.points:.1f}\n", (points(part.value), "dim"))


def _check(check: Check, width: int | None) -> Text:
    verdict = ("met", "green") if check.met else ("broken", "red")
    return Text.assemble(verdict, (f"\n{_cell(fact(check), width)}", "dim"))


def _standing(among: str, standing: Standing) -> str:
    best, worst = standing.extremes.best, standing.extremes.worst
    pool = "all GPUs" if among == "all" else "the free GPUs and its own"
    if isinstance(standing.regret, Absent):
        why = "one GPU has no pairs" if standing.regret is UNSUPPORTED else "a bandwidth is unknown"
        return f"Against {pool}: not to be told, {why}."
    told = (
        f"Against {pool}: {gigabytes(standing.actual.bottleneck)} GB/s, {_below(standing.regret)}"
        f" ({gigabytes(best.bottleneck)}; worst {gigabytes(worst.bottleneck)})"
    )
    if isinstance(standing.percentile, Absent) or not standing.regret:
        return f"{told}."
    return f"{told}; {_share(1 - standing.percentile)} of the sets are better."


def _below(regret: float) -> str:
    return f"{_share(regret)} below the best" if regret else "as fast as the best"


def _share(ratio: float) -> str:
    """A share that there is some of: little of it is not `0%`."""
    return "under 1%" if ratio < SOME else f"{ratio:.0%}"
