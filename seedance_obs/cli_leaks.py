"""`seedance-obs leaks`: what the exporter of a node suspects, for who is on call."""

import sys

import click

from seedance_obs.cli_exporter import EXPORTER_HELP, fetch, json_text, page_address, parsed, show
from seedance_obs.leaks.suspect import INFORMATIONAL, KINDS


@click.command()
@click.option("--exporter", "url", metavar="URL", help=EXPORTER_HELP)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(list(KINDS)),
    multiple=True,
    metavar="KIND",
    help="Only suspects of this kind, and all of them; may be given again. Kinds: "
    f"{', '.join(KINDS)}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the exporter's /leaks page.")
def leaks(url: str | None, *, kinds: tuple[str, ...], as_json: bool) -> None:
    """Show what the leak probes of this node see now.

    Each suspect comes with what it is, whose, the processes from the first of its container, job
    or session down to it, and the numbers that say so; the worst kind comes first, what is for
    information only comes last.

    Exit codes: 0 no suspects (sparse_residency is for information only), 1 suspects, 2 usage, 3 no
    exporter answers, or it probes nothing.
    """
    from seedance_obs.leaks.report.page import read_page

    address = page_address(url, "/leaks")
    data, cleaned = parsed(fetch(address), address)
    page = read_page(cleaned)
    if as_json:
        if kinds:
            data["suspects"] = [one for one in data["suspects"] if one["kind"] in kinds]
        click.echo(json_text(data))
    else:
        from seedance_obs.leaks.report.drawing import LeakReport

        show(LeakReport(page, kinds))
    found = {suspect.kind for suspect in page.of_kinds(kinds)}
    sys.exit(1 if found - INFORMATIONAL else 0)
