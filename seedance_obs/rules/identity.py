"""What makes an alert the same from one evaluation to the next: labels that stay, there once."""

from collections.abc import Iterable, Iterator

from seedance_obs.rules.expression import Aggregation, Binary, Literal, Node, walk
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries
from seedance_obs.rules.thresholds import THRESHOLD

_CHOOSING = frozenset({"bottomk", "limit_ratio", "limitk", "topk"})


def changing_labels(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """Templates in labels: with each other value the alert would be another, `for` begin anew."""
    for name, text in rule.labels.items():
        if "{{" in text:
            yield rule.finding(
                f"the label {name} is a template: an alert whose labels change begins anew; put "
                "it into an annotation",
                part=f"labels.{name}",
            )


def changing_series(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """Aggregations by which an alert is of other series with each value that changes."""
    for node in walk(rule.tree) if rule.alert else ():
        if not isinstance(node, Aggregation):
            continue
        if node.operator == "count_values" and not _is_joined(node, rule.tree):
            yield rule.finding(
                "count_values() makes a label of the value: with another value it is another "
                "alert, and `for` begins anew",
                word=node.operator,
            )
        if node.operator in _CHOOSING:
            yield rule.finding(
                f"{node.operator}() is of other series whenever their order changes, and `for` "
                "begins anew: compare each with a threshold",
                word=node.operator,
            )


def _is_joined(node: Aggregation, tree: Node) -> bool:
    """Whether its label is one of few, since it is matched with the same label of other series."""
    label = node.parameter.value if isinstance(node.parameter, Literal) else ""
    return any(isinstance(each, Binary) and label in (each.on or ()) for each in walk(tree))


def keeps_firing(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """keep_firing_for, which not every program that reads such files knows."""
    if "keep_firing_for" in rule.lines:
        yield rule.finding(
            "vmalert 1.79 refuses files with keep_firing_for: look back in the expression",
            part="keep_firing_for",
        )


def repeated(rules: Iterable[Rule]) -> Iterator[Finding]:
    """Rules of one name with the same labels, wherever the first is: two records take turns."""
    first: dict[tuple[object, ...], Rule] = {}
    for rule in rules:
        labels = {"of": rule.labels.get("of")} if rule.name == THRESHOLD else rule.labels
        key = (rule.alert, rule.name, frozenset(labels.items()))
        before = first.setdefault(key, rule)
        if before is not rule:
            yield rule.finding(f"it is there already: {before.file.name}:{before.lines['']}")
