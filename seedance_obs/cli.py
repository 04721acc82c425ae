"""The command line: every command's flags, and the exit codes of `seedance_obs.errors`."""

import dataclasses
import importlib.util
import json
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seedance_obs import __version__
from seedance_obs.cli_bandwidth import bandwidth
from seedance_obs.cli_dashboards import dashboards
from seedance_obs.cli_leaks import leaks
from seedance_obs.cli_rules import rules
from seedance_obs.cli_topology import topology
from seedance_obs.errors import SeedanceError, UsageError


class _Group(click.Group):
    """A command group whose errors are one sentence and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what we raise into what an operator reads."""
        try:
            return super().invoke(ctx)
        except SeedanceError as error:
            click.echo(f"seedance-obs: {error}", err=True)
            sys.exit(error.exit_code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="seedance-obs")
def main() -> None:
    """Observability for GPU clusters that know where work sits.

    Exit codes: 0 fine, 1 the thing asked about is wrong, 2 usage, 3 a source is unavailable.
    """


main.add_command(topology)
main.add_command(leaks)
main.add_command(bandwidth)
main.add_command(rules)
main.add_command(dashboards)


@main.group()
def exporter() -> None:
    """Run a scrape target."""


def _node_options(command: Callable[..., None]) -> Callable[..., None]:
    from seedance_obs.config import OPTIONS
    from seedance_obs.config_reading import ENVIRONMENT_PREFIX

    for name, option in reversed(OPTIONS.items()):
        default = option.default
        shown = ";".join(default) if isinstance(default, tuple) else str(default).lower()
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            metavar="VALUE",
            help=f"{option.metadata['about']} [default: {shown or 'empty'}; "
            f"env: {ENVIRONMENT_PREFIX}{name.upper()}]",
        )(command)
    return command


@exporter.command("node")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="SEEDANCE_CONFIG",
    help="A TOML file such as exporters/node.toml; flags and environment go over it.",
)
@_node_options
def exporter_node(config_file: Path | None, **flags: str | None) -> None:
    """Serve this node's GPUs to Prometheus until SIGTERM or Ctrl-C."""
    from seedance_obs.config import OPTIONS
    from seedance_obs.config_reading import load_settings, parse_text
    from seedance_obs.exporter.run import running_exporter

    _log_to_stderr()
    given = {
        name: parse_text(name, text, f"--{name.replace('_', '-')}")
        for name, text in flags.items()
        if name in OPTIONS and text is not None
    }
    settings = load_settings(config_file, os.environ, given)
    stopping = _stop_on_signals()
    with running_exporter(settings) as server:
        logging.getLogger(__name__).info("event=listening url=%s/metrics", server.url)
        stopping.wait()


@main.command()
@click.option(
    "--source",
    type=click.Choice(["sim", "nvml"]),
    default="sim",
    show_default=True,
    help="Watch a simulated fleet of three nodes, or the GPUs of this machine.",
)
@click.option("--dcgm-url", default="", help="With --source nvml: a dcgm-exporter page to merge.")
@click.option("--once", is_flag=True, help="Check everything once, print the table and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def demo(source: str, dcgm_url: str, *, once: bool, as_json: bool) -> None:
    """Start the whole stack here: exporters, Prometheus, Alertmanager and the cost app."""
    _need_extra("dash", "web")
    from seedance_obs.demo.run import run_demo

    run_demo(source, dcgm_url=dcgm_url, once=once, as_json=as_json)


@main.command()
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
    _need_extra("dash", "web")
    from seedance_obs.web.app import serve

    serve(prometheus_url, listen, announce=click.echo)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--dcgm-url", default="", help="A dcgm-exporter page to take along.")
@click.option("--node-root", default="/", show_default=True, help="Where the host's /sys is.")
@click.option("--nvml-library", default="pynvml", show_default=True, help="See exporter node.")
@click.option(
    "--deadline-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long the driver may take before the recording is cut off.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def capture(
    folder: Path,
    dcgm_url: str,
    node_root: str,
    nvml_library: str,
    deadline_seconds: float,
    *,
    as_json: bool,
) -> None:
    """Write this machine's GPUs into FOLDER, names replaced: the way to report a bug."""
    from seedance_obs.capture import capture as write_capture
    from seedance_obs.config import NodeSettings

    settings = NodeSettings(dcgm_url=dcgm_url, node_root=node_root, nvml_library=nvml_library)
    parts = write_capture(folder, settings, deadline_seconds=deadline_seconds)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(part) for part in parts], indent=2))
        return
    for part in parts:
        click.echo(f"{'wrote' if part.written else 'left out':9} {part.name:11} {part.about}")


@main.group()
def assets() -> None:
    """The exporter contract, dashboards and alert rules that come with this package."""


@assets.command("copy")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--grafana-url", metavar="URL", help="Put before the alerts' links to dashboards.")
@click.option("--runbooks-url", metavar="URL", help="Put before their links to alerts/runbook.md.")
def assets_copy(folder: Path, grafana_url: str | None, runbooks_url: str | None) -> None:
    """Copy exporters/, dashboards/ and alerts/ into FOLDER, over what is there."""
    from seedance_obs.alert_links import link_alerts
    from seedance_obs.assets import KINDS, assets_folder

    for kind in KINDS:
        try:
            shutil.copytree(assets_folder(kind), folder / kind, dirs_exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot copy to {folder / kind}: {error}") from error
        click.echo(str(folder / kind))
    link_alerts(folder / "alerts", grafana_url=grafana_url, runbooks_url=runbooks_url)


def _need_extra(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"this command needs: pip install 'seedance-obs[{extra}]'")


def _stop_on_signals() -> threading.Event:
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def _log_to_stderr() -> None:
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s",
    )
