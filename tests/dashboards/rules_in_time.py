"""The shipped rules evaluated over a history, as Prometheus would have done while it happened.

Every rule is asked for as a range, once all that it reads has been recorded; what it gives is
written back as Prometheus writes it: recorded series with the rule's labels, ALERTS while an alert
is pending or firing and ALERTS_FOR_STATE beside it, and the end of each series where it ends.
Rules that read each other are of the same moment, where groups of Prometheus may be an interval
apart.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from seedance_obs.rules.expression import parse, selectors
from tests.dashboards.remote_write import STALE, Encoded, Labels, Samples, labels_of

Points = Mapping[int, float]  # by milliseconds
Ask = Callable[[str, float], list[dict[str, Any]]]  # expression and step: a range's answer
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Rule:
    """A recording rule, or an alert that fires after `for_s` seconds."""

    name: str
    expr: str
    labels: Mapping[str, str]
    step_s: float
    is_alert: bool
    for_s: float

    @property
    def reads(self) -> set[str]:
        """The names of the series that it selects."""
        return {each.name for each in selectors(parse(self.expr)) if each.name}

    @property
    def query(self) -> str:
        """The expression; what it recorded itself before is worked out instead of read.

        One round of that is enough for a rule that holds on to what it last read elsewhere.
        """
        itself = re.escape(self.name)
        return re.sub(rf"{itself}\[(\w+)\]", f"({self.expr})[\\1:{self.step_s:g}s]", self.expr)


def read_rules(files: Iterable[Path], *, interval_s: float) -> list[Rule]:
    """The rules of some files; `interval_s` is that of groups without one of their own."""
    return [
        Rule(
            name=rule.get("record") or rule["alert"],
            expr=rule["expr"],
            labels=rule.get("labels", {}),
            step_s=_seconds(group["interval"]) if "interval" in group else interval_s,
            is_alert="alert" in rule,
            for_s=_seconds(rule.get("for", "0s")),
        )
        for file in files
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]


def evaluate(rules: Sequence[Rule], ask: Ask, *, end: float) -> Iterator[Encoded]:
    """What the rules record up to a Unix time, to be written before the next is asked for."""
    with ThreadPoolExecutor(2) as pool:
        for ready in _in_order(rules):
            samples = Samples(until_ms=round(1000 * end))
            answers = pool.map(lambda rule: ask(rule.query, rule.step_s), ready)
            for rule, answer in zip(ready, answers, strict=True):
                write = _write_alert if rule.is_alert else _write_recorded
                for row in answer:
                    write(samples, rule, row)
            yield samples.encoded


def _in_order(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    """The rules in batches, each of which reads only what batches before it record."""
    reads = {rule.name: set[str]() for rule in rules}
    for rule in rules:
        reads[rule.name] |= rule.reads & reads.keys() - {rule.name}
    order = TopologicalSorter(reads)
    order.prepare()
    while order.is_active():
        ready = set(order.get_ready())
        yield [rule for rule in rules if rule.name in ready]
        order.done(*ready)


def _write_recorded(samples: Samples, rule: Rule, row: Mapping[str, Any]) -> None:
    series = labels_of(rule.name, {**row["metric"], **rule.labels})
    _write(samples, series, _points(row), rule.step_s)


def _write_alert(samples: Samples, rule: Rule, row: Mapping[str, Any]) -> None:
    labels = {**row["metric"], **rule.labels, "alertname": rule.name}
    states: dict[str, dict[int, float]] = {"pending": {}, "firing": {}}
    since: dict[int, float] = {}
    for run in _runs(sorted(_points(row)), rule.step_s):
        for at_ms in run:
            state = "firing" if at_ms - run[0] >= 1000 * rule.for_s else "pending"
            states[state][at_ms] = 1.0
            since[at_ms] = run[0] // 1000
    _write(samples, labels_of("ALERTS_FOR_STATE", labels), since, rule.step_s)
    for state, points in states.items():
        series = labels_of("ALERTS", {**labels, "alertstate": state})
        _write(samples, series, points, rule.step_s)


def _write(samples: Samples, series: Labels, points: Points, step_s: float) -> None:
    """The points of a series, and its end after each point that no other follows."""
    for run in _runs(sorted(points), step_s):
        for at_ms in run:
            samples.add(series, at_ms, points[at_ms])
        samples.add(series, run[-1] + round(1000 * step_s), STALE)


def _runs(moments: Sequence[int], step_s: float) -> Iterator[list[int]]:
    """Moments that follow each other step by step."""
    run: list[int] = []
    for at_ms in moments:
        if run and at_ms - run[-1] > 1000 * step_s:
            yield run
            run = []
        run.append(at_ms)
    if run:
        yield run


def _points(row: Mapping[str, Any]) -> Points:
    return {round(1000 * at): float(text) for at, text in row["values"]}


def _seconds(text: str) -> float:
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text))
