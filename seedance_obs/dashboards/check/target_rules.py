"""dashboard-linter's rules on queries: PromQL, and of LogQL what can be told without its parser."""

import re
from collections.abc import Iterator

from seedance_obs.dashboards.check.model import LOKI, PROMETHEUS, Target
from seedance_obs.dashboards.check.queries import (
    OTHER_INTERVAL_S,
    RATE_INTERVAL_S,
    STRING,
    shortened,
    tree,
    tree_or_none,
)
from seedance_obs.dashboards.check.rule import of_target
from seedance_obs.rules.expression import Call, Node, Selector, selectors, walk

RATES = frozenset({"irate", "rate"})
OF_COUNTERS = RATES | {"increase"}
PAIRS = {")": "(", "]": "[", "}": "{"}


@of_target("target-promql-rule", "queries are PromQL, whatever variables stand for")
def promql(target: Target) -> Iterator[str]:
    """Or the answer of a panel that is there."""
    if not target.panel.asks or target.language == LOKI:
        return
    panel = target.raw.get("panelId")
    if panel is not None and panel not in [each.id for each in target.panel.dashboard.panels]:
        yield f"it takes the answers of panel {panel!r}, which is not there"
    if target.expr and target.language == PROMETHEUS:
        try:
            tree(target.expr)
        except ValueError as error:
            yield f"{shortened(target.expr)} is no PromQL: {error}"


@of_target("target-rate-interval-rule", "rate and irate look over $__rate_interval")
def rate_interval(target: Target) -> Iterator[str]:
    """Fixed ranges miss scrapes or lose detail when somebody zooms."""
    for call in _calls(target):
        for argument in call.arguments:
            if not isinstance(argument, Selector) or call.function not in RATES:
                continue
            if argument.range is not None and argument.range != RATE_INTERVAL_S:
                yield (
                    f"{call.function}() of {argument.name} looks over {_seconds(argument)}: use "
                    "$__rate_interval"
                )


@of_target("target-job-rule", "every selector has job=~$job")
def job(target: Target) -> Iterator[str]:
    """As all dashboards of mixins have it."""
    yield from _selected_by(target, "job")


@of_target("target-instance-rule", "every selector has instance=~$instance")
def instance(target: Target) -> Iterator[str]:
    """As all dashboards of mixins have it."""
    yield from _selected_by(target, "instance")


@of_target("target-counter-agg-rule", "what ends in _total stands in rate, irate or increase")
def counters(target: Target) -> Iterator[str]:
    """A counter says since when, not how much."""
    parsed = _parsed(target)
    if parsed is None:
        return
    fine = [
        id(each)
        for call in walk(parsed)
        if isinstance(call, Call) and call.function in OF_COUNTERS
        for each in call.arguments
    ]
    plain = [each for each in selectors(parsed) if each.name.endswith("_total")]
    for name in dict.fromkeys(each.name for each in plain if id(each) not in fine):
        yield f"{name} is a counter: take its rate() or increase()"


@of_target("target-logql-rule", "queries of Loki select a stream, and all that opens closes")
def logql(target: Target) -> Iterator[str]:
    """No more can be told without Loki's own parser."""
    if target.language != LOKI or target.hidden or not target.expr:
        return
    bare = STRING.sub('""', target.expr)
    if '"' in bare.replace('""', "") or not _closed(bare):
        yield f"{shortened(target.expr)} is no LogQL: a bracket or a quote is not closed"
    elif not re.search(r"\{[^{}]*\}", bare):
        yield f'{shortened(target.expr)} is no LogQL: it selects no stream, as in {{app=~".+"}}'


@of_target("target-logql-auto-rule", "ranges in queries of Loki are $__auto")
def logql_auto(target: Target) -> Iterator[str]:
    """Fixed ranges leave gaps or count twice when somebody zooms."""
    if target.language != LOKI or target.hidden or "$__auto" in target.expr:
        return
    ranges = re.findall(r"\[\s*(\d[^\]]*)\]", STRING.sub('""', target.expr))
    if ranges:
        yield f"it has the fixed range {ranges[0]}: use $__auto"


def _parsed(target: Target) -> Node | None:
    if not target.expr or target.language != PROMETHEUS:
        return None
    return tree_or_none(target.expr)


def _calls(target: Target) -> Iterator[Call]:
    parsed = _parsed(target)
    if parsed is not None and target.panel.asks:
        yield from (each for each in walk(parsed) if isinstance(each, Call))


def _selected_by(target: Target, name: str) -> Iterator[str]:
    parsed = _parsed(target)
    wanted = (name, "=~", f"${name}")
    found = () if parsed is None else selectors(parsed)
    for each in dict.fromkeys(each.name for each in found if wanted not in each.matchers):
        yield f'{each or "a selector"} lacks {name}=~"${name}": add it'


def _seconds(selector: Selector) -> str:
    return "another variable" if selector.range == OTHER_INTERVAL_S else f"{selector.range:g} s"


def _closed(bare: str) -> bool:
    opened: list[str] = []
    for letter in bare:
        if letter in PAIRS.values():
            opened.append(letter)
        elif letter in PAIRS and (not opened or opened.pop() != PAIRS[letter]):
            return False
    return not opened
