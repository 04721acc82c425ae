"""What keeps a rule silent where there is nothing: gates of absent(), guards of divisions."""

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
from seedance_obs.rules.names_used import THRESHOLD
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries

_ABSENCE = frozenset({"absent", "absent_over_time"})
_NEVER_ZERO = frozenset({"count", "group"})  # without series they have no value at all
_KEEPING = frozenset({"avg", "bottomk", "max", "min", "quantile", "sum", "topk"})


def ungated_absence(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """absent() that holds wherever there are no GPUs, since nothing else has to be there."""
    for call in _ungated(rule.tree):
        yield rule.finding(
            f"{call.function}() holds on every cluster that has none of it: join it by `and` to "
            "what says that there should be some",
            word=call.function,
        )


def unguarded_division(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """A division by what can be zero, whose result is then infinite or no number."""
    for node in walk(rule.tree):
        if (
            isinstance(node, Binary)
            and node.operator in ("/", "%")
            and not isinstance(node.right, Literal)
            and not _is_positive(node.right, known, depth=0)
        ):
            yield rule.finding("it divides by what can be 0: divide by (... > 0)", word="/")


def _ungated(node: Node) -> Iterator[Call]:
    if isinstance(node, Call) and node.function in _ABSENCE:
        yield node
        return
    gated = isinstance(node, Binary) and node.operator != "or"
    for part in node.parts:
        if gated and isinstance(node, Binary):
            other = node.right if part is node.left else node.left
            after_unless = node.operator == "unless"
            if after_unless and part is node.right:
                continue
            if not after_unless and _selects(other):
                continue
        yield from _ungated(part)


def _selects(node: Node) -> bool:
    """Whether it has a value only where some series is there."""
    if isinstance(node, Call) and node.function in {*_ABSENCE, "scalar", "vector"}:
        return False
    if isinstance(node, Binary) and node.operator == "or":
        return _selects(node.left) and _selects(node.right)
    return isinstance(node, Selector) or any(map(_selects, node.parts))


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
    if node.operator in (">", "!=") and not node.as_bool:
        return node.right == Literal(0) or (node.operator == ">" and right) or left
    if node.operator == ">=" and not node.as_bool:
        return right or left
    if node.operator in ("and", "unless"):
        return left
    return node.operator in ("*", "/", "or", "+") and left and right


def _is_positive_call(node: Call, known: KnownSeries, depth: int) -> bool:
    if node.function == "clamp_min":
        return _is_positive(node.arguments[1], known, depth=depth)
    if node.function == "scalar":
        inner = node.arguments[0]
        if isinstance(inner, Selector) and inner.name == THRESHOLD:
            return True
    if node.function in ("vector", "scalar") or node.function.endswith("_over_time"):
        return _is_positive(node.arguments[-1], known, depth=depth)
    return False
