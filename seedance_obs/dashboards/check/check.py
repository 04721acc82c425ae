"""All rules over dashboards, and the series that they are judged by."""

from collections.abc import Iterable
from pathlib import Path

# Rules register as their modules load, in the order in which they are listed.
from seedance_obs.dashboards.check import (  # noqa: F401  imported to be registered
    data_rules,
    layout_rules,
    link_rules,
    panel_rules,
    target_rules,
    template_rules,
)
from seedance_obs.dashboards.check.exclusions import read_exclusions, without_excluded
from seedance_obs.dashboards.check.model import Dashboard
from seedance_obs.dashboards.check.rule import WANTED, Finding, findings
from seedance_obs.rules.rule_file import read_rules, rule_files
from seedance_obs.rules.series import KnownSeries, read_scrapes

__all__ = ["WANTED", "check", "known_series"]


def check(dashboards: Iterable[Dashboard], exclude: Path | None = None) -> list[Finding]:
    """What is wrong, in the order of the files, without what a file of exclusions covers."""
    found = [each for dashboard in dashboards for each in findings(dashboard)]
    return found if exclude is None else without_excluded(found, read_exclusions(exclude), exclude)


def known_series(contracts: Iterable[Path], rules: Path | None) -> KnownSeries:
    """The series in scrapes, and those that the rules of a folder record.

    Raises:
        UsageError: a file cannot be read.
    """
    files = () if rules is None else rule_files(rules)
    recorded = [rule for file in files for rule in read_rules(file)[0]]
    return read_scrapes(contracts).with_recorded(recorded)
