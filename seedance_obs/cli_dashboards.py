"""`seedance-obs dashboards`: Grafana dashboards for this site's names."""

import dataclasses
import importlib.util
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seedance_obs.assets import assets_folder
from seedance_obs.errors import UsageError

if TYPE_CHECKING:
    from seedance_obs.dashboards.check.rule import Finding

OUR_EXCLUSIONS = "lint.toml"


@click.group()
def dashboards() -> None:
    """Build Grafana dashboards, and check those of anybody."""


@dashboards.command("build", short_help="Write the dashboards as JSON that Grafana 11 loads.")
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to write; the folder is made, files of the same names are replaced.",
)
@click.option(
    "--datasource",
    default="",
    metavar="NAME",
    help="The Prometheus data source that is chosen at first; without it, Grafana's default one.",
)
@click.option("--job", default="gpu", show_default=True, help="The scrape job of node exporters.")
@click.option(
    "--cluster-label",
    default="cluster",
    show_default=True,
    metavar="LABEL",
    help="The label that tells clusters apart; rules have to keep it too.",
)
@click.option(
    "--matcher",
    "matchers",
    multiple=True,
    metavar="MATCHER",
    help="""Add environment="prod" or the like to every query; may be repeated. Recorded series
    must carry the label too, as external labels do.""",
)
@click.option(
    "--scrape-interval",
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="The longest interval in which nodes are scraped: no rate looks at less than four.",
)
def dashboards_build(
    folder: Path,
    *,
    datasource: str,
    job: str,
    cluster_label: str,
    matchers: tuple[str, ...],
    scrape_interval: str,
) -> None:
    """Write the dashboards as JSON that Grafana 11 and newer load.

    Without options they are the files that come with this package.
    """
    if importlib.util.find_spec("grafanalib") is None:
        raise UsageError("this command needs: pip install 'seedance-obs[dashboards]'")
    from seedance_obs.dashboards.build import write_dashboards
    from seedance_obs.dashboards.options import Options

    options = Options(datasource, job, cluster_label, matchers, scrape_interval)
    try:
        written = write_dashboards(folder, options)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}") from error
    for path in written:
        click.echo(path)


@dashboards.command("check", short_help="Check dashboards; say nothing where they are fine.")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print a list of findings as JSON.")
@click.option(
    "--exclude",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="""TOML ([[exclude]]) or YAML (exclude: [...]): rule and reason, and where it is not meant
    everywhere, dashboard (title or uid), panel (title or id), target (refId).""",
)
@click.option(
    "--contract",
    "contracts",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="""A scrape: then every series in a query has to be in one. Without it, those of this
    package's exporters and rules are judged alone. May be repeated.""",
)
@click.option(
    "--rules",
    "rules_folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder of *.rules.yml that record what queries use, instead of this package's.",
)
@click.option("--list", "as_list", is_flag=True, help="Print the rules and what each wants.")
def dashboards_check(
    files: tuple[str, ...],
    *,
    as_json: bool,
    exclude: Path | None,
    contracts: tuple[Path, ...],
    rules_folder: Path | None,
    as_list: bool,
) -> None:
    """Check the dashboards of each FILE, folder or - for standard input.

    Without FILE, the ones that come with this package are checked, with their exclusions.
    The rules are those of grafana/dashboard-linter, and more.

    Exit codes: 0 fine, and nothing printed, 1 findings, 2 usage, or a file is no dashboard in
    Grafana's classic JSON.
    """
    if importlib.util.find_spec("promql_parser") is None:
        raise UsageError("this command needs: pip install 'seedance-obs[dashboards]'")
    from seedance_obs.dashboards.check.check import WANTED, check, known_series
    from seedance_obs.dashboards.check.files import read_dashboards

    if as_list:
        for rule, wants in WANTED.items():
            click.echo(f"{rule:38}{wants}")
        return
    if not files:
        ours = assets_folder("dashboards")
        files, exclude = (str(ours),), exclude or ours / OUR_EXCLUSIONS
    known = known_series(
        contracts or sorted(assets_folder("exporters").glob("*.prom")),
        assets_folder("alerts") if rules_folder is None else rules_folder,
    )
    read = read_dashboards(files, known=known, all_names=bool(contracts))
    findings = check(read, exclude)
    _print(findings, as_json=as_json)
    sys.exit(1 if findings else 0)


def _print(findings: "Iterable[Finding]", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(each) for each in findings], indent=2))
        return
    for each in findings:
        click.echo(str(each))
