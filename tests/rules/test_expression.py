"""The tree of a query: nothing of it is lost, and parentheses are."""

import pytest

from seedance_obs.rules.expression import (
    Aggregation,
    Binary,
    Call,
    Literal,
    Selector,
    Subquery,
    parse,
    selectors,
)
from seedance_obs.rules.labels_left import is_scalar, labels_left
from seedance_obs.rules.series import KnownSeries, Series


def plain(name: str, **more: float) -> Selector:
    return Selector(name, frozenset(), **more)


def test_names_are_found_wherever_they_stand_in_a_query() -> None:
    inner = "label_replace(rate(b[5m]), 'x', '', '', '') or -c or max_over_time((f)[1h:1m])"
    expr = f"topk(scalar(e), a * on (x) group_left () ({inner})) > d"
    assert {each.name for each in selectors(parse(expr))} == {"a", "b", "c", "d", "e", "f"}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("((a))", plain("a")),
        ("a offset 5m", plain("a", offset=300.0)),
        ("rate(a[5m])", Call("rate", (plain("a", range=300.0),))),
        ("(a)[5m:1m]", Subquery(plain("a"), 300.0)),
        ('a{x!="1",y=~"2"}', Selector("a", frozenset({("x", "!=", "1"), ("y", "=~", "2")}))),
        ('{__name__="a",x!~"1"}', Selector("a", frozenset({("x", "!~", "1")}))),
        ("a > bool 0", Binary(">", plain("a"), Literal(0), as_bool=True)),
        ("a and on (x) b", Binary("and", plain("a"), plain("b"), on=frozenset("x"))),
        ("a / ignoring (x) b", Binary("/", plain("a"), plain("b"), ignoring=frozenset("x"))),
        (
            "a * on () group_right (y) b",
            Binary("*", plain("a"), plain("b"), frozenset(), many="right", taken=frozenset("y")),
        ),
        (
            "sum without (x) (a)",
            Aggregation("sum", plain("a"), None, labels=frozenset("x"), without=True),
        ),
        (
            "topk by (x) (3, a)",
            Aggregation("topk", plain("a"), Literal(3), labels=frozenset("x"), without=False),
        ),
    ],
)
def test_a_query_is_this_tree(text: str, tree: object) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize("text", ["", "sum(", "rate(a)", "a ~ b"])
def test_what_is_no_query_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


XY = KnownSeries(
    {
        "a": Series("gauge", frozenset("xy")),
        "b": Series("gauge", frozenset("xz")),
        "foreign": Series("gauge", None),
    }
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a", "xy"),
        ("1 - a", "xy"),
        ("-a > scalar(b)", "xy"),
        ("2 * a > time() - 5", "xy"),
        ("sum(a)", ""),
        ("sum by (x, q) (a)", "x"),
        ("sum without (x) (a)", "y"),
        ("topk(2, a)", "xy"),
        ("sum by (x) (foreign)", "x"),
        ("foreign", None),
        ("foreign / a", None),
        ("nobody", None),
        ("a and on () b", "xy"),
        ("a unless on (x) b", "xy"),
        ("a or b", "xyz"),
        ("a or foreign", None),
        ("a * on (x) b", "x"),
        ("a / ignoring (y) b", "x"),
        ("a * on (x) group_left (z, q) b", "xyz"),
        ("a * on (x) group_right (y) b", "xyz"),
        ("a * on (x) group_left (z) foreign", "xyz"),
        ("label_replace(a, 'n', '$1', 'x', '(.*)')", "nxy"),
        ("count_values('v', a)", "v"),
        ("quantile_over_time(0.5, a[5m])", "xy"),
        ("max_over_time((a > 0)[5m:1m])", "xy"),
        ("absent(a{p='1',q=~'2'})", "p"),
        ("vector(1)", ""),
        ("time()", ""),
    ],
)
def test_the_labels_that_a_query_leaves(text: str, left: str | None) -> None:
    assert labels_left(parse(text), XY) == (None if left is None else frozenset(left))


def test_one_number_is_a_scalar() -> None:
    assert [is_scalar(parse(text)) for text in ("-1 + time()", "scalar(a)", "vector(1)", "a")] == [
        True,
        True,
        False,
        False,
    ]
