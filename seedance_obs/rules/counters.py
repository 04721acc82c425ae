"""Counters and gauges, each under the functions that are for it."""

from collections.abc import Iterator

from seedance_obs.rules.expression import (
    COMPARISONS,
    Aggregation,
    Binary,
    Call,
    Node,
    Selector,
    Subquery,
    branches,
    walk,
)
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.labels_left import is_scalar
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries

OF_COUNTERS = frozenset({"increase", "irate", "rate", "resets"})
OF_GAUGES = frozenset({"delta", "deriv", "holt_winters", "idelta", "predict_linear"})
_NUMBERS_OF_SERIES = frozenset({"count", "group"})
_LAST = frozenset({"last_over_time", "max_over_time"})


def wrong_functions(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """rate of a gauge, deriv of a counter, and rate of what is computed, which hides restarts."""
    for call in walk(rule.tree):
        if isinstance(call, Call) and call.function in OF_COUNTERS:
            yield from _of_counters(rule, call, known)
        if isinstance(call, Call) and call.function in OF_GAUGES:
            for name in sorted(_values(call.arguments[0])):
                if known.type_of(name) == "counter":
                    yield rule.finding(
                        f"{call.function}() of {name}, which is a counter and restarts at zero: "
                        "use rate() or increase()",
                        word=name,
                    )


def lasting_alerts(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Alerts on how far a counter has come, which end with a restart and not before."""
    for name in sorted(_passed(rule.tree, known)) if rule.alert else ():
        yield rule.finding(
            f"{name} is a counter and never falls below the number again: compare its increase()",
            word=name,
        )


def _of_counters(rule: Rule, call: Call, known: KnownSeries) -> Iterator[Finding]:
    name, over = call.function, call.arguments[0]
    series = over.inner if isinstance(over, Subquery) else over
    if isinstance(series, Aggregation):
        yield rule.finding(
            f"{name}() of {series.operator}() takes the restart of one counter for a restart of "
            f"all: {series.operator} of {name}()",
            word=name,
        )
    elif not isinstance(series, Selector):
        yield rule.finding(
            f"{name}() of what is computed: only a counter itself tells its restarts", word=name
        )
    elif known.type_of(series.name) == "gauge":
        yield rule.finding(f"{name}() of {series.name}, which is a gauge", word=series.name)
    elif series.name in known.recorded and not known.type_of(series.name):
        yield rule.finding(
            f"{name}() of {series.name}, which a rule computes: the restarts in it cannot be told "
            "any more; record the rate",
            word=series.name,
        )


def _values(node: Node) -> set[str]:
    """The names whose values go into a result as they are, and not their growth or number."""
    if isinstance(node, Selector):
        return {node.name}
    if isinstance(node, Call) and node.function in OF_COUNTERS:
        return set()
    if isinstance(node, Aggregation) and node.operator in _NUMBERS_OF_SERIES:
        return set()
    return {name for part in node.parts for name in _values(part)}


def _passed(node: Node, known: KnownSeries) -> set[str]:
    """The counters that a branch compares with a number, where nothing else is asked for."""
    names: set[str] = set()
    for branch in branches(node):
        if isinstance(branch, Aggregation):
            names |= _passed(branch.inner, known)
        elif isinstance(branch, Binary) and branch.operator in COMPARISONS:
            for side, other in (branch.parts, branch.parts[::-1]):
                if is_scalar(other) and known.type_of(name := _summed(side)) == "counter":
                    names.add(name)
    return names


def _summed(node: Node) -> str:
    while isinstance(node, Aggregation) or (isinstance(node, Call) and node.function in _LAST):
        if isinstance(node, Aggregation) and node.operator in _NUMBERS_OF_SERIES:
            return ""
        node = node.inner if isinstance(node, Aggregation) else node.arguments[0]
    return node.name if isinstance(node, Selector) else ""
