"""What evaluating the rules over 1,000 nodes of 8 GPUs costs a real Prometheus.

    python -m tests.bench.rules [--nodes 1000] [--scrape-seconds 15] [--evaluations 3]

Every node shows a copy of `exporters/node.prom` with all its GPUs in use, every tenth also its leak
suspects and faults, so that alerts have something to tell of; of that the series that rules read,
or with --whole-page all. They are held as by a server that scrapes every 15 s: the last hour in
memory, and for the rules that look back further, a day or three of what they read in blocks.
Scrapes go on while all of alerts/ is evaluated, at its own intervals or Prometheus' default of one
minute.
Recorded series have the past that their rules would have given them. Series do not come and go.

Printed is the share of its interval that each group takes, the slowest rules and the server's peak
memory. The budget is a fifth of the interval, for each evaluation, on two cores.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from seedance_obs.assets import assets_folder
from seedance_obs.demo.stack import read_page
from seedance_obs.errors import SeedanceError
from seedance_obs.promql.client import Prometheus
from seedance_obs.rules.expression import selectors
from seedance_obs.rules.rule_file import Rule, read_rules, rule_files
from tests.bench.fleet_page import Fleet, PageSeries, node_page
from tests.bench.fleet_past import Past, past_of_rules
from tests.bench.thousand_nodes import (
    HOUR_SECONDS,
    RULE_SECONDS,
    FleetServer,
    fleet_server,
)

SHARE = 0.2
SLOWEST = 5
LOOK_SECONDS = 10
PATIENCE_ROUNDS = 3  # more than the evaluations asked for, in intervals


@dataclass(slots=True)
class Measured:
    """Seconds of each evaluation of a group or a rule, by when it was, and the interval."""

    interval_seconds: float
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return median(self.seconds.values())

    @property
    def worst(self) -> float:
        return max(self.seconds.values())

    @property
    def too_slow(self) -> bool:
        return self.worst >= SHARE * self.interval_seconds


@dataclass(slots=True)
class Evaluations:
    """What the server says of its evaluations, by group, and by group and rule."""

    groups: dict[str, Measured] = field(default_factory=dict)
    rules: dict[tuple[str, str], Measured] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # rule to what went wrong

    def note(self, told: Sequence[Any]) -> None:
        """Take in an answer of /api/v1/rules."""
        for group in told:
            if group["lastEvaluation"].startswith("0001"):
                continue
            interval = group["interval"]
            seen = self.groups.setdefault(group["name"], Measured(interval))
            seen.seconds[group["lastEvaluation"]] = group["evaluationTime"]
            for number, rule in enumerate(group["rules"]):
                key = (group["name"], f"{number + 1}. {rule['name']}")
                of_rule = self.rules.setdefault(key, Measured(interval))
                of_rule.seconds[group["lastEvaluation"]] = rule["evaluationTime"]
                if rule["health"] == "err":
                    self.failed[rule["name"]] = rule["lastError"]


def names_read(rules: Sequence[Rule]) -> set[str]:
    """The series that rules read, and that neither they nor their alerts write."""
    written = {rule.name for rule in rules if not rule.alert} | {"ALERTS"}
    return {each.name for rule in rules for each in selectors(rule.tree)} - written


def page_of_rules(rules: Sequence[Rule], *, whole: bool) -> list[PageSeries]:
    """What rules read of each node.

    Raises:
        SeedanceError: they read a series that is not in the data.
    """
    page = node_page()
    read = names_read(rules)
    if missing := read - {each.name for each in page}:
        raise SeedanceError(f"the rules read what the bench does not have: {sorted(missing)}")
    return page if whole else [each for each in page if each.name in read]


def watch(server: FleetServer, groups: int, evaluations: int) -> Evaluations:
    """Look on until every group was evaluated so often, or for longer than that should take."""
    found = Evaluations()
    deadline = time.monotonic() + (evaluations + PATIENCE_ROUNDS) * RULE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        page = read_page(f"{server.url}/api/v1/rules", timeout_seconds=60.0)
        found.note(json.loads(page or b'{"data":{"groups":[]}}')["data"]["groups"])
        done = [len(each.seconds) >= evaluations for each in found.groups.values()]
        if len(done) == groups and all(done):
            return found
    found.failed["groups"] = f"{groups - done.count(True)} were not evaluated {evaluations} times"
    return found


def report(found: Evaluations) -> list[str]:
    """Groups by their worst share, then the slowest rules."""
    lines = ["  share of the interval: median, worst    seconds  interval"]
    by_share = sorted(
        found.groups.items(), key=lambda each: -each[1].worst / each[1].interval_seconds
    )
    for name, each in by_share:
        shares = (each.median / each.interval_seconds, each.worst / each.interval_seconds)
        lines.append(
            f"  {name:28} {shares[0]:7.2%} {shares[1]:7.2%} {each.worst:9.3f} s"
            f" {each.interval_seconds:6.0f} s" + ("   TOO SLOW" if each.too_slow else "")
        )
    lines.append("  the slowest rules: median and worst seconds")
    slowest = sorted(found.rules.items(), key=lambda each: -each[1].median)[:SLOWEST]
    for (group, rule), each in slowest:
        lines.append(f"  {each.median:8.3f} {each.worst:8.3f}  {group}: {rule}")
    return lines


def main() -> int:
    """Measure, print, and say by the exit code whether every group is within its budget."""
    asked = arguments()
    files = rule_files(assets_folder("alerts"))
    rules = [rule for file in files for rule in read_rules(file)[0]]
    fleet = Fleet(page_of_rules(rules, whole=asked.whole_page), asked.nodes, asked.scrape_seconds)
    past = past_of_rules(rules, fleet, rule_seconds=RULE_SECONDS, hour_seconds=HOUR_SECONDS)
    say(f"{fleet.nodes:,} nodes of {len(fleet.page):,} series, every {fleet.scrape_seconds} s")
    begun = time.monotonic()
    with fleet_server(fleet, past) as server:
        say(f"  ready after {time.monotonic() - begun:.0f} s")
        server.load_rules(files)
        begun, cpu = time.monotonic(), server.cpu_seconds()
        found = watch(server, groups(files), asked.evaluations)
        busy = (server.cpu_seconds() - cpu) / (time.monotonic() - begun)
        say(*report(found), *conditions(server, past))
        say(f"  the server was busy on {busy:.2f} of {os.cpu_count()} cores, scrapes included")
    for rule, why in found.failed.items():
        say(f"  {rule} FAILED: {why}")
    return 1 if found.failed or any(each.too_slow for each in found.groups.values()) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--scrape-seconds", type=int, default=15)
    parser.add_argument("--evaluations", type=int, default=3)
    parser.add_argument("--whole-page", action="store_true")
    return parser.parse_args()


def conditions(server: FleetServer, past: Sequence[Past]) -> list[str]:
    """What was true meanwhile, and recorded series that are not those they were given a past of."""
    prometheus = Prometheus(server.url, timeout_seconds=60.0)

    def one(query: str) -> float:
        return sum(each.value for each in prometheus.instant(query))

    lines = [
        f"  {one('count(ALERTS)'):,.0f} alerts pending or firing; "
        f"{one('avg(avg_over_time(up[2m]))'):.0%} of the scrapes succeeded; "
        f"peak memory {server.peak_bytes() / 2**30:.1f} GiB",
        f"  load of the machine {os.getloadavg()[0]:.1f}",
    ]
    for each in (each for each in past if each.recorded):
        name, wanted = each.series[0].name, len(each.series)
        if (there := one(f"count({name})")) != wanted:
            lines.append(f"  {name} HAS {there:.0f} SERIES, a past for {wanted}")
    return lines


def groups(files: Sequence[Path]) -> int:
    """How many groups the files have."""
    return sum(len(yaml.safe_load(file.read_text())["groups"]) for file in files)


def say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
