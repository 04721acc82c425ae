"""Counters and gauges, each under the functions that are for it, births of counters included."""

from collections.abc import Iterator

from seedance_obs.rules.expression import Aggregation, Binary, Call, Literal, Node, Selector, walk
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import BORN_BY_AN_EVENT, KnownSeries

OF_COUNTERS = frozenset({"increase", "irate", "rate", "resets"})
OF_GAUGES = frozenset({"delta", "deriv", "holt_winters", "idelta", "predict_linear"})
_COMPARISONS = frozenset({"==", "!=", ">", ">=", "<", "<="})


def wrong_functions(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """rate of a gauge, deriv of a counter, and rate of a sum, which hides restarts in it."""
    for call in walk(rule.tree):
        if not isinstance(call, Call) or call.function not in OF_COUNTERS | OF_GAUGES:
            continue
        name = call.function
        for each in _over(call):
            if isinstance(each, Aggregation) and name in OF_COUNTERS:
                yield rule.finding(
                    f"{name}() of {each.operator}() takes the restart of one counter for a "
                    f"restart of all: {each.operator} of {name}()",
                    word=name,
                )
            if not isinstance(each, Selector):
                continue
            kind = known.type_of(each.name)
            if name in OF_COUNTERS and each.name in known.recorded and not kind:
                yield rule.finding(
                    f"{name}() of {each.name}, which a rule computes: the restarts in it cannot "
                    "be told any more; record the rate",
                    word=each.name,
                )
            if name in OF_COUNTERS and kind == "gauge":
                yield rule.finding(f"{name}() of {each.name}, which is a gauge", word=each.name)
            if name in OF_GAUGES and kind == "counter":
                yield rule.finding(
                    f"{name}() of {each.name}, which is a counter and restarts at zero: use "
                    "rate() or increase()",
                    word=each.name,
                )


def unseen_births(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """increase() of a counter that is born by its first event, which it does not see.

    So does rate() where it is compared to zero; where it is compared to a number of events in a
    time, the first of them hardly matters.
    """
    calls = [*_calls(rule.tree, frozenset({"increase"}))]
    for node in walk(rule.tree):
        if isinstance(node, Binary) and node.operator in _COMPARISONS and Literal(0) in node.parts:
            calls += _calls(node, frozenset({"irate", "rate"}))
    seen = _births(rule.tree)
    for call in calls:
        for each in _over(call):
            if not isinstance(each, Selector) or _plain(each) in seen:
                continue
            if known.source_of(each.name) in BORN_BY_AN_EVENT:
                yield rule.finding(
                    f"{each.name} is born by its first event, which {call.function}() does not "
                    "see: add `or (x unless x offset RANGE) > 0` with the same labels",
                    word=each.name,
                )


def _calls(tree: Node, functions: frozenset[str]) -> Iterator[Call]:
    for node in walk(tree):
        if isinstance(node, Call) and node.function in functions:
            yield node


def _births(tree: Node) -> set[Selector]:
    """Of what the tree has `x unless x offset RANGE` or `x - (x offset RANGE or 0 * x)`.

    Between sums a birth does not show, where the sum had another series before.
    """
    births: set[Selector] = set()
    for node in walk(tree):
        if isinstance(node, Binary) and node.operator in ("unless", "-"):
            new = {_plain(each) for each in _not_summed(node.left) if not each.offset}
            old = {_plain(each) for each in _not_summed(node.right) if each.offset > 0}
            if node.operator == "-":
                old &= {_plain(each) for each in _not_summed(node.right) if not each.offset}
            births |= new & old
    return births


def _plain(selector: Selector) -> Selector:
    return Selector(selector.name, selector.matchers)


def _not_summed(node: Node) -> Iterator[Selector]:
    if isinstance(node, Selector):
        yield node
    elif not isinstance(node, Aggregation):
        for part in node.parts:
            yield from _not_summed(part)


def _over(call: Call) -> Iterator[Node]:
    """What a function over time is over; of a subquery, the expression that it repeats."""
    for argument in call.arguments:
        yield from argument.parts or (argument,)
