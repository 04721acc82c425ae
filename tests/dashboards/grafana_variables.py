"""The variables of a dashboard, filled and put into queries as Grafana does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.dashboards.history import History

FIRST, TWO, ALL = "first", "two", "all"
HOW_MANY = (FIRST, TWO, ALL)
DEFAULT = "default"  # all where a dashboard opens with all, else the first
EVERY_CLUSTER = "$__all"
MATCHES_NOTHING = ""
REFERENCE = re.compile(r"\$(?:(?P<plain>[a-zA-Z_]\w*)|\{(?P<braced>\w+)\})")
REGEX_CHARACTERS = re.compile(r"[$^*{}\[\]+?.()|]")


class Texts(Protocol):
    """What a name that a query refers to is replaced by; a KeyError where it means nothing."""

    def __getitem__(self, name: str, /) -> str: ...


@dataclass(frozen=True)
class Choice:
    """What somebody chose at the top of a dashboard: a cluster, and how many of everything else.

    `chosen` are the values of each variable, `texts` what stands for them in a query.
    """

    cluster: str
    how_many: str
    chosen: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str]

    def with_one(self, name: str, value: str) -> "Choice":
        """The same with one value of a variable, as a repeated panel has it."""
        one = {name: (value,)}, {name: _escaped(value)}
        return Choice(
            self.cluster, self.how_many, {**self.chosen, **one[0]}, {**self.texts, **one[1]}
        )


def queried(dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variables that are filled by a query, in the order in which Grafana fills them."""
    return [each for each in dashboard["templating"]["list"] if each["type"] == "query"]


def filled(
    dashboard: Mapping[str, Any], history: History, *, cluster: str, how_many: str
) -> Choice:
    """All variables, each from what is there for the values of those before it."""
    choice = Choice(cluster, how_many, {}, {})
    for variable in queried(dashboard):
        options = values_of(variable, history, choice)
        chosen, text = _chosen(variable, options, choice)
        name = variable["name"]
        choice = Choice(
            cluster, how_many, {**choice.chosen, name: chosen}, {**choice.texts, name: text}
        )
    return choice


def values_of(variable: Mapping[str, Any], history: History, choice: Choice) -> list[str]:
    """The values of a `label_values` query, in their natural order."""
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
    assert found, variable["query"]["query"]
    selector = interpolated(found[1], choice.texts)
    return sorted(history.label_values(selector, found[2]), key=_natural)


def interpolated(text: str, texts: Texts) -> str:
    """A query with a text in the place of every variable; `$1` is a group, and stays."""

    def text_of(reference: re.Match[str]) -> str:
        try:
            return texts[reference["plain"] or reference["braced"]]
        except KeyError:
            raise AssertionError(f"no such variable: {reference[0]}, in {text}") from None

    return REFERENCE.sub(text_of, text)


def _chosen(
    variable: Mapping[str, Any], options: list[str], choice: Choice
) -> tuple[tuple[str, ...], str]:
    """The values, and their text; nothing there is no value, and all may have a text of its own."""
    name, includes_all = variable["name"], variable.get("includeAll", False)
    if name == "cluster" and choice.cluster != EVERY_CLUSTER:
        assert choice.cluster in options, f"{choice.cluster} cannot be chosen: {options}"
        return (choice.cluster,), _escaped(choice.cluster)
    several = variable.get("multi", False) or name == "cluster"
    count = {FIRST: 1, DEFAULT: 1, TWO: 2, ALL: len(options)}[choice.how_many] if several else 1
    if includes_all and (choice.how_many in (ALL, DEFAULT) or not options):
        return tuple(options), variable.get("allValue") or _either(options)
    if not several and not includes_all:
        return tuple(options[:1]), _quoted(options[0]) if options else MATCHES_NOTHING
    return tuple(options[:count]), _either(options[:count])


def _either(values: list[str]) -> str:
    escaped = [_escaped(value) for value in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _escaped(value: str) -> str:
    """A value in a regular expression in a PromQL string."""
    return REGEX_CHARACTERS.sub(r"\\\\\g<0>", value.replace("\\", r"\\\\"))


def _quoted(value: str) -> str:
    """The value of a variable that cannot have several: Grafana takes it for no expression."""
    return value.replace("\\", r"\\").replace("'", r"\\'")


def _natural(value: str) -> list[tuple[int, str]]:
    parts = re.findall(r"\d+|\D+", value.lower())
    return [(int(part) if part.isdigit() else -1, part) for part in parts]
