"""Counters that are born by their first event: what grows does not show it, so a rule asks apart.

Two forms are right beside increase(x[R]) as a branch of the same `or`: `x unless x offset R`, and
`x - (x offset R or 0 * x)`; both may be compared by `> 0`. x may be a max by labels, each time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from seedance_obs.rules.expression import (
    COMPARISONS,
    Aggregation,
    Binary,
    Call,
    Literal,
    Node,
    Selector,
    Subquery,
    branches,
    selectors,
)
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.labels_left import is_number
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import BORN_BY_AN_EVENT, KnownSeries

_GROWTH = frozenset({"changes", "increase"})
_RATES = frozenset({"irate", "rate"})
_LAST = frozenset({"last_over_time", "max_over_time", "present_over_time"})


@dataclass(frozen=True, slots=True)
class _Grown:
    """Series, whatever the time they are taken at, and over how many seconds they grew."""

    name: str
    matchers: frozenset[tuple[str, str, str]]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Series:
    """Series as they were so many seconds ago, and by which labels a max is taken, if one is."""

    name: str
    matchers: frozenset[tuple[str, str, str]]
    seconds_ago: float
    by: tuple[frozenset[str], bool] | None = None

    def is_like(self, other: "_Series | None") -> bool:
        """Whether the other is the same at whatever time."""
        return other is not None and (self.name, self.matchers, self.by) == (
            other.name,
            other.matchers,
            other.by,
        )


def unseen_births(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Growth of a counter that is born by its first event, without a branch for its birth.

    A rate counts where it is compared with a number; where it is compared with a threshold, of
    events in a time, the first of them hardly matters.
    """
    for name in sorted({each.name for each in _unseen(rule.tree, frozenset(), compared=False)}):
        if known.source_of(name) in BORN_BY_AN_EVENT:
            yield rule.finding(
                f"{name} is born by its first event, which is not seen here: beside the increase "
                "over RANGE, add `or (x unless x offset RANGE) > 0` with the same labels",
                word=name,
            )


def _unseen(node: Node, births: frozenset[_Grown], *, compared: bool) -> Iterator[_Grown]:
    if isinstance(node, Binary):
        births |= {birth for branch in branches(node) for birth in _births(branch)}
        compared |= node.operator in COMPARISONS and any(map(is_number, node.parts))
    for grown in _grown(node, compared=compared):
        if grown not in births:
            yield grown
    for part in node.parts:
        yield from _unseen(part, births, compared=compared)


def _grown(node: Node, *, compared: bool) -> Iterator[_Grown]:
    if isinstance(node, Call) and node.function in (_GROWTH | _RATES if compared else _GROWTH):
        (over,) = node.arguments
        for each in selectors(over):
            seconds = over.range if isinstance(over, Subquery) else each.range
            yield _Grown(each.name, each.matchers, seconds or 0)
    if isinstance(node, Binary) and node.operator in COMPARISONS | {"-"}:
        now = _series(node.left)
        if now is not None and not now.seconds_ago and not _has_zero(node.right, now):
            yield from _before(node.right, now)


def _births(branch: Node) -> Iterator[_Grown]:
    if isinstance(branch, Binary) and branch.operator == ">" and branch.right == Literal(0):
        branch = branch.left
    if not isinstance(branch, Binary) or branch.on is not None or branch.ignoring:
        return
    now = _series(branch.left)
    if now is None or now.seconds_ago:
        return
    others = [each for each in branches(branch.right) if not now.is_like(_series(each))]
    if (branch.operator == "unless" and not others) or (
        branch.operator == "-" and _has_zero(branch.right, now)
    ):
        yield from _before(branch.right, now)


def _before(node: Node, now: _Series) -> Iterator[_Grown]:
    for branch in branches(node):
        series = _series(branch)
        if series is not None and now.is_like(series) and series.seconds_ago > 0:
            yield _Grown(now.name, now.matchers, series.seconds_ago)


def _has_zero(node: Node, now: _Series) -> bool:
    """Whether `0 * x` is what is left where nothing was before."""
    return any(
        isinstance(branch, Binary)
        and branch.operator == "*"
        and branch.left == Literal(0)
        and now == _series(branch.right)
        for branch in branches(node)
    )


def _series(node: Node) -> _Series | None:
    if isinstance(node, Selector):
        return _Series(node.name, node.matchers, node.offset)
    if isinstance(node, Call) and node.function in _LAST:
        return _series(node.arguments[0])
    if isinstance(node, Aggregation) and node.operator == "max":
        inner = _series(node.inner)
        by = (node.labels, node.without)
        return inner and _Series(inner.name, inner.matchers, inner.seconds_ago, by)
    return None
