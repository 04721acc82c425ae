"""A real Prometheus that has a large fleet: days in blocks, an hour in memory, scrapes go on.

The hour is pushed by remote write, since rules and dashboards read what is in memory; blocks would
be out of date with the first evaluation, and as text for promtool the hour is tens of gigabytes.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from seedance_obs.demo.programs import Program, Programs, find_program, free_port
from seedance_obs.demo.stack import read_page
from seedance_obs.errors import SourceUnavailableError
from tests.bench.fleet_page import Fleet, PageSeries
from tests.bench.fleet_pages import Pages, scrape_config, served
from tests.bench.fleet_past import Past, write_blocks
from tests.bench.remote_write import (
    PATIENCE_SECONDS,
    encoded_labels,
    encoded_samples,
    encoded_series,
    push,
)

RULE_SECONDS = 60  # Prometheus' default, for groups that name no interval
HOUR_SECONDS = 3600  # also the furthest back that memory takes samples
START_SECONDS = 60.0
GAP_SECONDS = 120  # that may be between what is pushed and what is scraped


@dataclass(frozen=True, slots=True)
class FleetServer:
    """A running Prometheus that scrapes the fleet and knows its past."""

    url: str
    config: Path
    settings: dict[str, Any]
    program: Program

    def load_rules(self, files: Sequence[Path]) -> None:
        """Evaluate these from now on."""
        rules = [str(file.resolve()) for file in files]
        self.config.write_text(yaml.safe_dump({**self.settings, "rule_files": rules}))
        self.program.process.send_signal(signal.SIGHUP)

    def cpu_seconds(self) -> float:
        """CPU time of the server so far, user and system."""
        fields = Path(f"/proc/{self.program.process.pid}/stat").read_text().rpartition(")")[2]
        return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def peak_bytes(self) -> int:
        """The most memory that the server has had resident."""
        status = Path(f"/proc/{self.program.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024


@contextlib.contextmanager
def fleet_server(fleet: Fleet, past: Sequence[Past] = ()) -> Iterator[FleetServer]:
    """Start one with an hour of the fleet, and more where there is a past, and let it scrape on.

    Everything is gone at the end, what is on the disk too.

    Raises:
        SourceUnavailableError: Prometheus is not installed, does not start, or takes no samples.
    """
    begin = int(time.time()) // RULE_SECONDS * RULE_SECONDS - HOUR_SECONDS
    with TemporaryDirectory(prefix="fleet-") as name, served(Pages(fleet, begin)) as pages:
        folder, programs = Path(name), Programs(Path(name))
        write_blocks(past, folder, begin, HOUR_SECONDS)
        address = f"127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text("")
        try:
            program = programs.start("prometheus", _command(folder, config, address))
            _wait_until_ready(f"http://{address}", program)
            connection = HTTPConnection(address, timeout=PATIENCE_SECONDS)
            _push_recorded(connection, past, begin)
            _push_hour(connection, fleet, begin)
            server = FleetServer(f"http://{address}", config, _settings(fleet, pages), program)
            server.load_rules([])
            yield server
        finally:
            programs.stop()


def _push_hour(connection: HTTPConnection, fleet: Fleet, begin: int) -> None:
    """Every scrape since the beginning, up to now or nearly so."""
    step = fleet.scrape_seconds
    random, origin = Random(2), begin
    while begin < time.time() - GAP_SECONDS:
        end = min(int(time.time()), begin + HOUR_SECONDS)
        stamps = range(begin, end, step)
        pages = fleet.pages(partial(_encoded, stamps=stamps, random=random, origin=origin))
        for number in range(fleet.nodes):
            push(connection, pages.of_node(number))
        begin = stamps[-1] + step


def _push_recorded(connection: HTTPConnection, past: Sequence[Past], begin: int) -> None:
    """What rules would have recorded in the hour before they are loaded."""
    random = Random(3)
    for each in (each for each in past if each.recorded):
        stamps = range(begin, begin + HOUR_SECONDS, each.step_seconds)
        push(
            connection, b"".join(_encoded(series, stamps, random, begin) for series in each.series)
        )


def _encoded(series: PageSeries, stamps: range, random: Random, origin: int) -> bytes:
    values = series.values([at - origin for at in stamps], random)
    milliseconds = (at * 1000 for at in stamps)
    return encoded_series(
        encoded_labels({"__name__": series.name, **series.labels}),
        encoded_samples(zip(milliseconds, values, strict=True)),
    )


def _wait_until_ready(url: str, program: Program) -> None:
    deadline = time.monotonic() + START_SECONDS
    while read_page(f"{url}/-/ready") is None:
        if program.process.poll() is not None or time.monotonic() > deadline:
            raise SourceUnavailableError(f"Prometheus does not start: {program.last_words()}")
        time.sleep(0.2)


def _command(folder: Path, config: Path, address: str) -> list[str]:
    return [
        find_program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
        "--web.enable-remote-write-receiver",
        "--log.level=warn",
    ]


def _settings(fleet: Fleet, pages: str) -> dict[str, Any]:
    return {
        "global": {
            "scrape_interval": f"{fleet.scrape_seconds}s",
            "evaluation_interval": f"{RULE_SECONDS}s",
        },
        "scrape_configs": [scrape_config(fleet, pages)],
    }
