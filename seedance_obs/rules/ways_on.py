"""Where an alert leads: a runbook entry that is whole, a dashboard that exists, tests both ways."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from seedance_obs.errors import UsageError
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule

SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")


def read_runbook(file: Path) -> dict[str, tuple[str, ...]]:
    """By the name of an entry, the headings of its sections; empty where there is no runbook."""
    if not file.is_file():
        return {}
    entries: dict[str, tuple[str, ...]] = {}
    for entry in re.split(r"^## ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = entry.partition("\n")
        entries[name.strip()] = tuple(re.findall(r"^### (.+?)\s*$", text, flags=re.MULTILINE))
    return entries


def read_dashboards(folder: Path) -> frozenset[str]:
    """The uids of the dashboards in a folder."""
    read = (json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json"))
    return frozenset(each["uid"] for each in read if "uid" in each)


def read_outcomes(folder: Path) -> dict[str, set[bool]]:
    """By alert, whether the tests of a folder have it fire and have it stay silent.

    Raises:
        UsageError: the folder holds no tests, or one that cannot be read.
    """
    files = sorted(folder.rglob("*.test.yml"))
    if not files:
        raise UsageError(f"{folder}: no *.test.yml is in this folder")
    outcomes: dict[str, set[bool]] = {}
    for file in files:
        try:
            document = yaml.safe_load(file.read_text(encoding="utf-8"))
            cases = [
                case for test in document["tests"] for case in test.get("alert_rule_test") or ()
            ]
            for case in cases:
                outcomes.setdefault(case["alertname"], set()).add(bool(case.get("exp_alerts")))
        except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{file}: this is no test of rules: {error}") from error
    return outcomes


def runbook_entry(rule: Rule, runbook: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    """Alerts that leave the person alone with them."""
    url, part = rule.annotations.get("runbook_url", ""), "annotations.runbook_url"
    anchor = f"#{rule.name.lower()}"
    if not url.endswith(anchor):
        yield rule.finding(f"it has no runbook_url that ends in {anchor}", part=part)
    if rule.name not in runbook:
        yield rule.finding(f"runbook.md has no entry ## {rule.name}", part=part)
        return
    missing = [f"### {each}" for each in SECTIONS if each not in runbook[rule.name]]
    if missing:
        yield rule.finding(f"its runbook entry has no {', '.join(missing)}", part=part)


def dashboard(rule: Rule, uids: Iterable[str]) -> Iterator[Finding]:
    """Alerts whose link to a dashboard is missing or leads nowhere."""
    link, part = rule.annotations.get("dashboard", ""), "annotations.dashboard"
    found = re.search(r"/d/([\w-]+)", link)
    if not found:
        yield rule.finding("it has no dashboard: /d/UID is wanted", part=part)
    elif found[1] not in uids:
        yield rule.finding(f"no dashboard has the uid {found[1]}", part=part)


def both_tests(rule: Rule, outcomes: Mapping[str, set[bool]]) -> Iterator[Finding]:
    """Alerts of which no test shows that they fire, or none that they stay silent."""
    tested = outcomes.get(rule.name, set())
    if True not in tested:
        yield rule.finding("no test has it fire")
    if False not in tested:
        yield rule.finding("no test has it stay silent")
