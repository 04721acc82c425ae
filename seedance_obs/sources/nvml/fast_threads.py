"""The threads of the fast loop, on a schedule that a late tick does not shift."""

import logging
import threading
import time
from collections.abc import Callable
from math import floor

from seedance_obs.sources.nvml.fast import FastReader

LOG = logging.getLogger(__name__)


class FastThreads:
    """Two threads: one reads all boards each tick, one asks for what takes the driver 20 ms.

    They are daemons: a call that hangs does not keep the process from ending.
    """

    def __init__(
        self, fast: FastReader, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_seconds = fast.interval_seconds
        self._monotonic = monotonic
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(name=work.__name__, target=self._repeat, args=(work,), daemon=True)
            for work in (fast.tick, fast.look)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self, *, patience_seconds: float) -> bool:
        """End both, if they were begun; False when one sits in a call that does not return."""
        self._stopping.set()
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join(patience_seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def _repeat(self, work: Callable[[], None]) -> None:
        due, failing = self._monotonic(), False
        while not self._stopping.wait(max(0.0, due - self._monotonic())):
            try:
                work()
                failing = False
            except Exception:
                if not failing:
                    LOG.exception("event=fast_loop_broken work=%s", work.__name__)
                failing = True
            due = next_due(due, self._monotonic(), self._interval_seconds)


def next_due(due: float, now: float, interval_seconds: float) -> float:
    """The first moment after now that is a whole number of intervals after `due`."""
    return due + max(1, floor((now - due) / interval_seconds) + 1) * interval_seconds
