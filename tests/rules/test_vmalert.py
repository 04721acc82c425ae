"""The rules in VictoriaMetrics: vmalert reads them all, and alerts on what its database holds."""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest
import yaml

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


@dataclass(frozen=True)
class Database:
    """A VictoriaMetrics that runs, and what else is to run beside it."""

    address: str
    programs: Programs

    def take(self, text: str, form: str = "/prometheus") -> None:
        url = f"http://{self.address}/api/v1/import{form}"
        OPENER.open(Request(url, text.encode()), timeout=10).close()
        OPENER.open(f"http://{self.address}/internal/force_flush", timeout=10).close()

    def give(self, expression: str, begin: int, end: int) -> list[dict[str, Any]]:
        """The series of a query, with a value each minute."""
        asked = {"query": expression, "start": begin, "end": end, "step": 60, "nocache": 1}
        url = f"http://{self.address}/api/v1/query_range?{urlencode(asked)}"
        with OPENER.open(url, timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def record(self, name: str, begin: int, end: int) -> None:
        """What a recording rule would have written."""
        for series in self.give(_expression("recording", name), begin, end):
            times, values = zip(*series["values"], strict=True)
            line = {
                "metric": {**series["metric"], "__name__": name},
                "timestamps": [1000 * each for each in times],
                "values": [float(each) for each in values],
            }
            self.take(json.dumps(line), form="")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("victoria")
    started = Database(f"127.0.0.1:{free_port()}", Programs(folder))
    try:
        started.programs.start(
            "victoria-metrics",
            [
                program("victoria-metrics"),
                f"-storageDataPath={folder / 'data'}",
                f"-httpListenAddr={started.address}",
                "-retentionPeriod=1",
                "-search.latencyOffset=0s",
                "-memory.allowedBytes=128MB",
            ],
        )
        wait_until(
            lambda: _answers(f"http://{started.address}/health"),
            started.programs,
            seconds=PATIENCE_S,
            what="VictoriaMetrics's start",
        )
        yield started
    finally:
        started.programs.stop()


def test_vmalert_alerts_on_what_a_database_of_victoriametrics_holds(
    database: Database, notified: Notified
) -> None:
    """A page of a node that has lost a GPU, as it was for three minutes."""
    node = GPU_LOST.nodes[0]
    page = pages(node, FAULT_S + 2 * PASS_S)[-1]
    assert page is not None
    for minutes in (3, 2, 1, 0):
        _put(database, page, seconds_ago=60.0 * minutes)
    now = int(time.time())
    database.record("gpu:seedance_gpu_lost_time_seconds:max", now, now)
    database.programs.start(
        "vmalert",
        [
            program("vmalert"),
            f"-rule={ALERTS / 'health.rules.yml'}",
            f"-datasource.url=http://{database.address}",
            f"-remoteWrite.url=http://{database.address}",
            "-remoteWrite.flushInterval=200ms",
            f"-notifier.url=http://127.0.0.1:{notified.server_address[1]}",
            f"-httpListenAddr=127.0.0.1:{free_port()}",
            "-evaluationInterval=1s",
        ],
    )
    wait_until(
        lambda: bool(notified.alerts), database.programs, seconds=PATIENCE_S, what="an alert"
    )
    lost = [each for each in notified.alerts if each["labels"]["alertname"] == "SeedanceGpuLost"]
    assert lost, [each["labels"] for each in notified.alerts]
    assert lost[0]["labels"]["severity"] == "critical"
    assert lost[0]["labels"]["instance"] == "lost"
    assert lost[0]["labels"]["gpu_uuid"] == node.machine.gpu_uuid(1)
    assert lost[0]["annotations"]["summary"] == "GPU 1 of lost is lost"
    assert node.machine.gpu_uuid(1) in lost[0]["annotations"]["description"]


XID = 'seedance_gpu_xid_age_seconds{job="gpu",gpu_uuid="G",xid="74",class="nvlink"}'
ECC = 'seedance_gpu_ecc_errors_total{job="gpu",error="uncorrected",scope="volatile"}'
START = 'seedance_exporter_start_time_seconds{job="gpu"}'
HOUR, GAP, BIRTH = range(61), range(10, 31), 40  # in minutes


def test_neither_a_gap_nor_a_birth_makes_old_errors_new_in_victoriametrics(
    database: Database,
) -> None:
    """To MetricsQL's increase() a counter grows from zero where it is born and after a gap."""
    now = int(time.time()) // 60 * 60
    begin, new = now - 3600, now - 3600 + 60 * BIRTH
    long_ago = begin - 86400

    def put(name: str, instance: str, values: Mapping[int, object]) -> None:
        series = name.replace("{", f'{{instance="{instance}",')
        lines = (f"{series} {value} {1000 * (begin + 60 * at)}\n" for at, value in values.items())
        database.take("".join(lines))

    for instance, minutes, xid, ecc in (
        ("gap", [at for at in HOUR if at not in GAP], long_ago, 3),
        ("born", HOUR[BIRTH:], long_ago, 3),
        ("new", HOUR[BIRTH:], new, 4),
    ):
        put(XID, instance, {at: begin + 60 * at - xid for at in minutes})
        put(ECC, instance, dict.fromkeys(minutes, ecc))
        put(START, instance, dict.fromkeys(HOUR, long_ago))
    put(ECC, "new", dict.fromkeys(HOUR[:BIRTH], 3))
    database.record("gpu:seedance_gpu_xid_time_seconds:max", begin, now)
    # A range is open on the left to VictoriaMetrics: the tenth minute is not in it.
    for alert, lasts in (("SeedanceGpuXidNvlink", 10), ("SeedanceGpuEccUncorrected", 9)):
        firing = database.give(_expression("health", alert), begin, now)
        assert [each["metric"]["instance"] for each in firing] == ["new"], alert
        times = [at for at, _ in firing[0]["values"]]
        assert times == [new + 60 * minutes for minutes in range(lasts)], alert


def _expression(file: str, name: str) -> str:
    """The query of a shipped rule."""
    document = yaml.safe_load((ALERTS / f"{file}.rules.yml").read_text())
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    (found,) = (rule for rule in rules if name in (rule.get("alert"), rule.get("record")))
    return str(found["expr"])


def _put(database: Database, page: bytes, *, seconds_ago: float) -> None:
    at = round(1000 * (time.time() - seconds_ago))
    labels = "extra_label=job=gpu&extra_label=instance=lost"
    database.take(page.decode(), form=f"/prometheus?timestamp={at}&{labels}")


def _answers(url: str) -> bool:
    try:
        return bool(OPENER.open(url, timeout=5).status == 200)
    except OSError:
        return False
