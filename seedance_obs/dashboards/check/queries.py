"""Queries as Prometheus would see them: with something in the place of Grafana's variables."""

import re
from collections.abc import Callable, Iterator
from functools import cache

from seedance_obs.rules.expression import Node, parse

# Odd numbers, so that a range in a tree can be told to have been a variable.
RATE_INTERVAL_S, OTHER_INTERVAL_S = 4567, 4561
MOST, DEEPEST = 1000, 150  # operators; and nodes in each other: stacks end at some thousands
TOO_DEEP = f"it is nested more than {DEEPEST} times: record parts of it"
LONGEST = 100  # characters of a query in a finding
GLOBALS = {
    "__rate_interval": f"{RATE_INTERVAL_S}s",
    "__interval": f"{OTHER_INTERVAL_S}s",
    "__auto": f"{OTHER_INTERVAL_S}s",
    "__range": f"{OTHER_INTERVAL_S}s",
    "__rate_interval_ms": "1",
    "__interval_ms": "1",
    "__range_s": "1",
    "__range_ms": "1",
    "__from": "1",
    "__to": "1",
}
REFERENCE = re.compile(
    r"\$(?P<plain>[a-zA-Z_]\w*)|\$\{(?P<braced>[a-zA-Z_][\w.]*)(?::[^}]*)?\}"
    r"|\[\[(?P<old>[a-zA-Z_]\w*)(?::[^\]]*)?\]\]"
)
STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`", re.DOTALL)
SELECTED = re.compile(r"\{[^{}]*\}")
DEEPENING = re.compile(r"[-+*/%^(\[]|[<>=!]=?|\b(?:and|atan2|or|unless)\b", re.IGNORECASE)
DURATION_PLACE = re.compile(r"(?:\[|:|\boffset)\s*-?\s*$")
# What a variable in the open may stand for; the first that makes a query of it is taken.
READINGS: tuple[Callable[[str], str], ...] = (
    lambda name: name,
    lambda name: f'{name}="x"',
    lambda _: "1",
    lambda _: "5m",
    lambda _: "",
)


@cache
def tree(expr: str) -> Node:
    """The tree of a query with variables; `$name` stays where it stands in a text.

    Raises:
        ValueError: whatever the variables stand for, it is not PromQL.
    """
    bare = SELECTED.sub("", STRING.sub("", expr))
    if len(DEEPENING.findall(bare)) > MOST:
        raise ValueError(f"it has more than {MOST} operators and parentheses: record parts of it")
    first: ValueError | None = None
    for reading in READINGS:
        try:
            return _not_too_deep(parse(substituted(expr, reading)))
        except (ValueError, OverflowError) as error:
            first = first or ValueError(str(error))
        except RecursionError:
            raise ValueError(TOO_DEEP) from None
    raise first or ValueError("it is empty")


def tree_or_none(expr: str) -> Node | None:
    """The tree of a query; None where it is not PromQL, which is a rule of its own."""
    try:
        return tree(expr)
    except ValueError:
        return None


def references(expr: str) -> set[str]:
    """The variables that a query uses, without Grafana's own."""
    names = {_name(each) for each in REFERENCE.finditer(expr)}
    return {name for name in names if not name.startswith("__")}


def substituted(expr: str, reading: Callable[[str], str]) -> str:
    """A query without variables outside of texts, and with `$name` for each in them."""
    done = ""
    for part, is_text in _parts(expr):
        if is_text:
            done += REFERENCE.sub(lambda each: f"${_name(each)}", part)
            continue
        end = 0
        for each in REFERENCE.finditer(part):
            done += part[end : each.start()]
            done += _open(_name(each), done, reading)
            end = each.end()
        done += part[end:]
    return done


def shortened(expr: str) -> str:
    """A query in a sentence: long ones without their middle."""
    return repr(expr if len(expr) <= LONGEST else f"{expr[: LONGEST // 2]}…{expr[-20:]}")


def _not_too_deep(node: Node) -> Node:
    level: tuple[Node, ...] = (node,)
    for _ in range(DEEPEST):
        level = tuple(part for each in level for part in each.parts)
    if level:
        raise ValueError(TOO_DEEP)
    return node


def _open(name: str, before: str, reading: Callable[[str], str]) -> str:
    if name in GLOBALS:
        return GLOBALS[name]
    if DURATION_PLACE.search(before):
        return f"{OTHER_INTERVAL_S}s"
    return reading(name)


def _parts(expr: str) -> Iterator[tuple[str, bool]]:
    end = 0
    for each in STRING.finditer(expr):
        yield expr[end : each.start()], False
        yield each[0], True
        end = each.end()
    yield expr[end:], False


def _name(reference: re.Match[str]) -> str:
    return reference["plain"] or reference["braced"] or reference["old"] or ""
