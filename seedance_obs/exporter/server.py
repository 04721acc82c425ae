"""The scrape target: /metrics, pages in JSON, health and an index, on one small HTTP server."""

import gzip
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from seedance_obs import __version__
from seedance_obs.config import split_address
from seedance_obs.errors import UsageError
from seedance_obs.exporter.bandwidth_page import bandwidth_page, why_no_bandwidth
from seedance_obs.exporter.leaks_page import leaks_page, why_no_page
from seedance_obs.exporter.view import GPU_LABELS, NodeView

LOG = logging.getLogger(__name__)
GZIP_FROM_BYTES = 1024
REQUEST_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, content type and body; `fresh` is what no cache may keep."""

    status: int
    content_type: str
    body: bytes
    fresh: bool = False


class _Handler(BaseHTTPRequestHandler):
    """Routes GET and HEAD; everything it knows it asks of its server."""

    server: "ScrapeServer"
    protocol_version = "HTTP/1.1"
    server_version = f"seedance-obs/{__version__}"
    sys_version = ""
    timeout = REQUEST_TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Answer with a body."""
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the headers alone."""
        self._send(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        """Requests are not news."""
        LOG.debug("event=request client=%s detail=%r", self.client_address[0], format % args)

    def _send(self, *, with_body: bool) -> None:
        try:
            answer = self.server.answer(self.path, self.headers.get("Accept", ""))
        except Exception:
            LOG.exception("event=answer_failed path=%s", self.path)
            answer = _text(500, "this exporter failed to answer; its log says why\n")
        body = answer.body
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        if answer.fresh:
            self.send_header("Cache-Control", "no-store")
        accepts_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
        if accepts_gzip and len(body) >= GZIP_FROM_BYTES:
            body = gzip.compress(body, compresslevel=1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


class ScrapeServer(ThreadingHTTPServer):
    """Serves one registry.

    Raises:
        UsageError: the address cannot be listened on.
    """

    daemon_threads = True

    def __init__(
        self,
        address: str,
        registry: CollectorRegistry,
        *,
        view: Callable[[], NodeView],
        healthy: Callable[[], bool],
        ready: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        host, port = split_address(address, "server.address")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {address}: {error.strerror or error}; choose another with "
                "--server-address or stop what uses it"
            ) from error
        self._registry = registry
        self._view = view
        self._healthy = healthy
        self._ready = ready
        self._monotonic = monotonic

    @property
    def url(self) -> str:
        """Where the server listens."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}"

    def start(self) -> None:
        """Serve from a background thread."""
        threading.Thread(name="http", target=self.serve_forever, daemon=True).start()

    def answer(self, path: str, accept: str) -> Answer:
        """The response to a path; unknown paths are 404 with the known ones."""
        match path.partition("?")[0]:
            case "/metrics":
                encode, content_type = choose_encoder(accept)
                return Answer(200, content_type, encode(self._registry))
            case "/leaks":
                view, now = self._view(), self._monotonic()
                return _page(why_no_page(view), lambda: leaks_page(view, now))
            case "/bandwidth":
                view = self._view()
                return _page(why_no_bandwidth(view), lambda: bandwidth_page(view))
            case "/-/healthy":
                return _state(good=self._healthy(), name="healthy")
            case "/-/ready":
                return _state(good=self._ready(), name="ready")
            case "/":
                return Answer(200, "text/html; charset=utf-8", index_page(self._view()).encode())
        return _text(404, "not here; try /metrics, /leaks, /bandwidth, /-/healthy, /-/ready or /\n")

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is not an error of ours; anything else is."""
        del request
        gone = isinstance(sys.exc_info()[1], ConnectionError | TimeoutError)
        level = logging.DEBUG if gone else logging.ERROR
        LOG.log(level, "event=request_failed client=%s", client_address, exc_info=True)


def _state(*, good: bool, name: str) -> Answer:
    return _text(200, f"{name}\n") if good else _text(503, f"not {name}\n")


def _page(why_none: str | None, page: Callable[[], str]) -> Answer:
    if why_none is not None:
        return Answer(503, "text/plain; charset=utf-8", f"{why_none}\n".encode(), fresh=True)
    return Answer(200, "application/json", page().encode(), fresh=True)


def _text(status: int, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", text.encode())


_INDEX = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><title>Seedance GPU exporter: {node}</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }}
body {{ max-width: 56rem; margin: 2.5rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.4rem; margin: 0 }}
nav {{ display: flex; flex-wrap: wrap; gap: 0 1rem }}
div {{ overflow-x: auto }} table {{ border-collapse: collapse; margin: 1.5rem 0; width: 100% }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }}
.down {{ color: #d55e00; font-weight: 600 }} code {{ font-size: .92em }}
</style>
<h1>Seedance GPU exporter</h1>
<p>Node <b>{node}</b>, version {version}: {seen} of {expected} GPUs seen.</p>
<nav><a href="/metrics">/metrics</a><a href="/leaks">/leaks</a>
<a href="/bandwidth">/bandwidth</a>
<a href="/-/healthy">/-/healthy</a><a href="/-/ready">/-/ready</a></nav>
<table><tr><th>Source<th>State</tr>{sources}</table>
<div><table><tr><th>GPU<th>Model<th>PCI<th>NUMA<th>NVLink domain</tr>{gpus}</table></div>
</html>
"""


def index_page(view: NodeView) -> str:
    """A page for a person who opened the port in a browser."""
    sources = "".join(
        f"<tr><td>{escape(name)}<td>{'up' if state.up else '<span class=down>down</span>'}</tr>"
        for name, state in sorted(view.sources.items())
    )
    gpus = "".join(
        [_gpu_row(gpu.labels, escape(gpu.merged.model or "unknown")) for gpu in view.gpus]
        + [_gpu_row(labels, "<span class=down>missing</span>") for labels in view.missing]
    )
    return _INDEX.format(
        node=escape(view.node_name),
        version=__version__,
        seen=len(view.gpus),
        expected="?" if view.expected_gpus is None else view.expected_gpus,
        sources=sources,
        gpus=gpus,
    )


def _gpu_row(labels: tuple[str, ...], model: str) -> str:
    place = dict(zip(GPU_LABELS, map(escape, labels), strict=True))
    return (
        f"<tr><td>{place['gpu']}<td>{model}<td><code>{place['pci_bus_id']}</code>"
        f"<td>{place['numa_node']}<td>{place['nvlink_domain']}</tr>"
    )
