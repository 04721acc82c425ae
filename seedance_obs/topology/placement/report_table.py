"""A placement report as a person reads it in a terminal of 80 columns."""

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from seedance_obs.topology.bandwidth import Basis
from seedance_obs.topology.model import UNSUPPORTED, Absent
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


def _notes(report: Report) -> list[str]:
    pairs = [pair for found in report.sets for pair in found.placement.pairs]
    bases = [BASES[basis] for basis in Basis if any(pair.basis is basis for pair in pairs)]
    notes = [f"GB/s one way, from {'; '.join(bases)}."] if bases else []
    if any(_unknown(found) for found in report.sets):
        notes.append(f"{UNKNOWN_SIGN}: not known.  -: there is no such thing.")
    if not all(found.exact for found in report.sets):
        notes.append("Too many sets to look at each: best and worst are those of a greedy search.")
    return [*notes, f"Plugin score: {Allocator.GO_GPUALLOCATOR}'s, of NVIDIA's device plugin."]


def _unknown(found: ReportedSet) -> bool:
    placement = found.placement
    shown = [placement.bottleneck, placement.worst_class, placement.numa_spread]
    shown += [value for _, value in found.scores]
    if found.policy:
        shown += [part.value for part in found.policy.contributions]
    return any(isinstance(value, Absent) for value in shown)


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
        f"Against {pool}: {_gigabytes(standing.actual.bottleneck)} GB/s,"
        f" {standing.regret:.0%} below the best ({_gigabytes(best.bottleneck)};"
        f" worst {_gigabytes(worst.bottleneck)})"
    )
    if isinstance(standing.percentile, Absent):
        return f"{told}."
    return f"{told}; {1 - standing.percentile:.0%} of the sets are better."


def _gigabytes(bytes_per_second: float | Absent) -> str:
    if isinstance(bytes_per_second, Absent):
        return _shown(bytes_per_second)
    return f"{bytes_per_second / 1e9:.1f}"


def _shown(value: object) -> str:
    if isinstance(value, Absent):
        return "-" if value is UNSUPPORTED else UNKNOWN_SIGN
    return str(value)
