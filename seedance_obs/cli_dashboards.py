"""`seedance-obs dashboards`: Grafana dashboards for this site's names."""

import importlib.util
from pathlib import Path

import click

from seedance_obs.errors import UsageError


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
