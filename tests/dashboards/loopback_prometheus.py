"""A real Prometheus on loopback that has scraped exporter pages and evaluated our rules."""

import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scraped_hosts import count, pages

RULES = Path(__file__).parents[2] / "alerts"
START_SECONDS = 60
SETTLED = {
    "seedance_exporter_info": len(pages()),
    "dcgm_gpu_utilization": count("seedance_gpu_utilization_ratio"),
    'ALERTS{alertstate="firing"}': count("seedance_gpu_xid_errors_total"),
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = pages()[self.path.removeprefix("/")].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_args: object) -> None:
        """Scrapes are not news."""


class Prometheus:
    """The parts of the HTTP API that Grafana's data source calls."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def instant(self, expr: str) -> list[dict[str, Any]]:
        return self.get("query", query=expr)["result"]

    def range(self, expr: str) -> list[dict[str, Any]]:
        now = time.time()
        return self.get("query_range", query=expr, start=str(now - 60), end=str(now), step="1")[
            "result"
        ]

    def label_values(self, selector: str, label: str) -> list[str]:
        return self.get(f"label/{label}/values", **{"match[]": selector})


@contextmanager
def running_prometheus(folder: Path) -> Iterator[Prometheus]:
    pages = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=pages.serve_forever)
    thread.start()
    try:
        with _prometheus(folder, pages.server_port) as prometheus:
            yield prometheus
    finally:
        pages.shutdown()
        thread.join()
        pages.server_close()


@contextmanager
def _prometheus(folder: Path, pages_port: int) -> Iterator[Prometheus]:
    config = folder / "prometheus.yml"
    config.write_text(json.dumps(_config(pages_port)))
    address = f"127.0.0.1:{_free_port()}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            prometheus = Prometheus(f"http://{address}")
            _wait(prometheus, process, folder / "log")
            yield prometheus
        finally:
            process.terminate()
            process.wait(timeout=20)


def _config(pages_port: int) -> dict[str, Any]:
    targets = [
        {
            "targets": [f"127.0.0.1:{pages_port}"],
            "labels": {"__metrics_path__": f"/{node}", "instance": node},
        }
        for node in pages()
    ]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES / "*.rules.yml")],
        "scrape_configs": [{"job_name": "gpu", "static_configs": targets}],
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(prometheus: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until every GPU went twice through every rule, or a deadline far beyond the usual 5 s."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if _is_ready(prometheus) and all(
            _twice(prometheus, series) == count for series, count in SETTLED.items()
        ):
            return
        time.sleep(0.2)
    raise AssertionError(f"Prometheus did not become ready:\n{log.read_text()[-3000:]}")


def _is_ready(prometheus: Prometheus) -> bool:
    """Whether it has begun to answer queries: until then it refuses them."""
    try:
        with urllib.request.urlopen(f"{prometheus.url}/-/ready", timeout=10):
            return True
    except OSError:
        return False


def _twice(prometheus: Prometheus, series: str) -> int:
    try:
        return len(prometheus.instant(f"count_over_time({series}[1m]) > 1"))
    except (OSError, AssertionError):  # it says that it is not ready yet
        return 0
