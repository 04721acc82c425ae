"""The thresholds of the rules: each that is used is recorded once, and watched for being so."""

import re
from pathlib import Path

import yaml

ALERTS = Path(__file__).parents[1] / "alerts"
RUNBOOK = (ALERTS / "runbook.md").read_text()
# What vmalert 1.79, the one in Debian 12, accepts of a rule; it refuses keep_firing_for.
FIELDS = {"alert", "record", "expr", "for", "labels", "annotations"}
USED = re.compile(r'seedance:threshold\{of="(\w+)"\}')
WASTE_LIMIT = re.compile(r'seedance:waste_limit:ratio\{of="(\w+)"\}')
WATCH = re.compile(r"SeedanceThresholds\w+")
USED_TOGETHER = re.compile(r'seedance:threshold\{of=~"([^"]+)"\}')


def rules() -> list[dict]:
    files = [yaml.safe_load(path.read_text()) for path in sorted(ALERTS.glob("*.rules.yml"))]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def watched() -> set[str]:
    (watch,) = [rule for rule in rules() if rule.get("alert") == "SeedanceThresholdsMissing"]
    return set(USED.findall(watch["expr"]))


def test_every_threshold_is_recorded_once_used_and_watched() -> None:
    recorded = [
        rule["labels"]["of"] for rule in rules() if rule.get("record") == "seedance:threshold"
    ]
    compared = {
        name
        for rule in rules()
        if rule.get("alert") != "SeedanceThresholdsMissing"
        for name in USED.findall(rule["expr"])
    }
    patterns = [text for rule in rules() for text in USED_TOGETHER.findall(rule["expr"])]
    compared |= {name for name in recorded for text in patterns if re.fullmatch(text, name)}
    assert sorted(recorded) == sorted(set(recorded))
    assert set(recorded) == compared == watched()


def compared_by(alert: dict, by_record: dict[str, str]) -> set[str]:
    """The thresholds in the query of an alert and in what it takes from recorded names."""
    names, queue = set(), [alert["expr"]]
    while queue:
        expr = queue.pop()
        names |= set(USED.findall(expr)) | set(WASTE_LIMIT.findall(expr))
        queue += [by_record.pop(name) for name in [*by_record] if name in expr]
    return names


def test_the_runbook_names_what_an_alert_compares_with() -> None:
    """Outside health, whose entries say it of the hardware."""
    by_record = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
    entries = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK, re.DOTALL | re.MULTILINE))
    missing = {
        (rule["alert"], name)
        for rule in rules()
        if "alert" in rule and rule["labels"]["topic"] != "health"
        for name in compared_by(rule, dict(by_record))
        if not WATCH.fullmatch(rule["alert"]) and f"`{name}`" not in entries[rule["alert"]]
    }
    assert missing == set()


def test_no_rule_has_a_field_that_an_older_vmalert_refuses() -> None:
    assert {field for rule in rules() for field in rule} <= FIELDS
