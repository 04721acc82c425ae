"""What an alert says to the person it wakes: a severity, and texts that name value and device."""

import re
from collections.abc import Iterator

from seedance_obs.rules.finding import Finding
from seedance_obs.rules.labels_left import labels_left
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import TARGET_LABELS, KnownSeries

SEVERITIES = ("critical", "warning", "info")
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_LABEL = re.compile(r"(?:\$labels|\.Labels)\.(\w+)")
_VALUE = re.compile(r"\$value\b|\.Value\b")


def severity(rule: Rule, _known: KnownSeries) -> Iterator[Finding]:
    """Alerts that the Alertmanager file would route nowhere in particular."""
    found = rule.labels.get("severity")
    if rule.alert and found not in SEVERITIES:
        said = "no severity" if found is None else f"the severity {found!r}"
        yield rule.finding(
            f"it has {said}: critical, warning or info is wanted", part="labels.severity"
        )


def texts(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """A summary and a description that leave open what, where or how much."""
    if not rule.alert:
        return
    labels = labels_left(rule.tree, known)
    for name in ("summary", "description"):
        text, part = rule.annotations.get(name, ""), f"annotations.{name}"
        if not text.strip():
            yield rule.finding(f"it has no {name}", part=part)
            continue
        filled_in = _filled_in(text)
        named = set(_LABEL.findall(filled_in))
        if name == "description" and not _VALUE.search(filled_in):
            yield rule.finding("the description does not say the value: {{ $value }}", part=part)
        devices = None if labels is None else labels - {"cluster", "job"}
        if devices is None or "instance" in devices:
            if "instance" not in named:
                yield rule.finding(
                    f"the {name} does not say where: {{{{ $labels.instance }}}}", part=part
                )
        elif devices and not named & devices:
            yield rule.finding(
                f"the {name} names no device: of {_listed(devices)} it has none", part=part
            )


def labels_that_are_gone(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    """Labels that an annotation names and the query has none of: the text has a gap there."""
    labels = labels_left(rule.tree, known)
    if not rule.alert or labels is None:
        return
    for name, text in rule.annotations.items():
        for label in sorted(set(_LABEL.findall(_filled_in(text))) - labels):
            yield rule.finding(
                f"{name} names the label {label}, which the query does not leave: "
                f"{_listed(labels) or 'it leaves none'}",
                part=f"annotations.{name}",
            )


def _filled_in(text: str) -> str:
    """What of it is filled in: between braces, and no comment there."""
    return " ".join(_ACTION.findall(_COMMENT.sub("", text)))


def _listed(labels: frozenset[str]) -> str:
    return ", ".join(sorted(labels - TARGET_LABELS) + sorted(labels & TARGET_LABELS))
