"""A placement report as a person reads it in a terminal of 80 columns."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from seedance_obs.topology.bandwidth import Basis
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Absent
from seedance_obs.topology.placement.allocator_score import Allocator
from seedance_obs.topology.placement.gpu_lists import shown_gpus
from seedance_obs.topology.placement.placements import Standing
from seedance_obs.topology.placement.policy import Check, Contribution, TopologyPolicy
from seedance_obs.topology.placement.policy_rules import RULES
from seedance_obs.topology.placement.report import Report, ReportedSet

LETTERS = "ABCDEFGH"
UNKNOWN_SIGN = "?"
GPUS_ON_A_LINE = 16
BASES = {
    Basis.NVLINK: "NVLinks times the rate the driver states or the product has",
    Basis.PCIE: "PCIe generation and width",
    Basis.ASSUMED: "NCCL's constants, for want of a link rate or a PCIe generation",
}


def print_report(report: Report, console: Console) -> None:
    """Print the sets, the policy's parts and how the actual set compares."""
    host = f" on {report.topology.host}" if report.topology.host else ""
    console.print(
        f"Sets of {report.size} of {len(report.gpus)} GPUs{host}{_free(report)}", highlight=False
    )
    console.print(_sets(report))
    for line in _notes(report):
        console.print(line, style="dim", highlight=False)
    if report.policy:
        console.print()
        console.print(_policy(report, report.policy))
    if report.choiceless:
        console.print(f"The policy has no choice: {_why_choiceless(report)}.")
    if report.standings:
        console.print()
    for among, standing in report.standings:
        console.print(_standing(among, standing), highlight=False)


def _free(report: Report) -> str:
    if report.free is None:
        return ""
    few = "" if len(report.free) >= report.size else " (too few for a set)"
    return f"; free: {shown_gpus(report.topology, report.free)}{few}"


def _why_choiceless(report: Report) -> str:
    free = report.gpus if report.free is None else report.free
    if len(free) < report.size:
        return "there are too few free GPUs"
    return "every set of free GPUs breaks a constraint"


def _table(*columns: str, left: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, column in enumerate(columns):
        justify: JustifyMethod = "left" if place < left else "right"
        table.add_column(column, justify=justify, overflow="fold")
    return table


def _sets(report: Report) -> Table:
    columns = ("", "set", "GPUs", "slowest\nGB/s", "mean\nGB/s", "worst\nlink", "NUMA\nnodes")
    table = _table(*columns, "plugin\nscore", "HAMi\nscore", left=3)
    for column in table.columns:
        column.no_wrap = column.header != "GPUs"
    for letter, found in zip(LETTERS, report.sets, strict=False):
        placement = found.placement
        table.add_row(
            letter,
            "\n".join(found.roles),
            _foldable(shown_gpus(report.topology, placement.gpus)),
            _gigabytes(placement.bottleneck),
            _gigabytes(placement.mean),
            _shown(placement.worst_class),
            _shown(placement.numa_spread),
            *(_shown(value) for _, value in found.scores),
        )
    return table


def _foldable(gpus: str) -> str:
    return gpus if len(gpus) <= GPUS_ON_A_LINE else gpus.replace(",", ", ")


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


def _policy(report: Report, policy: TopologyPolicy) -> Table:
    scored = [found.policy for found in report.sets if found.policy]
    table = _table(f"policy {policy.name}", "weight", *LETTERS[: len(scored)], left=1)
    table.columns[0].min_width = max(len(rule) for rule in RULES)
    for place, rule in enumerate(policy.rules):
        parts = [_part(found.contributions[place]) for found in scored]
        table.add_row(rule.type, f"{rule.weight:g}", *parts)
    table.add_section()
    totals = [f"{found.total:.1f}" for found in scored]
    table.add_row("total", f"{policy.most:g}", *totals, style="bold")
    for place, constraint in enumerate(policy.constraints):
        table.add_row(str(constraint), "", *(_check(found.checks[place]) for found in scored))
    return table


def _part(part: Contribution) -> Text:
    value = part.value
    shown = _shown(value) if isinstance(value, Absent) else f"x {value:.2f}"
    return Text.assemble(f"{part.points:.1f}\n", (shown, "dim"))


def _check(check: Check) -> Text:
    found = _shown(check.found) if isinstance(check.found, Absent) else ", ".join(check.found)
    return Text.assemble(
        ("met", "green") if check.met else ("broken", "red"), ("\n" + found, "dim")
    )


def _standing(among: str, standing: Standing) -> str:
    best, worst = standing.extremes.best, standing.extremes.worst
    pool = "all GPUs" if among == "all" else "the free GPUs and its own"
    if isinstance(standing.regret, Absent):
        why = "one GPU has no pairs" if standing.regret is UNSUPPORTED else "a bandwidth is unknown"
        return f"Against {pool}: not to be told, {why}."
    told = (
        f"Against {pool}: {_gigabytes(standing.actual.bottleneck)} GB/s, {_below(standing.regret)}"
        f" ({_gigabytes(best.bottleneck)}; worst {_gigabytes(worst.bottleneck)})"
    )
    if isinstance(standing.percentile, Absent) or not standing.regret:
        return f"{told}."
    return f"{told}; {1 - standing.percentile:.0%} of the sets are better."


def _below(regret: float) -> str:
    return f"{regret:.0%} below the best" if regret else "as fast as the best"


def _gigabytes(bytes_per_second: float | Absent) -> str:
    if isinstance(bytes_per_second, Absent):
        return _shown(bytes_per_second)
    return f"{bytes_per_second / 1e9:.1f}"


def _shown(value: object) -> str:
    if isinstance(value, Absent):
        return "-" if value is UNSUPPORTED else UNKNOWN_SIGN
    return str(value)
