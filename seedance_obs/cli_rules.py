"""`seedance-obs rules check`: what is wrong with alerting and recording rules."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seedance_obs.assets import assets_folder
from seedance_obs.errors import SourceUnavailableError, UsageError

if TYPE_CHECKING:
    from seedance_obs.rules.finding import Finding


@click.group()
def rules() -> None:
    """Check Prometheus rules."""


@rules.command("check", short_help="Check the rules of a folder; say nothing where they are fine.")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--tests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with *.test.yml, which promtool runs: every alert must fire in one, and stay "
    "silent in one where a series that it selects is there. Without it no test is looked at.",
)
@click.option(
    "--known",
    multiple=True,
    metavar="NAME",
    help="A series of other exporters that the rules may use, or a pattern such as 'node_*'; "
    "repeat it for more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a list of findings as JSON.")
def rules_check(
    folder: Path | None, *, tests: Path | None, known: tuple[str, ...], as_json: bool
) -> None:
    """Check the *.rules.yml of DIR, or those that come with this package.

    Each finding is one line, FILE:LINE: RULE: what is wrong. promtool is asked first; then:

    \b
    - every series is in exporters/*.prom, recorded by a rule of DIR or --known; ours are selected
      by job="gpu" and by labels that they have
    - every seedance:threshold{of="NAME"} is set, once, to vector(NUMBER) above 0
    - rate, increase: of a counter itself, never of a gauge or what is computed; deriv, delta: of
      gauges; no alert on the value of a counter, which does not fall
    - growth of a counter that is born by its first event (increase, changes, x - x offset RANGE, a
      rate compared with a number): `or (x unless x offset RANGE) > 0` beside it, of the same RANGE
    - absent(), vector(): only joined to what says that there should be some; division: by (... > 0)
    - each branch of an alert has a comparison without bool, or selects an *_info by what it says
    - a name is there once with the same labels; labels of alerts are no templates; no topk, no
      count_values that is not joined on its label, no keep_firing_for; severity is critical,
      warning or info
    - summary and description name the device, the description the value; no label that the
      query does not leave
    - runbook.md in DIR has an entry for each alert and no other, with text under Meaning, Impact,
      Diagnosis (with a `command` or `query`) and Mitigation; the dashboard's uid exists

    Exit codes: 0 fine, and nothing printed, 1 findings, 2 usage, or DIR holds no rules,
    3 no findings, but promtool is not installed.
    """
    if importlib.util.find_spec("promql_parser") is None:
        raise UsageError("this command needs: pip install 'seedance-obs[rules]'")
    from seedance_obs.rules.check import Folders, check_rules
    from seedance_obs.rules.promtool import promtool_findings, promtool_test_findings
    from seedance_obs.rules.rule_file import rule_files
    from seedance_obs.rules.rule_tests import rule_tests

    chosen = assets_folder("alerts") if folder is None else folder
    findings = check_rules(
        Folders(chosen, assets_folder("exporters"), assets_folder("dashboards"), tests),
        foreign=known,
    )
    left_out: SourceUnavailableError | None = None
    try:
        findings = promtool_findings(rule_files(chosen)) + findings
        if tests is not None:
            findings += promtool_test_findings(rule_tests(tests))
    except SourceUnavailableError as error:
        left_out = error
    _print(findings, as_json=as_json)
    if left_out is not None:
        if not findings:
            raise left_out
        click.echo(f"seedance-obs: {left_out}", err=True)
    sys.exit(1 if findings else 0)


def _print(findings: "list[Finding]", *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"file": str(each.file), "line": each.line, "rule": each.rule, "finding": each.sentence}
            for each in findings
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    for each in findings:
        click.echo(str(each))
