"""`seedance-obs web`: the cost app over a Prometheus."""

import click

from seedance_obs.promql.client import Prometheus
from seedance_obs.web.app import open_server


@click.command()
@click.option(
    "--prometheus-url",
    default="http://127.0.0.1:9090",
    show_default=True,
    help="Where Prometheus, or what speaks its API, answers.",
)
@click.option(
    "--listen",
    default="127.0.0.1:8050",
    show_default=True,
    metavar="HOST:PORT",
    help="Where the app listens; port 0 takes a free one.",
)
def web(prometheus_url: str, listen: str) -> None:
    """Serve the cost app: GPU-hours and energy by tenant over a chosen window."""
    server = open_server(Prometheus(prometheus_url), listen)
    try:
        click.echo(f"cost app at http://{server.effective_host}:{server.effective_port}/")
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
