"""The pages of a fleet's nodes as targets: one small server, a path for each node."""

import contextlib
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Lock, Thread
from typing import Any

from tests.bench.fleet_page import TARGET, EncodedPages, Fleet, PageSeries, labels_of_node


class Pages:
    """What nodes show at this moment; values are new once in a scrape interval."""

    def __init__(self, fleet: Fleet, begin_seconds: int) -> None:
        self._fleet = fleet
        self._begin = begin_seconds
        self._random = Random(4)
        self._lock = Lock()
        self._round = 0
        self._pages = EncodedPages(b"", b"")

    def of_node(self, number: int) -> bytes:
        """The page of one node."""
        with self._lock:
            now = int(time.time() / self._fleet.scrape_seconds)
            if now > self._round:
                self._round, self._pages = now, self._fleet.pages(self._line)
            pages = self._pages
        return pages.of_node(number)

    def _line(self, series: PageSeries) -> bytes:
        if series.name == "up":  # which Prometheus writes
            return b""
        since = [self._round * self._fleet.scrape_seconds - self._begin]
        (value,) = series.values(since, self._random)
        labels = ",".join(f'{name}="{value}"' for name, value in series.labels.items())
        return f"{series.name}{{{labels}}} {value!r}\n".encode()


def scrape_config(fleet: Fleet, address: str) -> dict[str, Any]:
    """A job with every node; pages carry the labels of their targets, and of other targets."""
    return {
        "job_name": TARGET["job"],
        "honor_labels": True,
        "static_configs": [
            {
                "targets": [address],
                "labels": {
                    "__metrics_path__": f"/{number}",
                    **{n: v for n, v in labels_of_node(TARGET, number).items() if n != "job"},
                },
            }
            for number in range(fleet.nodes)
        ],
    }


@contextlib.contextmanager
def served(pages: Pages) -> Iterator[str]:
    """Serve them on loopback; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.of_node(int(self.path.strip("/")))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing of each scrape."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
