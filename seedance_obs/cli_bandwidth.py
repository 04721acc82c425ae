"""`seedance-obs bandwidth`: who uses the shared links of a node, and whom that slows down."""

import click

from seedance_obs.cli_exporter import EXPORTER_HELP, fetch, json_text, page_address, parsed, show


@click.command()
@click.option("--exporter", "url", metavar="URL", help=EXPORTER_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print the exporter's /bandwidth page.")
@click.option("--all", "whole", is_flag=True, help="Show idle segments too.")
def bandwidth(url: str | None, *, as_json: bool, whole: bool) -> None:
    """Show the shared links and memories of this node, and the tenants on them.

    What was contended for longest comes first; segments on which nobody comes to 1 % of capacity
    are only counted. Mean, jitter (the standard deviation of the fast
    loop's ticks) and peak are in MB/s over the last seconds; sensitivity says by what share a
    tenant slows down for each unit of its neighbours' load, 0 to 1.

    Exit codes: 0 shown, 2 usage, 3 no exporter answers, or it runs no fast loop.
    """
    from seedance_obs.cli_bandwidth_table import BandwidthReport, read_page

    address = page_address(url, "/bandwidth")
    data, cleaned = parsed(fetch(address), address)
    page = read_page(cleaned)
    if as_json:
        click.echo(json_text(data))
    else:
        show(BandwidthReport(page, whole=whole))
