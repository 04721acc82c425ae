"""The threads that keep a node's view fresh, so that no scrape ever waits for a source."""

import threading
import time
from collections.abc import Callable, Iterator

from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.node import Node

STOP_PATIENCE_SECONDS = 3.0
REFRESH_SECONDS = 5.0


class Sampler:
    """Polls each source at its own interval and assembles the view at the node's.

    The first view is assembled once every source has answered or failed, or after a
    while: a first view without the driver would name every series anew when the driver comes.
    """

    def __init__(
        self,
        node: Node,
        *,
        interval_seconds: float,
        source_intervals: dict[str, float],
        probe_seconds: float,
        fast_seconds: float | None = None,
        first_view_patience_seconds: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._interval_seconds = interval_seconds
        self._source_intervals = source_intervals
        self._probe_seconds = probe_seconds
        self._fast_seconds = fast_seconds
        self._first_view_patience_seconds = first_view_patience_seconds
        self._monotonic = monotonic
        self._faults = Faults()
        self._stopping = threading.Event()
        self._asked = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._started_at = monotonic()
        self._assembled_at: float | None = None

    def start(self) -> None:
        """Start a thread for each source, to assemble, for what may block, to probe, to be fast."""
        for name in self._node.sources:
            self._spawn(f"poll-{name}", self._poll_forever, name)
        self._spawn("assemble", self._assemble_forever)
        self._spawn("refresh", self._refresh_forever)
        self._spawn("probe", self._probe_forever)
        if self._fast_seconds is not None:
            self._spawn("fast", self._read_fast_forever, self._fast_seconds)

    def stop(self) -> None:
        """Stop all threads and let the sources go; a hung driver does not hold this up."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=STOP_PATIENCE_SECONDS)
        self._node.close()

    @property
    def ready(self) -> bool:
        """Whether a first view has been assembled."""
        return self._assembled_at is not None

    @property
    def healthy(self) -> bool:
        """Whether views are still being assembled, whatever the sources do."""
        last = self._started_at if self._assembled_at is None else self._assembled_at
        patience = self._first_view_patience_seconds + 10 * self._interval_seconds
        return self._monotonic() - last < patience

    def _spawn(self, name: str, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(name=name, target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _poll_forever(self, name: str) -> None:
        first = True
        for _ in self._ticks(self._source_intervals[name]):
            with self._faults.kept_to(f"polling {name}"):
                self._node.poll(name)
            if first:
                self._asked.release()
                first = False
        # Here, since a child process that this thread started is killed when the thread ends.
        self._node.sources[name].close()

    def _assemble_forever(self) -> None:
        patience = self._monotonic() + self._first_view_patience_seconds
        for _ in self._node.sources:
            self._asked.acquire(timeout=max(0.0, patience - self._monotonic()))
        for _ in self._ticks(self._interval_seconds):
            with self._faults.kept_to("assembling"):
                self._node.assemble()
                self._assembled_at = self._monotonic()

    def _refresh_forever(self) -> None:
        for _ in self._ticks(REFRESH_SECONDS):
            with self._faults.kept_to("refreshing"):
                self._node.refresh()

    def _probe_forever(self) -> None:
        for _ in self._ticks(self._probe_seconds):
            with self._faults.kept_to("probing for leaks"):
                self._node.probe()

    def _read_fast_forever(self, interval_seconds: float) -> None:
        for _ in self._ticks(interval_seconds):
            with self._faults.kept_to("the fast loop"):
                self._node.read_fast()

    def _ticks(self, interval_seconds: float) -> Iterator[None]:
        due = self._monotonic()
        while not self._stopping.is_set():
            yield
            due = max(due + interval_seconds, self._monotonic())
            self._stopping.wait(due - self._monotonic())
