"""A real Alertmanager with the shipped routing, and somebody who hears what it tells.

Its waits are divided by `PACE`, as in `faster_time`: a quarter of an hour is a second and a half.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from seedance_obs.demo.programs import Programs, find_program, free_port, wait_until
from tests.rules.faster_time import Pace

ALERTS = Path(__file__).parents[2] / "alerts"
PACE = Pace(600)
_OPENER = build_opener(ProxyHandler({}))


@dataclass
class Alertmanager:
    """Where it listens, and the notifications that it has sent, each with its receiver."""

    url: str
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def push(self, cluster: str, *alerts: str, over: bool = False) -> None:
        """Let alerts, written as `name=value name=value`, begin in a cluster, or end."""
        ends = datetime.now(UTC) + timedelta(hours=0 if over else 1)
        body = [
            {"labels": labels_of(each) | {"cluster": cluster}, "endsAt": ends.isoformat()}
            for each in alerts
        ]
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.url}/api/v2/alerts", json.dumps(body).encode(), headers)
        _OPENER.open(request, timeout=5).close()

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts that have not ended, each with what inhibits it."""
        with _OPENER.open(f"{self.url}/api/v2/alerts", timeout=5) as response:
            return list(json.load(response))

    def told_of(self, cluster: str, receiver: str) -> list[dict[str, Any]]:
        """What a receiver was told of a cluster, oldest first."""
        return [
            each
            for name, each in list(self.told)
            if name == receiver and each["commonLabels"].get("cluster") == cluster
        ]

    def wait_for(
        self, cluster: str, receiver: str, wanted: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """The first message of that kind to a receiver about a cluster."""
        for _ in range(100):
            for message in self.told_of(cluster, receiver):
                if wanted(message):
                    return message
            time.sleep(0.1)
        raise AssertionError(f"{receiver} was told {self.told_of(cluster, receiver)}")


def labels_of(text: str) -> dict[str, str]:
    """The labels that `name=value name=value` says."""
    return dict(pair.split("=", 1) for pair in text.split())


@contextmanager
def running_alertmanager(folder: Path) -> Iterator[Alertmanager]:
    """Alertmanager as shipped, but for its pace and for where its receivers are."""
    alertmanager = Alertmanager(f"http://127.0.0.1:{free_port()}")
    programs = Programs(folder)
    with _receivers(alertmanager.told) as receivers_at:
        config = folder / "alertmanager.yml"
        config.write_text(PACE.routing((ALERTS / "alertmanager.yml").read_text(), receivers_at))
        (folder / "seedance.tmpl").write_bytes((ALERTS / "seedance.tmpl").read_bytes())
        try:
            programs.start(
                "alertmanager",
                [
                    find_program("alertmanager"),
                    f"--config.file={config}",
                    f"--storage.path={folder}",
                    f"--web.listen-address={alertmanager.url.removeprefix('http://')}",
                    "--cluster.listen-address=",
                ],
            )
            ready = f"{alertmanager.url}/-/ready"
            wait_until(lambda: _answers(ready), programs, seconds=30, what="Alertmanager's start")
            yield alertmanager
        finally:
            programs.stop()


def _answers(url: str) -> bool:
    try:
        with _OPENER.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@contextmanager
def _receivers(told: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.append((self.path.strip("/"), json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
