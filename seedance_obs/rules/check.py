"""All checks over a folder of rules; each is a function of one rule and what is known besides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.rules import (
    alert_texts,
    births,
    counters,
    division,
    identity,
    names_used,
    silence,
    thresholds,
)
from seedance_obs.rules.dashboard_links import dashboard, read_dashboards
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.rule_file import Rule, misnamed_files, read_rules, rule_files
from seedance_obs.rules.rule_tests import both_tests, read_cases, rule_tests
from seedance_obs.rules.runbook import read_runbook, runbook_entry, stray_entries
from seedance_obs.rules.series import KnownSeries, read_contract

Check = Callable[[Rule, KnownSeries], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    names_used.unknown_names,
    names_used.selectors_of_other_jobs,
    names_used.unknown_labels,
    thresholds.missing_thresholds,
    thresholds.threshold_of_any_name,
    thresholds.threshold_that_is_no_number,
    counters.wrong_functions,
    counters.lasting_alerts,
    births.unseen_births,
    silence.ungated_absence,
    silence.always_firing,
    division.unguarded_division,
    identity.changing_labels,
    identity.changing_series,
    identity.keeps_firing,
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


def check_rules(folders: Folders, *, foreign: tuple[str, ...] = ()) -> list[Finding]:
    """What is wrong with the rules of a folder, without what promtool says.

    `foreign` names series, or patterns of such names, that rules may use besides our own.

    Raises:
        UsageError: a folder does not hold what it should.
    """
    read = [read_rules(file) for file in rule_files(folders.rules)]
    rules = [rule for found, _ in read for rule in found]
    unread = [finding for _, findings in read for finding in findings]
    known = read_contract(folders.exporters, foreign).with_recorded(rules)
    findings = {*unread, *misnamed_files(folders.rules), *identity.repeated(rules)}
    findings |= {finding for rule in rules for finding in _of_rule(rule, known)}
    findings |= {*_ways_on(folders, rules, are_all=not unread)}
    if folders.tests is not None:
        findings |= {*_of_tests(folders.tests, rules, known)}
    return sorted(findings)


def _of_rule(rule: Rule, known: KnownSeries) -> Iterator[Finding]:
    try:
        for check in CHECKS:
            yield from check(rule, known)
    except RecursionError:
        yield rule.finding("it is nested too deeply: record parts of it", part="expr")


def _ways_on(folders: Folders, rules: list[Rule], *, are_all: bool) -> Iterator[Finding]:
    alerts = [rule for rule in rules if rule.alert]
    file = folders.rules / "runbook.md"
    entries = read_runbook(file)
    uids = read_dashboards(folders.dashboards)
    for alert in alerts:
        yield from runbook_entry(alert, {entry.name: entry for entry in entries})
        yield from dashboard(alert, uids)
    if are_all:
        yield from stray_entries(file, entries, alerts)


def _of_tests(folder: Path, rules: list[Rule], known: KnownSeries) -> Iterator[Finding]:
    read = [read_cases(file) for file in rule_tests(folder)]
    cases = [case for found, _ in read for case in found]
    for _, findings in read:
        yield from findings
    for rule in rules:
        if rule.alert:
            yield from both_tests(rule, cases, known)
