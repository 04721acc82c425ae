"""The scrape target over real sockets."""

import gzip
import socket
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from seedance_obs.errors import UsageError
from seedance_obs.exporter.server import ScrapeServer
from seedance_obs.exporter.view import LocatedGpu, NodeView, SourceState
from seedance_obs.merge import merge
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot
from seedance_obs.topology.model import Device, Kind

STATE = {"healthy": True, "ready": True}


def view() -> NodeView:
    model = "<script>alert(1)</script>"
    gpus = merge([SourceSnapshot("nvml", 0.0, gpus=(GpuReadings("GPU-a", model=model),))], {})
    return NodeView(
        node_name="node-1",
        gpus=tuple(
            LocatedGpu(gpu, Device("GPU-a", Kind.GPU), ("0", "GPU-a", "", "", "", "", ""))
            for gpu in gpus
        ),
        expected_gpus=2,
        sources={"nvml": SourceState(up=False)},
    )


@pytest.fixture
def server():
    registry = CollectorRegistry()
    Gauge("seedance_many", "Enough for gzip.", ["n"], registry=registry)
    for n in range(200):
        registry._names_to_collectors["seedance_many"].labels(str(n)).set(n)
    STATE.update(healthy=True, ready=True)
    server = ScrapeServer(
        "127.0.0.1:0",
        registry,
        view=view,
        healthy=lambda: STATE["healthy"],
        ready=lambda: STATE["ready"],
    )
    server.start()
    yield server
    server.shutdown()
    server.server_close()


def get(server: ScrapeServer, path: str, method: str = "GET", **headers: str):
    connection = HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body


def test_metrics_come_as_text_unless_openmetrics_is_asked_for(server):
    status, headers, body = get(server, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert b'seedance_many{n="7"} 7.0' in body
    accept = "application/openmetrics-text;version=1.0.0"
    _, headers, body = get(server, "/metrics", Accept=accept)
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    (family,) = text_string_to_metric_families(body.decode())
    assert len(family.samples) == 200


def test_large_pages_are_compressed_for_who_accepts_it(server):
    _, plain_headers, plain = get(server, "/metrics")
    assert "Content-Encoding" not in plain_headers
    _, headers, body = get(server, "/metrics", Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == plain


@pytest.mark.parametrize("name", ["healthy", "ready"])
def test_health_and_readiness_say_yes_or_no(server, name):
    assert get(server, f"/-/{name}")[0] == 200
    STATE[name] = False
    status, _, body = get(server, f"/-/{name}")
    assert (status, body) == (503, f"not {name}\n".encode())


def test_the_index_is_for_people_and_escapes_what_devices_say(server):
    status, headers, body = get(server, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"1 of 2 GPUs seen" in body
    assert b"<script>" not in body


def test_other_paths_are_told_what_there_is(server):
    status, _, body = get(server, "/metricz")
    assert status == 404
    assert b"/metrics" in body


def test_head_sends_no_body(server):
    status, headers, body = get(server, "/metrics", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1000


def test_a_taken_port_is_one_sentence(server):
    taken = f"127.0.0.1:{server.server_address[1]}"
    with pytest.raises(UsageError, match=f"cannot listen on {taken}: Address already in use"):
        ScrapeServer(
            taken, CollectorRegistry(), view=view, healthy=lambda: True, ready=lambda: True
        )


def test_a_client_that_leaves_in_the_middle_costs_nothing(server):
    for _ in range(20):
        with socket.create_connection(server.server_address[:2]) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
    assert get(server, "/metrics")[0] == 200
