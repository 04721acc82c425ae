"""Which labels the result of an expression has: what an annotation can name."""

from functools import reduce

from seedance_obs.rules.expression import (
    Aggregation,
    Binary,
    Call,
    Literal,
    Node,
    Selector,
    Subquery,
    selectors,
)
from seedance_obs.rules.series import KnownSeries

Labels = frozenset[str] | None  # None: not known

_NONE: frozenset[str] = frozenset()
_SCALARS = frozenset({"pi", "scalar", "time"})
_KEEPING = frozenset({"bottomk", "limitk", "limit_ratio", "topk"})
_ADDING = frozenset({"label_join", "label_replace"})


def is_scalar(node: Node) -> bool:
    """Whether it is one number, which takes the labels of what it is computed with."""
    if isinstance(node, Call):
        return node.function in _SCALARS or (
            node.function == "-" and all(map(is_scalar, node.arguments))
        )
    if isinstance(node, Binary):
        return is_scalar(node.left) and is_scalar(node.right)
    return isinstance(node, Literal)


def is_number(node: Node) -> bool:
    """Whether it is a number that the rule itself says, and no threshold."""
    return is_scalar(node) and not any(selectors(node))


def labels_left(node: Node, known: KnownSeries, *, depth: int = 0) -> Labels:
    """The labels that its series can have; None where that cannot be told."""
    if isinstance(node, Selector):
        return _of_selector(node, known, depth)
    if isinstance(node, Aggregation):
        return _of_aggregation(node, labels_left(node.inner, known, depth=depth))
    if isinstance(node, Call):
        return _of_call(node, known, depth)
    if isinstance(node, Binary):
        left = labels_left(node.left, known, depth=depth)
        right = labels_left(node.right, known, depth=depth)
        return _of_binary(node, left, right)
    if isinstance(node, Subquery):
        return labels_left(node.inner, known, depth=depth)
    return _NONE


def _of_selector(node: Selector, known: KnownSeries, depth: int) -> Labels:
    if node.name in known.scraped:
        return known.scraped[node.name].labels
    rules = known.recorded.get(node.name, ())
    if not rules or depth > 10:
        return None
    return reduce(
        _either,
        (
            _either(labels_left(rule.tree, known, depth=depth + 1), frozenset(rule.labels))
            for rule in rules
        ),
    )


def _of_aggregation(node: Aggregation, inner: Labels) -> Labels:
    if node.operator in _KEEPING:
        return inner
    if node.without:
        left = None if inner is None else inner - node.labels
    else:
        left = node.labels if inner is None else node.labels & inner
    if node.operator == "count_values" and isinstance(node.parameter, Literal):
        return _either(left, frozenset({str(node.parameter.value)}))
    return left


def _of_call(node: Call, known: KnownSeries, depth: int) -> Labels:
    if node.function in _SCALARS or node.function == "vector":
        return _NONE
    if node.function in ("absent", "absent_over_time"):
        return frozenset(
            name for each in selectors(node) for name, how, _ in each.matchers if how == "="
        )
    vectors = [each for each in node.arguments if not is_scalar(each)]
    labels = labels_left(vectors[0], known, depth=depth) if vectors else _NONE
    if node.function in _ADDING and isinstance(node.arguments[1], Literal):
        return _either(labels, frozenset({str(node.arguments[1].value)}))
    return labels


def _of_binary(node: Binary, left: Labels, right: Labels) -> Labels:
    if is_scalar(node.right) or node.operator in ("and", "unless"):
        return left
    if is_scalar(node.left):
        return right
    if node.operator == "or":
        return _either(left, right)
    if node.many:
        most, least = (left, right) if node.many == "left" else (right, left)
        return _either(most, node.taken if least is None else node.taken & least)
    if node.on is not None:
        return node.on if left is None else node.on & left
    return None if left is None else left - node.ignoring


def _either(left: Labels, right: Labels) -> Labels:
    return None if left is None or right is None else left | right
