"""A placement report one below the other, for terminals that are too narrow for its tables."""

from collections.abc import Iterator, Sequence

from seedance_obs.topology.model import UNSUPPORTED, Absent
from seedance_obs.topology.placement.gpu_lists import shown_gpus
from seedance_obs.topology.placement.policy import Check, Contribution, TopologyPolicy
from seedance_obs.topology.placement.report import Report, ReportedSet
from seedance_obs.topology.safe_text import printable
from seedance_obs.topology.shown_text import folded

LETTERS = "ABCDEFGH"
UNKNOWN_SIGN = "?"
INDENT = "   "


def stacked_sets(report: Report, width: int) -> Iterator[str]:
    """A block for each set: its letter, roles and GPUs, then its numbers."""
    for letter, found in zip(LETTERS, report.sets, strict=False):
        gpus = printable(shown_gpus(report.topology, found.placement.gpus))
        yield folded([f"{letter}  {joined_roles(found.roles)}: ", gpus], width, indent=INDENT)
        numbers = [f"{number}  " for number in _numbers(found)]
        yield folded([INDENT, *numbers], width, indent=INDENT)


def _numbers(found: ReportedSet) -> Iterator[str]:
    placement = found.placement
    for name, rate in (("slowest", placement.bottleneck), ("mean", placement.mean)):
        yield f"{name} {gigabytes(rate)}{'' if isinstance(rate, Absent) else ' GB/s'}"
    yield f"worst link {shown(placement.worst_class)}"
    yield f"NUMA nodes {shown(placement.numa_spread)}"
    for name, (_, value) in zip(("plugin", "HAMi"), found.scores, strict=True):
        yield f"{name} score {shown(value)}"


def stacked_policy(report: Report, policy: TopologyPolicy, width: int) -> Iterator[str]:
    """A line for each rule, for the total and for each constraint, with a part for every set."""
    scored = [found.policy for found in report.sets if found.policy]
    yield folded([printable(f"policy {policy.name}")], width, indent=INDENT)
    for place, rule in enumerate(policy.rules):
        parts = [_part(found.contributions[place]) for found in scored]
        yield _line(f"{rule.type}, weight {rule.weight:g}", parts, width)
    totals = [f"{found.total:.1f}" for found in scored]
    yield _line(f"total of {policy.most:g}", totals, width)
    for place, constraint in enumerate(policy.constraints):
        checks = [_check(found.checks[place]) for found in scored]
        yield _line(str(constraint), checks, width)


def _line(name: str, parts: Sequence[str], width: int) -> str:
    told = [f"{letter} {part}" for letter, part in zip(LETTERS, parts, strict=False)]
    pieces = [f"{name}: ", *(f"{part}; " for part in told[:-1]), *told[-1:]]
    return folded([printable(piece) for piece in pieces], width, indent=INDENT)


def _part(part: Contribution) -> str:
    return f"{part.points:.1f} ({points(part.value)})"


def _check(check: Check) -> str:
    return f"{'met' if check.met else 'broken'} ({fact(check)})"


def joined_roles(roles: Sequence[str]) -> str:
    """`best of all+free, actual`: all that one set is, in one row."""
    pools: dict[str, list[str]] = {}
    for role in roles:
        what, of, pool = role.partition(" of ")
        pools.setdefault(what + of, []).append(pool)
    return ", ".join(what + "+".join(among) for what, among in pools.items())


def fact(check: Check) -> str:
    """What was found of a constraint's key."""
    return shown(check.found) if isinstance(check.found, Absent) else ", ".join(check.found)


def points(value: float | Absent) -> str:
    """What a rule's weight is multiplied by."""
    return shown(value) if isinstance(value, Absent) else f"x {value:.2f}"


def gigabytes(bytes_per_second: float | Absent) -> str:
    """GB/s, of 10**9 bytes, with one decimal; a sign where it is absent."""
    if isinstance(bytes_per_second, Absent):
        return shown(bytes_per_second)
    return f"{bytes_per_second / 1e9:.1f}"


def shown(value: object) -> str:
    """A value, `?` where it is not known, `-` where there is no such thing."""
    if isinstance(value, Absent):
        return "-" if value is UNSUPPORTED else UNKNOWN_SIGN
    return str(value)
