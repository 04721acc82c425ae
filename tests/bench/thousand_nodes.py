"""A real Prometheus that has a large fleet: days in blocks, an hour in memory, scrapes go on.

The hour and the scrapes are pushed by remote write, since rules and dashboards read what is in
memory: blocks end where they were written and would be out of date with the first evaluation. As
text for promtool, the hour would also be tens of gigabytes. Pushing costs the server about what
scraping does, without reading text.
"""

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event, Thread

import yaml

from seedance_obs.demo.programs import Program, Programs, find_program, free_port
from seedance_obs.demo.stack import read_page
from seedance_obs.errors import SourceUnavailableError
from tests.bench.fleet_page import PageSeries, bytes_of_node
from tests.bench.fleet_past import Past, write_blocks
from tests.bench.remote_write import (
    PATIENCE_SECONDS,
    encoded_labels,
    encoded_samples,
    encoded_series,
    push,
)

SCRAPE_SECONDS = 15
RULE_SECONDS = 60  # Prometheus' default, for groups that name no interval
HOUR_SECONDS = 3600  # also the furthest back that memory takes samples
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """What every node shows, of how many nodes, and what is known of days before."""

    page: Sequence[PageSeries]
    nodes: int
    past: Sequence[Past] = ()


@dataclass(frozen=True, slots=True)
class FleetServer:
    """A running Prometheus that has the fleet and is given new samples of it."""

    url: str
    config: Path
    program: Program
    scrapes: "Scrapes"

    def load_rules(self, files: Sequence[Path]) -> None:
        """Evaluate these from now on."""
        self.config.write_text(_config([str(file.resolve()) for file in files]))
        self.program.process.send_signal(signal.SIGHUP)

    def peak_bytes(self) -> int:
        """The most memory that the server has had resident."""
        status = Path(f"/proc/{self.program.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024


class Scrapes:
    """Pushes the page of every node, spread over the interval as scrapes are, until stopped."""

    def __init__(self, fleet: Fleet, address: str, begin_seconds: int) -> None:
        self._fleet = fleet
        self._address = address
        self._begin = begin_seconds
        self._last = begin_seconds - SCRAPE_SECONDS
        self._random = Random(2)
        self._labels = [
            encoded_labels({"__name__": each.name, **each.labels}) for each in fleet.page
        ]
        self._ended = Event()
        self._thread = Thread(target=self._push_on, daemon=True)
        self.late_seconds = 0.0  # the most that a round took longer than its interval
        self.failure: Exception | None = None

    def start(self) -> None:
        """Catch up to this moment as fast as the server takes it, then go on in the background."""
        connection = HTTPConnection(self._address, timeout=PATIENCE_SECONDS)
        while (end := self._due()) > self._last:
            self._push(connection, min(end, self._last + HOUR_SECONDS), pause_seconds=0)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident:
            self._thread.join()

    def _due(self) -> int:
        return int(time.time()) // SCRAPE_SECONDS * SCRAPE_SECONDS

    def _push_on(self) -> None:
        connection = HTTPConnection(self._address, timeout=PATIENCE_SECONDS)
        try:
            while not self._ended.wait(max(0.0, self._last + SCRAPE_SECONDS - time.time())):
                begun = time.monotonic()
                pause = SCRAPE_SECONDS / self._fleet.nodes * 0.9
                self._push(connection, self._due(), pause_seconds=pause)
                late = time.monotonic() - begun - SCRAPE_SECONDS
                self.late_seconds = max(self.late_seconds, late)
        except (OSError, SourceUnavailableError) as error:
            self.failure = error

    def _push(self, connection: HTTPConnection, end: int, *, pause_seconds: float) -> None:
        """Every sample after the last one pushed, up to a moment."""
        page = self._encoded(range(self._last + SCRAPE_SECONDS, end + 1, SCRAPE_SECONDS))
        begun = time.monotonic()
        for number in range(self._fleet.nodes):
            wait = begun + number * pause_seconds - time.monotonic()
            if pause_seconds and self._ended.wait(max(0.0, wait)):
                return
            push(connection, bytes_of_node(page, number))
        self._last = end

    def _encoded(self, stamps: range) -> bytes:
        seconds = [at - self._begin for at in stamps]
        return b"".join(
            encoded_series(
                labels,
                encoded_samples(
                    zip(
                        (at * 1000 for at in stamps),
                        series.values(seconds, self._random),
                        strict=True,
                    )
                ),
            )
            for labels, series in zip(self._labels, self._fleet.page, strict=True)
        )


@contextlib.contextmanager
def fleet_server(fleet: Fleet) -> Iterator[FleetServer]:
    """Start one with the fleet's past in it; everything is gone at the end, the disk's part too.

    Raises:
        SourceUnavailableError: Prometheus is not installed, does not start, or takes no samples.
    """
    begin = int(time.time()) // RULE_SECONDS * RULE_SECONDS - HOUR_SECONDS
    with TemporaryDirectory(prefix="fleet-") as name:
        folder, programs = Path(name), Programs(Path(name))
        write_blocks(fleet.past, folder, begin, HOUR_SECONDS)
        address = f"127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text(_config([]))
        scrapes = Scrapes(fleet, address, begin)
        try:
            program = programs.start("prometheus", _command(folder, config, address))
            _wait_until_ready(f"http://{address}", program)
            _push_recorded(fleet.past, address, begin)
            scrapes.start()
            yield FleetServer(f"http://{address}", config, program, scrapes)
        finally:
            scrapes.stop()
            programs.stop()


def _push_recorded(past: Sequence[Past], address: str, begin: int) -> None:
    """What rules would have recorded in the hour before they are loaded."""
    connection = HTTPConnection(address, timeout=PATIENCE_SECONDS)
    random = Random(3)
    for each in (each for each in past if each.recorded):
        stamps = range(begin, begin + HOUR_SECONDS, each.step_seconds)
        request = b"".join(
            encoded_series(
                encoded_labels({"__name__": series.name, **series.labels}),
                encoded_samples(
                    zip((at * 1000 for at in stamps), series.values(stamps, random), strict=True)
                ),
            )
            for series in each.series
        )
        push(connection, request)


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


def _config(rule_files: Sequence[str]) -> str:
    return yaml.safe_dump(
        {
            "global": {
                "scrape_interval": f"{SCRAPE_SECONDS}s",
                "evaluation_interval": f"{RULE_SECONDS}s",
            },
            "rule_files": list(rule_files),
        }
    )
