"""Divisors: what can be 0 makes a result infinite or no number, and an alert of it."""

from collections.abc import Iterator

from seedance_obs.rules.expression import (
    Aggregation,
    Binary,
    Call,
    Literal,
    Node,
    Selector,
    Subquery,
    walk,
)
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries
from seedance_obs.rules.thresholds import THRESHOLD

_NEVER_ZERO = frozenset({"count", "group"})  # without series they have no value at all
_ABOVE_ZERO = frozenset({"count_over_time", "exp", "present_over_time", "time"})
_KEEPING_SIGN = frozenset({"abs", "ceil", "label_join", "label_replace", "sqrt"})
_KEEPING = frozenset({"avg", "bottomk", "max", "min", "quantile", "sum", "topk"})


def unguarded_division(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """A division by what can be 0."""
    for node in walk(rule.tree):
        if (
            isinstance(node, Binary)
            and node.operator in ("/", "%")
            and not isinstance(node.right, Literal)
            and not _is_never_zero(node.right, known)
        ):
            yield rule.finding("it divides by what can be 0: divide by (... > 0)", word="/")


def _is_never_zero(node: Node, known: KnownSeries) -> bool:
    return (
        isinstance(node, Binary)
        and node.operator == "!="
        and not node.as_bool
        and node.right == Literal(0)
    ) or _is_positive(node, known, depth=0)


def _is_positive(node: Node, known: KnownSeries, *, depth: int) -> bool:
    if isinstance(node, Literal):
        return isinstance(node.value, float) and node.value > 0
    if isinstance(node, Selector):
        rules = known.recorded.get(node.name, ())
        trees = (each.tree for each in rules)
        return (
            depth < 10
            and bool(rules)
            and all(_is_positive(tree, known, depth=depth + 1) for tree in trees)
        )
    if isinstance(node, Aggregation):
        return node.operator in _NEVER_ZERO or (
            node.operator in _KEEPING and _is_positive(node.inner, known, depth=depth)
        )
    if isinstance(node, Binary):
        return _is_positive_of_two(node, known, depth)
    if isinstance(node, Call):
        return _is_positive_call(node, known, depth)
    return isinstance(node, Subquery) and _is_positive(node.inner, known, depth=depth)


def _is_positive_of_two(node: Binary, known: KnownSeries, depth: int) -> bool:
    left, right = (_is_positive(each, known, depth=depth) for each in node.parts)
    if node.operator in (">", ">=") and not node.as_bool:
        return (node.operator == ">" and node.right == Literal(0)) or right or left
    if node.operator in ("<", "<=") and not node.as_bool and isinstance(node.left, Literal):
        return (node.operator == "<" and node.left == Literal(0)) or left or right
    if node.operator in ("and", "unless", "^"):
        return left
    return node.operator in ("*", "/", "or", "+") and left and right


def _is_positive_call(node: Call, known: KnownSeries, depth: int) -> bool:
    if node.function in _ABOVE_ZERO:
        return True
    if node.function in ("clamp", "clamp_min"):
        return _is_positive(node.arguments[1], known, depth=depth)
    if node.function in _KEEPING_SIGN:
        return _is_positive(node.arguments[0], known, depth=depth)
    if node.function == "scalar":
        inner = node.arguments[0]
        if isinstance(inner, Selector) and inner.name == THRESHOLD:
            return True
    if node.function in ("vector", "scalar") or node.function.endswith("_over_time"):
        return _is_positive(node.arguments[-1], known, depth=depth)
    return False
