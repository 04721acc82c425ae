"""The link of an alert to a dashboard that exists."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule


def read_dashboards(folder: Path) -> frozenset[str]:
    """The uids of the dashboards in a folder."""
    read = (json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json"))
    return frozenset(each["uid"] for each in read if "uid" in each)


def dashboard(rule: Rule, uids: Iterable[str]) -> Iterator[Finding]:
    """Alerts whose link to a dashboard is missing or leads nowhere."""
    link, part = rule.annotations.get("dashboard", ""), "annotations.dashboard"
    found = re.search(r"/d/([\w-]+)", link)
    if not found:
        yield rule.finding("it has no dashboard: /d/UID is wanted", part=part)
    elif found[1] not in uids:
        yield rule.finding(f"no dashboard has the uid {found[1]}", part=part)
