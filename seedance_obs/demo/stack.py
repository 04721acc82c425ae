"""One stack: exporters, a real Prometheus, a real Alertmanager and the cost app, on loopback."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import yaml

from seedance_obs.assets import assets_folder
from seedance_obs.demo.programs import Programs, find_program, free_port
from seedance_obs.processes import python_command

SCRAPE_INTERVAL_SECONDS = 2
START_PATIENCE_SECONDS = 45.0
_OPENER = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Target:
    """A node exporter to start: the node's name and the flags that point it at its sources."""

    node: str
    flags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack: where everything listens, and the programs behind it."""

    programs: Programs
    exporters: Mapping[str, str]  # node to URL
    prometheus_url: str
    alertmanager_url: str
    web_url: str


@contextlib.contextmanager
def running_stack(targets: Sequence[Target], folder: Path) -> Iterator[Stack]:
    """Start everything and stop it at the end, whatever happens in between.

    Raises:
        SourceUnavailableError: Prometheus or Alertmanager is not installed.
    """
    prometheus, alertmanager = find_program("prometheus"), find_program("alertmanager")
    programs = Programs(folder)
    exporters = {target.node: f"127.0.0.1:{free_port()}" for target in targets}
    prometheus_at, alertmanager_at = (f"127.0.0.1:{free_port()}" for _ in range(2))
    web_at = f"127.0.0.1:{free_port()}"
    config = folder / "prometheus.yml"
    config.write_text(_prometheus_config(exporters, alertmanager_at), encoding="utf-8")
    try:
        for target in targets:
            _start_exporter(programs, target, exporters[target.node])
        programs.start("prometheus", _prometheus(prometheus, config, folder, prometheus_at))
        programs.start("alertmanager", _alertmanager(alertmanager, folder, alertmanager_at))
        programs.start(
            "web",
            python_command(
                "seedance_obs",
                "web",
                f"--prometheus-url=http://{prometheus_at}",
                f"--listen={web_at}",
            ),
        )
        yield Stack(
            programs=programs,
            exporters={node: f"http://{address}" for node, address in exporters.items()},
            prometheus_url=f"http://{prometheus_at}",
            alertmanager_url=f"http://{alertmanager_at}",
            web_url=f"http://{web_at}",
        )
    finally:
        programs.stop()


def read_page(url: str, *, timeout_seconds: float = 5.0) -> bytes | None:
    """A page of the stack, or None while it does not answer with 200."""
    try:
        with _OPENER.open(url, timeout=timeout_seconds) as response:
            return response.read() if response.status == HTTPStatus.OK else None
    except (URLError, OSError):
        return None


def _start_exporter(programs: Programs, target: Target, address: str) -> None:
    flags = {"server-address": address, "node-name": target.node, **target.flags}
    programs.start(
        f"exporter-{target.node}",
        python_command(
            "seedance_obs",
            "exporter",
            "node",
            *(f"--{name}={value}" for name, value in flags.items()),
        ),
    )


def _prometheus(program: str, config: Path, folder: Path, address: str) -> list[str]:
    return [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]


def _alertmanager(program: str, folder: Path, address: str) -> list[str]:
    return [
        program,
        f"--config.file={assets_folder('alerts') / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]


def _prometheus_config(exporters: Mapping[str, str], alertmanager: str) -> str:
    interval = f"{SCRAPE_INTERVAL_SECONDS}s"
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            "rule_files": [str(assets_folder("alerts") / "*.rules.yml")],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
            "scrape_configs": [
                {
                    "job_name": "gpu",
                    "static_configs": [
                        {"targets": [address], "labels": {"instance": node}}
                        for node, address in exporters.items()
                    ],
                }
            ],
        },
        sort_keys=False,
    )
