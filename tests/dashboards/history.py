"""A real Prometheus that holds the history of simulated fleets, and how to ask it."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seedance_obs.demo.programs import Programs, find_program, free_port, wait_until
from tests.dashboards.fleets import BEFORE_S, CLUSTERS, LASTS_S, SCRAPE_S, SELDOM_S
from tests.dashboards.remote_write import push
from tests.dashboards.rules_in_time import Rule, evaluate, read_rules
from tests.dashboards.scrapes import encoded_history

Answer = list[dict[str, Any]]
ALERTS = Path(__file__).parents[2] / "alerts"
LEAST_AGE_S = 30.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class History:
    """Answers as Prometheus gives them; times are Unix seconds, steps seconds.

    The last scrapes were at `end`, a whole minute. A node's cluster is its label `cluster`. From
    `long_start` to `start` there is little: of the cluster `one`, minute by minute.
    """

    url: str
    start: float
    end: float
    clusters: tuple[str, ...] = tuple(CLUSTERS)

    @property
    def long_start(self) -> float:
        """When the longest history of a node began."""
        return self.start - BEFORE_S

    def instant(self, expr: str, at: float | None = None) -> Answer:
        """What an expression is at a moment, the end if none is said."""
        return self.get("query", query=expr, time=self.end if at is None else at)["result"]

    def range(
        self,
        expr: str,
        start: float | None = None,
        end: float | None = None,
        step: float = SCRAPE_S,
    ) -> Answer:
        """What it is from start to end, all of the history if they are not said."""
        window = {
            "start": self.start if start is None else start,
            "end": self.end if end is None else end,
        }
        return self.get("query_range", query=expr, step=step, **window)["result"]

    def label_values(self, selector: str, label: str) -> list[str]:
        """The values of a label over the whole history."""
        window = {"start": self.start, "end": self.end}
        return self.get(f"label/{label}/values", **{"match[]": selector, **window})

    def get(self, path: str, **parameters: str | float) -> Any:
        """The data of an answer; one that is refused fails the test with Prometheus' words."""
        body = urllib.parse.urlencode(parameters)
        try:
            with _OPENER.open(f"{self.url}/api/v1/{path}?{body}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error


@contextmanager
def simulated_history(folder: Path) -> Iterator[History]:
    """The history of all clusters, in a Prometheus that runs until the context ends."""
    end = (time.time() - LEAST_AGE_S) // 60 * 60
    with empty_prometheus(folder) as url:
        history = History(url, end - LASTS_S, end)
        for encoded in encoded_history(CLUSTERS.values(), history.start):
            push(url, encoded)
        for encoded in evaluate(_shipped_rules(), partial(_over_all, history), end=end):
            push(url, encoded)
        yield history


def _shipped_rules() -> list[Rule]:
    return read_rules(sorted(ALERTS.glob("*.rules.yml")), interval_s=SCRAPE_S)


def _over_all(history: History, expr: str, step_s: float) -> Answer:
    start = history.long_start if step_s >= SELDOM_S else history.start
    return history.range(expr, start=start, step=step_s)


@contextmanager
def empty_prometheus(folder: Path) -> Iterator[str]:
    """The URL of a Prometheus that scrapes nothing and takes what is written to it."""
    (folder / "prometheus.yml").write_text("{}")
    address = f"127.0.0.1:{free_port()}"
    programs = Programs(folder)
    try:
        programs.start(
            "prometheus",
            [
                find_program("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={address}",
                "--web.enable-remote-write-receiver",
                "--storage.tsdb.min-block-duration=1d",  # half of it may be written to at any time
                "--log.level=warn",
            ],
        )
        wait_until(
            lambda: _is_ready(address), programs, seconds=60, what="Prometheus becoming ready"
        )
        yield f"http://{address}"
    finally:
        programs.stop()


def _is_ready(address: str) -> bool:
    try:
        with _OPENER.open(f"http://{address}/-/ready", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
