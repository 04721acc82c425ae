"""The rules and the Alertmanager file as the real programs read them."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ALERTS = ROOT / "alerts"
RULE_FILES = sorted(ALERTS.glob("*.rules.yml"))
RULE_TESTS = sorted((ROOT / "tests" / "alerts").glob("*.test.yml"))
OF_A_CLUSTER = {"SeedanceFleetUnobserved", "SeedanceThresholdsMissing"}  # that no node is named in


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alerts() -> list[dict]:
    groups = [group for path in RULE_FILES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_promtool_finds_nothing_to_say_about_the_rules() -> None:
    said = run("promtool", "check", "rules", "--lint-fatal", *RULE_FILES)
    assert said.count("SUCCESS") == len(RULE_FILES) > 0


def test_amtool_accepts_the_alertmanager_file() -> None:
    assert "SUCCESS" in run("amtool", "check-config", ALERTS / "alertmanager.yml")


@pytest.mark.parametrize("path", RULE_TESTS, ids=lambda path: path.name)
def test_rules_fire_and_stay_silent_as_promised(path: Path) -> None:
    assert "SUCCESS" in run("promtool", "test", "rules", path)


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (("severity=critical", "alertname=SeedanceGpuXidCritical"), "page"),
        (("severity=warning", "alertname=SeedanceGpuMissing"), "ticket"),
        (("alertname=SomethingElse",), "default"),
    ],
)
def test_severity_decides_who_hears_of_it(labels: tuple[str, ...], receiver: str) -> None:
    config = f"--config.file={ALERTS / 'alertmanager.yml'}"
    assert run("amtool", "config", "routes", "test", config, *labels).strip() == receiver


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_every_alert_can_be_acted_upon(rule: dict) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["labels"]["topic"]
    notes = rule["annotations"]
    assert notes["summary"]
    assert ("$labels.instance" in notes["description"]) != (rule["alert"] in OF_A_CLUSTER)
    assert "$value" in notes["description"]
    assert notes["dashboard"].startswith("/d/")


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_every_alert_has_a_whole_runbook_entry(rule: dict) -> None:
    path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor == rule["alert"].lower()
    entries = re.split(r"^## ", (ROOT / path).read_text(), flags=re.MULTILINE)
    (entry,) = [text for text in entries if text.startswith(rule["alert"] + "\n")]
    sections = re.findall(r"^### (.+)$", entry, flags=re.MULTILINE)
    assert sections == ["Meaning", "Impact", "Diagnosis", "Mitigation"]


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_every_alert_is_tested_in_both_directions(rule: dict) -> None:
    tests = [test for path in RULE_TESTS for test in yaml.safe_load(path.read_text())["tests"]]
    cases = [case for test in tests for case in test.get("alert_rule_test", [])]
    outcomes = {bool(c["exp_alerts"]) for c in cases if c["alertname"] == rule["alert"]}
    assert outcomes == {True, False}
