"""The rules in VictoriaMetrics: vmalert reads them all, and alerts on what its database holds."""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from seedance_obs.demo.programs import Programs, free_port, wait_until
from tests.rules.exporter_pages import pages
from tests.rules.fault_scenarios import FAULT_S, GPU_LOST, PASS_S

ALERTS = Path(__file__).parents[2] / "alerts"
OPENER = build_opener(ProxyHandler({}))
PATIENCE_S = 60.0


def program(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is not installed: on Debian or Ubuntu, apt-get install victoria-metrics"
    return path


@pytest.mark.parametrize("file", sorted(ALERTS.glob("*.rules.yml")), ids=lambda file: file.name)
def test_vmalert_takes_the_rules(file: Path) -> None:
    done = subprocess.run(
        [program("vmalert"), "-dryRun", f"-rule={file}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Notified(ThreadingHTTPServer):
    """Takes alerts as Alertmanager does."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.alerts: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Notified

    def do_POST(self) -> None:
        self.server.alerts += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        pass


@pytest.fixture
def notified() -> Iterator[Notified]:
    server = Notified()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_vmalert_alerts_on_what_a_database_of_victoriametrics_holds(
    tmp_path: Path, notified: Notified
) -> None:
    """A page of a node that has lost a GPU, as it was for three minutes."""
    node = GPU_LOST.nodes[0]
    page = pages(node, FAULT_S + 2 * PASS_S)[-1]
    assert page is not None
    database, vmalert = (f"127.0.0.1:{free_port()}" for _ in range(2))
    programs = Programs(tmp_path)
    try:
        programs.start(
            "victoria-metrics",
            [
                program("victoria-metrics"),
                f"-storageDataPath={tmp_path / 'data'}",
                f"-httpListenAddr={database}",
                "-retentionPeriod=1",
                "-search.latencyOffset=0s",
                "-memory.allowedBytes=128MB",
            ],
        )
        wait_until(
            lambda: _answers(f"http://{database}/health"),
            programs,
            seconds=PATIENCE_S,
            what="VictoriaMetrics's start",
        )
        for minutes in (3, 2, 1, 0):
            _put(database, page, seconds_ago=60.0 * minutes)
        programs.start(
            "vmalert",
            [
                program("vmalert"),
                f"-rule={ALERTS / 'health.rules.yml'}",
                f"-datasource.url=http://{database}",
                f"-remoteWrite.url=http://{database}",
                "-remoteWrite.flushInterval=200ms",
                f"-notifier.url=http://127.0.0.1:{notified.server_address[1]}",
                f"-httpListenAddr={vmalert}",
                "-evaluationInterval=1s",
            ],
        )
        wait_until(lambda: bool(notified.alerts), programs, seconds=PATIENCE_S, what="an alert")
    finally:
        programs.stop()
    lost = [each for each in notified.alerts if each["labels"]["alertname"] == "SeedanceGpuLost"]
    assert lost, [each["labels"] for each in notified.alerts]
    assert lost[0]["labels"]["severity"] == "critical"
    assert lost[0]["labels"]["instance"] == "lost"
    assert lost[0]["labels"]["gpu_uuid"] == node.machine.gpu_uuid(1)
    assert node.machine.gpu_uuid(1) in lost[0]["annotations"]["summary"]


def _put(database: str, page: bytes, *, seconds_ago: float) -> None:
    at = round(1000 * (time.time() - seconds_ago))
    labels = "extra_label=job=gpu&extra_label=instance=lost"
    url = f"http://{database}/api/v1/import/prometheus?timestamp={at}&{labels}"
    OPENER.open(Request(url, page), timeout=10).close()


def _answers(url: str) -> bool:
    try:
        return bool(OPENER.open(url, timeout=5).status == 200)
    except OSError:
        return False
