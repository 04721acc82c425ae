"""The runbook beside the rules: one entry for each alert, all of whose sections say something."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule

SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
_HEADING = re.compile(r"(#{1,3}) +(.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands under `## NAME`: by section, its text."""

    name: str
    line: int
    sections: dict[str, str] = field(default_factory=dict)


def read_runbook(file: Path) -> list[Entry]:
    """Its entries; none where there is no runbook."""
    if not file.is_file():
        return []
    entries: list[Entry] = []
    section, in_code = "", False
    for number, line in enumerate(file.read_text("utf-8", errors="replace").splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        heading = None if in_code else _HEADING.match(line)
        if heading and heading[1] == "##":
            entries.append(Entry(heading[2], number))
        if heading:
            section = heading[2] if heading[1] == "###" else ""
        if entries and section:
            text = entries[-1].sections.setdefault(section, "")
            entries[-1].sections[section] = text + ("" if heading else line + "\n")
    return entries


def runbook_entry(rule: Rule, runbook: Mapping[str, Entry]) -> Iterator[Finding]:
    """Alerts that leave the person alone with them."""
    url, part = rule.annotations.get("runbook_url", ""), "annotations.runbook_url"
    anchor = f"#{rule.name.lower()}"
    if not url.endswith(anchor):
        yield rule.finding(f"it has no runbook_url that ends in {anchor}", part=part)
    if rule.name not in runbook:
        yield rule.finding(f"runbook.md has no entry ## {rule.name}", part=part)
        return
    sections = runbook[rule.name].sections
    missing = [f"### {each}" for each in SECTIONS if not sections.get(each, "").strip()]
    if missing:
        yield rule.finding(f"its runbook entry says nothing under {', '.join(missing)}", part=part)
    shows = "`" in sections.get("Diagnosis", "") or _names_another(rule, runbook)
    if "### Diagnosis" not in missing and not shows:
        yield rule.finding("its Diagnosis names no `command` or `query`", part=part)


def stray_entries(file: Path, entries: Iterable[Entry], alerts: Iterable[Rule]) -> list[Finding]:
    """Entries that are of no alert, or there twice."""
    names = {alert.name for alert in alerts}
    findings = []
    seen: set[str] = set()
    for entry in entries:
        if entry.name not in names:
            findings.append(Finding(file, entry.line, entry.name, "no alert here is called so"))
        elif entry.name in seen:
            findings.append(Finding(file, entry.line, entry.name, "it has an entry already"))
        seen.add(entry.name)
    return findings


def _names_another(rule: Rule, runbook: Mapping[str, Entry]) -> bool:
    text = runbook[rule.name].sections.get("Diagnosis", "")
    return any(f"*{name}*" in text for name in runbook if name != rule.name)
