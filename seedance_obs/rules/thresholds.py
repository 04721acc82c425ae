"""Numbers that alerts compare with: each has a name, is recorded once and is one number."""

import re
from collections.abc import Iterator

from seedance_obs.rules.expression import Call, Literal, Node, Selector, selectors, walk
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries

THRESHOLD = "seedance:threshold"


def missing_thresholds(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Thresholds that a rule names and nobody sets."""
    there = {each.labels.get("of", "") for each in known.recorded.get(THRESHOLD, ())}
    used = {each for each in selectors(rule.tree) if each.name == THRESHOLD}
    matchers = {matcher for each in used for matcher in each.matchers if matcher[0] == "of"}
    for _, how, value in sorted(matchers if there else ()):
        if how not in ("=", "=~"):
            continue
        for name in value.split("|") if how == "=~" else [value]:
            if not re.fullmatch(r"[\w-]+", name):  # a pattern that stands for several
                if not any(re.fullmatch(name, each) for each in there):
                    yield rule.finding(f"no threshold's name matches {name!r}", word=THRESHOLD)
            elif name not in there:
                yield rule.finding(f"the threshold {name!r} is set by no rule", word=name)


def threshold_of_any_name(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """scalar() of several thresholds, which is no number at all."""
    for node in walk(rule.tree):
        if isinstance(node, Call) and node.function == "scalar":
            (inner,) = node.arguments
            if (
                isinstance(inner, Selector)
                and inner.name == THRESHOLD
                and not any((label, how) == ("of", "=") for label, how, _ in inner.matchers)
            ):
                yield rule.finding(
                    f'scalar({THRESHOLD}) of more than one: say {{of="NAME"}}', word=THRESHOLD
                )


def threshold_that_is_no_number(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """Thresholds that are computed, or not above 0, where rules divide by them."""
    if rule.name == THRESHOLD and not _is_vector_above_zero(rule.tree):
        yield rule.finding("a threshold is vector(NUMBER), and the number is above 0", part="expr")


def _is_vector_above_zero(node: Node) -> bool:
    if not isinstance(node, Call) or node.function != "vector":
        return False
    (value,) = node.arguments
    return isinstance(value, Literal) and isinstance(value.value, float) and value.value > 0
