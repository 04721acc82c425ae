"""Tests of alerts: what shows that one fires and stays silent, and what shows nothing."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rules.small_rules import HEAT, SEEN, THRESHOLDS, alert, check, sentences

NEVER_FIRES = "no test with this file among its rule_files has it fire"
NEVER_SILENT = (
    "no test with this file among its rule_files has it stay silent while a series that it "
    "selects is there"
)
FIRES = {
    "alertname": "SeedanceTry",
    "eval_time": "5m",
    "exp_alerts": [{"exp_labels": {"severity": "warning", "gpu": "0"}}],
}
SILENT = {"alertname": "SeedanceTry", "eval_time": "5m", "exp_alerts": []}


def said(folder: Path, *cases: dict[str, Any], **changes: Any) -> list[str]:
    """Of the alert that is right, with tests of these cases."""
    write(folder, *cases, **changes)
    return sentences(folder, alert(), tests=folder / "tests")


def write(folder: Path, *cases: dict[str, Any], values: str = "95x5 60x5", **changes: Any) -> None:
    series = {"series": HEAT, "values": values}
    test = {"input_series": [series], **changes, "alert_rule_test": list(cases)}
    document = {
        "rule_files": changes.pop("rule_files", ["../*.rules.yml"]),
        "tests": [test, {"interval": "1m"}],
    }
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "try.test.yml").write_text(yaml.safe_dump(document))


def test_an_alert_is_tested_in_both_directions(folder: Path) -> None:
    assert said(folder, SILENT, FIRES) == []
    assert said(folder, SILENT) == [NEVER_FIRES]
    assert said(folder, FIRES) == [NEVER_SILENT]
    assert said(folder, {**FIRES, "alertname": "Other"}) == [NEVER_FIRES, NEVER_SILENT]


def test_an_alert_of_another_severity_is_another(folder: Path) -> None:
    page = {**FIRES, "exp_alerts": [{"exp_labels": {"severity": "critical"}}]}
    assert said(folder, SILENT, page) == [NEVER_FIRES]
    assert said(folder, FIRES, page) == []


@pytest.mark.parametrize("rule_files", [[], ["other.rules.yml"], ["../tests/*.rules.yml"]])
def test_a_test_that_does_not_load_the_alert_shows_nothing(
    folder: Path, rule_files: list[str]
) -> None:
    assert said(folder, SILENT, FIRES, rule_files=rule_files) == [NEVER_FIRES, NEVER_SILENT]


def test_silence_without_a_series_shows_nothing(folder: Path) -> None:
    others = [{"series": "up", "values": "1x10"}, {"series": SEEN, "values": "8x10"}]
    assert said(folder, FIRES, SILENT, input_series=others) == [NEVER_SILENT]
    assert said(folder, FIRES, SILENT, input_series=[]) == [NEVER_SILENT]


def test_silence_with_nothing_but_thresholds_shows_nothing(folder: Path) -> None:
    limit = 'seedance:threshold{of="share"}'
    write(folder, FIRES, SILENT, input_series=[{"series": limit, "values": "90x10"}])
    rules = (*THRESHOLDS, alert(expr=f"{HEAT} > scalar({limit})"))
    assert sentences(folder, *rules, tests=folder / "tests") == [NEVER_SILENT]


@pytest.mark.parametrize(
    ("values", "at", "interval", "is_there"),
    [
        ("_x3 1x5", "2m", "1m", False),
        ("_x3 1x5", "3m", "1m", True),
        ("_ _ 1+2x5", "1m59s", "1m", False),
        ("1x3 stale", "4m", "1m", False),
        ("1x3 stale 1", "5m", "1m", True),
        ("1x3 _x20", "7m", "1m", True),
        ("1x3 _x20", "8m", "1m", False),
        ("1 2 3", "1h", "1m", False),
        ("1x3", "1h", "30m", True),
        ("1x3", "1h", None, False),
        ("_x3 1x3", "4m", None, True),
        (1, "0", "1m", True),
    ],
)
def test_silence_is_shown_while_a_series_has_a_value(
    folder: Path, values: Any, at: str, interval: str | None, is_there: bool
) -> None:
    silent = {**SILENT, "eval_time": at}
    found = said(folder, FIRES, silent, values=values, interval=interval)
    assert found == ([] if is_there else [NEVER_SILENT])


def test_what_is_behind_a_recorded_series_is_selected(folder: Path) -> None:
    most = {"record": "most", "expr": f"max by (instance, gpu) ({HEAT})"}
    write(folder, SILENT, FIRES)
    assert sentences(folder, most, alert(expr="most > 90"), tests=folder / "tests") == []


@pytest.mark.parametrize("text", ["x: [", "tests: 3", "tests: [{alert_rule_test: [{}]}]", "[]", ""])
def test_a_file_that_is_no_test_is_a_finding(folder: Path, text: str) -> None:
    write(folder, SILENT, FIRES)
    (folder / "tests" / "wrong.test.yml").write_text(text)
    (found,) = check(folder, alert(), tests=folder / "tests")
    assert (found.file.name, found.line) == ("wrong.test.yml", 1)
    assert found.sentence.startswith("this is no test of rules: ")
