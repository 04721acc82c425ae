"""Tests of rules as promtool reads them: which alert each case is of, and with what series."""

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from seedance_obs.errors import UsageError
from seedance_obs.rules.expression import Selector, parse
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule
from seedance_obs.rules.series import KnownSeries
from seedance_obs.rules.thresholds import THRESHOLD

LOOK_BACK_SECONDS = 300
_UNREADABLE = (
    AttributeError,
    KeyError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    yaml.YAMLError,
)
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_VALUE = re.compile(r"(?P<value>\{\{.*?\}\}|[^\sx]+)(?:x(?P<times>\d+))?")


@dataclass(frozen=True, slots=True)
class Case:
    """One expectation of an alert; `there` names the series that have a value at its time."""

    alert: str
    expected: tuple[Mapping[str, str], ...]  # the labels of those that fire
    rule_files: frozenset[Path]
    there: frozenset[str]

    def fires(self, rule: Rule) -> bool:
        """Whether an expected one is of this rule, and not of another severity."""
        return any(rule.labels.items() <= labels.items() for labels in self.expected)


def rule_tests(folder: Path) -> tuple[Path, ...]:
    """The test files in a folder and below: *.test.yml.

    Raises:
        UsageError: there is none.
    """
    files = tuple(sorted(folder.rglob("*.test.yml")))
    if not files:
        raise UsageError(f"{folder}: no *.test.yml is in this folder")
    return files


def read_cases(file: Path) -> tuple[list[Case], list[Finding]]:
    """The cases of alerts in a test file, or why it cannot be read."""
    try:
        return list(_cases(file, yaml.safe_load(file.read_text(encoding="utf-8")))), []
    except _UNREADABLE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        return [], [Finding(file, 1, "", f"this is no test of rules: {said}")]


def both_tests(rule: Rule, cases: list[Case], known: KnownSeries) -> Iterator[Finding]:
    """Alerts of which no test shows that they fire, or none that they stay silent."""
    file, selected = rule.file.resolve(), known.behind(rule.tree) - {THRESHOLD}
    tests = [case for case in cases if case.alert == rule.name and file in case.rule_files]
    if not any(case.fires(rule) for case in tests):
        yield rule.finding("no test with this file among its rule_files has it fire")
    if not any(selected & case.there for case in tests if not case.fires(rule)):
        yield rule.finding(
            "no test with this file among its rule_files has it stay silent while a series that "
            "it selects is there"
        )


def _cases(file: Path, document: Mapping[str, Any]) -> Iterator[Case]:
    loaded = frozenset(
        Path(found).resolve()
        for pattern in document.get("rule_files") or ()
        for found in glob.glob(str(file.parent / pattern))
    )
    for test in document["tests"]:
        interval = _seconds(test.get("interval") or "1m")
        inputs = test.get("input_series") or ()
        for case in test.get("alert_rule_test") or ():
            at = _seconds(case.get("eval_time") or "0s")
            there = {_name(each["series"]) for each in inputs if _is_there(each, at, interval)}
            expected = tuple(each.get("exp_labels") or {} for each in case.get("exp_alerts") or ())
            yield Case(case["alertname"], expected, loaded, frozenset(there))


def _seconds(text: Any) -> float:
    return sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(str(text)))


def _name(series: str) -> str:
    selector = parse(series)
    return selector.name if isinstance(selector, Selector) else ""


def _is_there(series: Mapping[str, Any], at: float, interval: float) -> bool:
    """Whether its last value by then is recent and no end of the series."""
    begin, newest, last = 0.0, 0.0, "stale"
    for found in _VALUE.finditer(str(series["values"])):
        value, times = found["value"], int(found["times"] or 0)
        count = max(times, 1) if value == "_" else times + 1
        if value != "_" and begin <= at:
            newest, last = min(begin + (count - 1) * interval, at), value
        begin += count * interval
    return last != "stale" and at - newest < LOOK_BACK_SECONDS
