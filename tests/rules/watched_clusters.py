"""A Prometheus for each cluster, one Alertmanager for all, and somebody who hears of alerts.

The time of the clusters runs `FACTOR` times as fast as that of the programs (see `faster_time`).
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

import yaml

from seedance_obs.demo.programs import Programs, find_program, free_port, wait_until
from tests.attribution.simulated_node import EPOCH_UNIX
from tests.rules.exporter_pages import Pages
from tests.rules.faster_time import Pace, write_rules
from tests.rules.fault_scenarios import PASS_S, Scenario

ALERTS = Path(__file__).parents[2] / "alerts"
FACTOR = 120
SCRAPE_S = PASS_S / FACTOR
_OPENER = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Message:
    """An alert of a notification: who was told, in which state it was, and when."""

    receiver: str
    status: str
    labels: Mapping[str, str]
    at: float
    group: str


@dataclass
class Cluster:
    """A scenario while it is watched."""

    scenario: Scenario
    pages: Mapping[str, Pages]  # by node
    url: str = ""
    served: dict[str, int] = field(default_factory=dict)
    fault_at: float = float("inf")  # when the first page after the fault was asked for
    ended: bool = False
    fired: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)  # of rules that could not be evaluated

    def page(self, node: str) -> bytes | None:
        """The next page of a node; the last one again at the end."""
        if node == "kube-state-metrics":
            return self._pending()
        number = self.served.get(node, -1) + 1
        last = len(self.pages[node]) - 1
        self.served[node] = min(number, last)
        if number * PASS_S >= self.scenario.fault_s:
            self.fault_at = min(self.fault_at, time.monotonic())
        self.ended = self.ended or number > last
        return self.pages[node][min(number, last)]

    def _pending(self) -> bytes:
        waits = time.monotonic() >= self.fault_at
        pod = 'namespace="research",pod="large-0"'
        lines = [
            f'kube_pod_container_resource_requests{{{pod},container="main",'
            f'resource="nvidia_com_gpu",unit="integer"}} {self.scenario.pending_gpus}',
            f"kube_pod_status_unschedulable{{{pod}}} 1",
        ]
        return "".join(f"{line}\n" for line in lines if waits).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.clusters = {each.scenario.name: each for each in clusters}
        self.messages: list[Message] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _, number, node, _ = self.path.split("/")
        body = list(self.server.clusters.values())[int(number)].page(node)
        if body is None:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.messages += [
            Message(
                self.path.strip("/"),
                alert["status"],
                alert["labels"],
                time.monotonic(),
                told["groupKey"],
            )
            for alert in told["alerts"]
        ]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        pass


def watch(clusters: Sequence[Cluster], folder: Path) -> list[Message]:
    """Let every cluster's time pass, and give back all that anybody was told."""
    with _serving(clusters) as server:
        programs = Programs(folder)
        try:
            _start(programs, clusters, folder, server.url)
            for cluster in sorted(clusters, key=lambda each: each.scenario.lasts_s):
                wait_until(
                    lambda cluster=cluster: cluster.ended,
                    programs,
                    seconds=60 + cluster.scenario.lasts_s / FACTOR,
                    what=f"the end of {cluster.scenario.name}",
                )
                _look_back(cluster)
        finally:
            programs.stop()
        return list(server.messages)


@contextmanager
def _serving(clusters: Sequence[Cluster]) -> Iterator[_Server]:
    server = _Server(clusters)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _start(programs: Programs, clusters: Sequence[Cluster], folder: Path, server_url: str) -> None:
    pace = Pace(FACTOR, EPOCH_UNIX - FACTOR * (time.time() + 2.0))
    write_rules(ALERTS, folder / "rules", pace)
    alertmanager = f"127.0.0.1:{free_port()}"
    routing = pace.routing((ALERTS / "alertmanager.yml").read_text(), server_url)
    (folder / "alertmanager.yml").write_text(routing)
    (folder / "seedance.tmpl").write_bytes((ALERTS / "seedance.tmpl").read_bytes())
    programs.start(
        "alertmanager",
        [
            find_program("alertmanager"),
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address={alertmanager}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ],
    )
    wait_until(
        lambda: get(f"http://{alertmanager}/-/ready") is not None,
        programs,
        seconds=30,
        what="Alertmanager's start",
    )
    for number, cluster in enumerate(clusters):
        _start_prometheus(programs, number, cluster, folder, server_url, alertmanager)


def _start_prometheus(
    programs: Programs,
    number: int,
    cluster: Cluster,
    folder: Path,
    server_url: str,
    alertmanager: str,
) -> None:
    address = f"127.0.0.1:{free_port()}"
    cluster.url = f"http://{address}"
    jobs = {"gpu": list(cluster.pages)}
    if cluster.scenario.pending_gpus:
        jobs["kube-state-metrics"] = ["kube-state-metrics"]

    def target(node: str) -> dict[str, Any]:
        labels = {
            "instance": node,
            "cluster": cluster.scenario.name,
            "__metrics_path__": f"/{number}/{node}/metrics",
        }
        return {"targets": [server_url.removeprefix("http://")], "labels": labels}

    config = folder / f"prometheus-{number}.yml"
    milliseconds = f"{round(1000 * SCRAPE_S)}ms"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {
                    "scrape_interval": milliseconds,
                    "scrape_timeout": milliseconds,
                    "evaluation_interval": milliseconds,
                    "external_labels": {"cluster": cluster.scenario.name},
                },
                "rule_files": [str(folder / "rules" / "*.rules.yml")],
                "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
                "scrape_configs": [
                    {"job_name": job, "static_configs": [target(node) for node in nodes]}
                    for job, nodes in jobs.items()
                ],
            }
        )
    )
    programs.start(
        f"prometheus-{number}",
        [
            find_program("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / f'tsdb-{number}'}",
            f"--web.listen-address={address}",
            f"--query.lookback-delta={round(300_000 / FACTOR)}ms",
            f"--rules.alert.resend-delay={milliseconds}",
            "--log.level=warn",
        ],
    )


def _look_back(cluster: Cluster) -> None:
    """What fired at any time, and what could not be evaluated."""
    fired = 'count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[1h]))'
    answer = get(f"{cluster.url}/api/v1/query?query={quote(fired)}")
    cluster.fired = {each["metric"]["alertname"] for each in answer["data"]["result"]}
    for group in get(f"{cluster.url}/api/v1/rules")["data"]["groups"]:
        cluster.faults += [
            f"{group['name']}: {rule['name']}: {rule.get('lastError')}"
            for rule in group["rules"]
            if rule["health"] != "ok"
        ]


def get(url: str) -> Any:
    """The JSON or text at an address, or None while nothing answers there."""
    try:
        with _OPENER.open(url, timeout=5.0) as response:
            body = response.read()
    except OSError:
        return None
    return json.loads(body) if body[:1] in (b"{", b"[") else body
