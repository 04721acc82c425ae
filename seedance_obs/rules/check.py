"""All checks over a folder of rules; each is a function of one rule and what is known besides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.rules import alert_texts, counters, names_used, silence, ways_on
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule, read_rules, rule_files
from seedance_obs.rules.series import KnownSeries, read_contract

Check = Callable[[Rule, KnownSeries], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    names_used.unknown_names,
    names_used.selectors_of_any_job,
    counters.wrong_functions,
    counters.unseen_births,
    silence.ungated_absence,
    silence.unguarded_division,
    alert_texts.changing_labels,
    alert_texts.severity,
    alert_texts.texts,
    alert_texts.labels_that_are_gone,
)


@dataclass(frozen=True, slots=True)
class Folders:
    """Where everything is: rules and their runbook, the contract, dashboards, tests if given."""

    rules: Path
    exporters: Path
    dashboards: Path
    tests: Path | None = None


def check_rules(folders: Folders) -> list[Finding]:
    """What is wrong with the rules of a folder, without what promtool says.

    Raises:
        UsageError: a folder does not hold what it should.
    """
    read = [read_rules(file) for file in rule_files(folders.rules)]
    rules = [rule for found, _ in read for rule in found]
    known = read_contract(folders.exporters).with_recorded(rules)
    findings = {finding for _, unread in read for finding in unread}
    findings |= {finding for check in CHECKS for rule in rules for finding in check(rule, known)}
    findings |= set(_ways_on(folders, [rule for rule in rules if rule.alert]))
    return sorted(findings)


def _ways_on(folders: Folders, alerts: list[Rule]) -> Iterator[Finding]:
    runbook = ways_on.read_runbook(folders.rules / "runbook.md")
    uids = ways_on.read_dashboards(folders.dashboards)
    outcomes = None if folders.tests is None else ways_on.read_outcomes(folders.tests)
    for alert in alerts:
        yield from ways_on.runbook_entry(alert, runbook)
        yield from ways_on.dashboard(alert, uids)
        if outcomes is not None:
            yield from ways_on.both_tests(alert, outcomes)
