"""PromQL as the checks see it: the only module that knows the classes of promql-parser."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import promql_parser

# The parser has no limit of its own: it ends the whole process on some texts of twice this length.
LONGEST_QUERY_CHARACTERS = 8000
COMPARISONS = frozenset({"==", "!=", ">", ">=", "<", "<="})


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression; parentheses are gone, since the tree says what they said."""

    @property
    def parts(self) -> "tuple[Node, ...]":
        """What it is made of, in the order of the text."""
        return ()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number or a text."""

    value: float | str


@dataclass(frozen=True, slots=True)
class Selector(Node):
    """Series by name and labels, at one moment or over a range; durations in seconds."""

    name: str
    matchers: frozenset[tuple[str, str, str]]  # label, operator, value
    offset: float = 0
    range: float | None = None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function and its arguments; the minus sign is one."""

    function: str
    arguments: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """Its arguments."""
        return self.arguments


@dataclass(frozen=True, slots=True)
class Aggregation(Node):
    """sum, max, topk ... over the series of an expression, by labels or without them."""

    operator: str
    inner: Node
    parameter: Node | None
    labels: frozenset[str]
    without: bool

    @property
    def parts(self) -> tuple[Node, ...]:
        """Its parameter, if it has one, and what it is over."""
        return (self.inner,) if self.parameter is None else (self.parameter, self.inner)


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Two expressions and the operator between them.

    `on` holds the labels that are matched on, or None where all are, but for `ignoring`.
    `many` is the side whose labels stay: left, right, or empty where series match one to one.
    """

    operator: str
    left: Node
    right: Node
    on: frozenset[str] | None = None
    ignoring: frozenset[str] = field(default_factory=frozenset)
    many: str = ""
    taken: frozenset[str] = field(default_factory=frozenset)  # labels that group_left adds
    as_bool: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        """Its two sides."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Subquery(Node):
    """An expression evaluated again and again over a range in seconds."""

    inner: Node
    range: float

    @property
    def parts(self) -> tuple[Node, ...]:
        """What is evaluated."""
        return (self.inner,)


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        ValueError: it is not PromQL, or too long or too deep; the message says what is wrong.
    """
    if len(text) > LONGEST_QUERY_CHARACTERS:
        raise ValueError(f"it is longer than {LONGEST_QUERY_CHARACTERS} characters: record parts")
    try:
        return _node(promql_parser.parse(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply: record parts of it") from error


def walk(node: Node) -> Iterator[Node]:
    """The node and everything in it, from the outside in."""
    yield node
    for part in node.parts:
        yield from walk(part)


def selectors(node: Node) -> Iterator[Selector]:
    """Everything in it that selects series."""
    return (part for part in walk(node) if isinstance(part, Selector))


def branches(node: Node) -> Iterator[Node]:
    """What stands between the `or` at the top of it; itself where there is none."""
    if isinstance(node, Binary) and node.operator == "or":
        yield from branches(node.left)
        yield from branches(node.right)
    else:
        yield node


# Members of its enumerations can be compared, not hashed.
_OPERATORS = (
    (promql_parser.MatchOp.Equal, "="),
    (promql_parser.MatchOp.NotEqual, "!="),
    (promql_parser.MatchOp.Re, "=~"),
    (promql_parser.MatchOp.NotRe, "!~"),
)
_SIDES = (
    (promql_parser.VectorMatchCardinality.ManyToOne, "left"),
    (promql_parser.VectorMatchCardinality.OneToMany, "right"),
)


def _node(parsed: Any) -> Node:
    if isinstance(parsed, promql_parser.ParenExpr):
        return _node(parsed.expr)
    if isinstance(parsed, promql_parser.NumberLiteral | promql_parser.StringLiteral):
        return Literal(parsed.val)
    if isinstance(parsed, promql_parser.VectorSelector):
        return _selector(parsed)
    if isinstance(parsed, promql_parser.MatrixSelector):
        return _selector(parsed.vector_selector, range_seconds=parsed.range.total_seconds())
    if isinstance(parsed, promql_parser.Call):
        return Call(parsed.func.name, tuple(_node(each) for each in parsed.args))
    if isinstance(parsed, promql_parser.UnaryExpr):
        return Call("-", (_node(parsed.expr),))
    if isinstance(parsed, promql_parser.SubqueryExpr):
        return Subquery(_node(parsed.expr), parsed.range.total_seconds() if parsed.range else 0)
    if isinstance(parsed, promql_parser.AggregateExpr):
        return _aggregation(parsed)
    if isinstance(parsed, promql_parser.BinaryExpr):
        return _binary(parsed)
    raise ValueError(f"nothing is known of {type(parsed).__name__}")


def _selector(parsed: Any, range_seconds: float | None = None) -> Selector:
    matchers = {
        (each.name, _written(_OPERATORS, each.op), each.value) for each in parsed.matchers.matchers
    }
    named = {value for name, how, value in matchers if (name, how) == ("__name__", "=")}
    return Selector(
        name=parsed.name or "".join(named),
        matchers=frozenset(each for each in matchers if each[0] != "__name__"),
        offset=parsed.offset.total_seconds() if parsed.offset else 0,
        range=range_seconds,
    )


def _aggregation(parsed: Any) -> Aggregation:
    modifier = parsed.modifier
    return Aggregation(
        operator=str(parsed.op),
        inner=_node(parsed.expr),
        parameter=None if parsed.param is None else _node(parsed.param),
        labels=frozenset(modifier.labels if modifier else ()),
        without=bool(modifier) and modifier.type == promql_parser.AggModifierType.Without,
    )


def _binary(parsed: Any) -> Binary:
    modifier = parsed.modifier
    matching = modifier.matching if modifier else None
    included = matching is not None and matching.type == promql_parser.LabelModifierType.Include
    labels = frozenset(() if matching is None else matching.labels)
    return Binary(
        operator=str(parsed.op),
        left=_node(parsed.lhs),
        right=_node(parsed.rhs),
        on=labels if included else None,
        ignoring=frozenset() if included else labels,
        many=_written(_SIDES, modifier.card) if modifier else "",
        taken=frozenset((modifier.group_labels if modifier else None) or ()),
        as_bool=bool(modifier and modifier.return_bool),
    )


def _written(pairs: tuple[tuple[Any, str], ...], member: Any) -> str:
    return next((text for each, text in pairs if each == member), "")
