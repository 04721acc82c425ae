"""The Prometheus client against a real server and against servers that misbehave."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hand_made_prometheus import Exposition

from seedance_obs.errors import SourceUnavailableError, UsageError
from seedance_obs.promql.client import Alert, Prometheus, Sample, Target

T0 = 1_762_171_200


class Canned(BaseHTTPRequestHandler):
    status = 200
    body = b""
    held_until = threading.Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.held_until.wait()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def canned() -> Iterator[Callable[..., str]]:
    """The address of a server that gives one fixed answer, or none until the test is over."""
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []
    release = threading.Event()

    def start(body: object, status: int = 200, hang: bool = False) -> str:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        held = release if hang else threading.Event()
        if not hang:
            held.set()
        handler = type("Handler", (Canned,), {"status": status, "body": raw, "held_until": held})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.handle_error = lambda *_: None  # a client that gave up is what the test is about
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    release.set()
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def prometheus(prometheus_of: Callable[[Exposition], str]) -> Prometheus:
    points = [(float(T0 + 15 * i), float(i)) for i in range(9)]
    return Prometheus(
        prometheus_of([("power", {"gpu": "0"}, points), ("power", {"gpu": "1"}, points)]), 10
    )


def success(data: object) -> dict[str, object]:
    return {"status": "success", "data": data}


def test_instant_values_carry_labels_and_time(prometheus: Prometheus) -> None:
    samples = prometheus.instant('power{gpu="1"}', at=T0 + 60)
    assert samples == [Sample({"__name__": "power", "gpu": "1"}, 4.0, T0 + 60)]


def test_a_scalar_is_one_sample_without_labels(prometheus: Prometheus) -> None:
    assert prometheus.instant("6 * 7", at=T0) == [Sample({}, 42.0, T0)]


def test_nothing_matches_is_an_empty_answer(prometheus: Prometheus) -> None:
    assert prometheus.instant("absent_metric", at=T0) == []


def test_an_expression_without_numbers_is_refused(prometheus: Prometheus) -> None:
    with pytest.raises(SourceUnavailableError, match="gives a matrix"):
        prometheus.instant("power[1m]", at=T0)


def test_a_range_has_every_step_including_both_ends(prometheus: Prometheus) -> None:
    (series,) = prometheus.range("sum(power)", T0, T0 + 120, 60)
    assert series.points == ((T0, 0.0), (T0 + 60, 8.0), (T0 + 120, 16.0))


def test_nan_is_no_sample(prometheus: Prometheus) -> None:
    assert prometheus.instant("0 * power / 0", at=T0) == []
    (series, _) = prometheus.range("(power - 2) / (power > 0)", T0, T0 + 30, 15)
    assert all(not math.isnan(value) for _, value in series.points)


def test_a_bad_query_shows_the_servers_own_words(prometheus: Prometheus) -> None:
    with pytest.raises(SourceUnavailableError, match=r"refused the query.*parse error"):
        prometheus.instant("sum by (")


def test_no_targets_and_no_alerts_without_configuration(prometheus: Prometheus) -> None:
    assert prometheus.targets() == []
    assert prometheus.alerts() == []


def test_targets_and_alerts_are_read(canned: Callable[..., str]) -> None:
    target = {"labels": {"job": "gpu"}, "health": "down", "lastError": "refused"}
    up = Prometheus(canned(success({"activeTargets": [target]})))
    assert up.targets() == [Target({"job": "gpu"}, "down", "refused")]
    alert = {"labels": {"alertname": "Hot"}, "state": "firing", "annotations": {"summary": "hot"}}
    firing = Prometheus(canned(success({"alerts": [alert]})))
    assert firing.alerts() == [Alert({"alertname": "Hot"}, {"summary": "hot"}, "firing")]


def test_a_server_that_is_down_is_a_sentence() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Canned) as server:
        port = server.server_address[1]
    with pytest.raises(SourceUnavailableError, match=r"does not answer.*refused.*is it running"):
        Prometheus(f"http://127.0.0.1:{port}").instant("up")


def test_a_slow_server_is_given_up_on(canned: Callable[..., str]) -> None:
    with pytest.raises(SourceUnavailableError, match=r"within 0\.1 s"):
        Prometheus(canned({}, hang=True), timeout_seconds=0.1).instant("up")


@pytest.mark.parametrize("status", [404, 503])
def test_an_error_page_names_its_status(canned: Callable[..., str], status: int) -> None:
    with pytest.raises(SourceUnavailableError, match=f"HTTP {status}"):
        Prometheus(canned(b"<html>no</html>", status)).instant("up")


def test_a_503_from_prometheus_itself_keeps_its_message(canned: Callable[..., str]) -> None:
    body = {"status": "error", "errorType": "timeout", "error": "query timed out"}
    with pytest.raises(SourceUnavailableError, match="query timed out"):
        Prometheus(canned(body, 503)).instant("up")


def test_another_kind_of_server_is_recognised(canned: Callable[..., str]) -> None:
    with pytest.raises(SourceUnavailableError, match="does not speak the Prometheus API"):
        Prometheus(canned([1, 2])).instant("up")


def test_a_warning_is_logged(canned: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    answer = success({"resultType": "vector", "result": []}) | {"warnings": ["one store is away"]}
    assert Prometheus(canned(answer)).instant("up") == []
    assert "one store is away" in caplog.text


def test_proxies_in_the_environment_are_ignored(
    canned: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    client = Prometheus(canned(success({"resultType": "vector", "result": []})))
    assert client.instant("up") == []


@pytest.mark.parametrize("url", ["localhost:9090", "ftp://host", "http://", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="want http://HOST:PORT"):
        Prometheus(url)
