"""The thresholds of the rules: each that is used is recorded once, and watched for being so."""

import re
from pathlib import Path

import yaml

ALERTS = Path(__file__).parents[1] / "alerts"
# What vmalert 1.79, the one in Debian 12, accepts of a rule; it refuses keep_firing_for.
FIELDS = {"alert", "record", "expr", "for", "labels", "annotations"}
USED = re.compile(r'seedance:threshold\{of="(\w+)"\}')
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


def test_no_rule_has_a_field_that_an_older_vmalert_refuses() -> None:
    assert {field for rule in rules() for field in rule} <= FIELDS
