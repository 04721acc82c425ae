"""The command line: every command's flags, and the exit codes of `seedance_obs.errors`."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seedance_obs import __version__
from seedance_obs.errors import SeedanceError


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


@main.group()
def exporter() -> None:
    """Run a scrape target."""


def _node_options(command: Callable[..., None]) -> Callable[..., None]:
    from seedance_obs.config import ENVIRONMENT_PREFIX, OPTIONS

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
    from seedance_obs.config import OPTIONS, load_settings, parse_text
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
