"""What keeps a rule silent where all is well, and where there is nothing: conditions, gates."""

from collections.abc import Iterator

from seedance_obs.rules.expression import (
    COMPARISONS,
    Aggregation,
    Binary,
    Call,
    Node,
    Selector,
    Subquery,
    selectors,
)
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import TARGET_LABELS, KnownSeries

_ABSENCE = frozenset({"absent", "absent_over_time"})
_WITHOUT_SERIES = frozenset({*_ABSENCE, "vector"})  # which have a value where nothing is


def ungated_absence(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """absent() or vector() that holds wherever there are no GPUs: nothing else has to be there."""
    if not any(selectors(rule.tree)):
        return
    for call in _ungated(rule.tree):
        yield rule.finding(
            f"{call.function}() holds on every cluster that has none of it: join it by `and` to "
            "what says that there should be some",
            word=call.function,
        )


def always_firing(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Alerts whose query leaves nothing out where all is well, as `bool` does not."""
    if rule.alert and not _has_condition(rule.tree, known, depth=0):
        yield rule.finding(
            "it fires wherever its series are: each branch needs a comparison without `bool`, or "
            "selects an *_info by what it says",
            part="expr",
        )


def _ungated(node: Node) -> Iterator[Call]:
    if isinstance(node, Call) and node.function in _WITHOUT_SERIES:
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
    if isinstance(node, Call) and node.function in {*_WITHOUT_SERIES, "scalar"}:
        return False
    if isinstance(node, Binary) and node.operator == "or":
        return _selects(node.left) and _selects(node.right)
    return isinstance(node, Selector) or any(map(_selects, node.parts))


def _has_condition(node: Node, known: KnownSeries, *, depth: int) -> bool:
    if isinstance(node, Selector):
        return _is_conditional(node, known, depth)
    if isinstance(node, Call):
        if node.function in {"scalar", "vector"}:
            return False
        if node.function in _ABSENCE:
            return True
    if isinstance(node, Binary):
        if node.operator == "or":
            return all(_has_condition(each, known, depth=depth) for each in node.parts)
        if node.operator == "unless" or (node.operator in COMPARISONS and not node.as_bool):
            return any(selectors(node))
    parts = (node.inner,) if isinstance(node, Aggregation | Subquery) else node.parts
    return any(_has_condition(each, known, depth=depth) for each in parts)


def _is_conditional(node: Selector, known: KnownSeries, depth: int) -> bool:
    """Whether it is recorded under a condition, or is a fact that comes and goes with its label."""
    rules = known.recorded.get(node.name, ())
    if rules:
        return depth < 10 and all(
            _has_condition(rule.tree, known, depth=depth + 1) for rule in rules
        )
    said = {label for label, _, _ in node.matchers}
    return node.name.endswith("_info") and bool(said - TARGET_LABELS)
