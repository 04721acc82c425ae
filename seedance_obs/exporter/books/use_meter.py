"""Adds up what processes use of each board between two ticks of its account.

Passes over the driver and ticks of the accounts run side by side: a pass may be skipped by a tick,
or two ticks may see one pass. What is added up here is taken once.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.sources.readings import SourceSnapshot


@dataclass(slots=True)
class _Window:
    read_at: float
    seconds: float = 0.0
    told: bool = False
    busy: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))

    def clear(self) -> None:
        """Begin anew."""
        self.seconds, self.busy = 0.0, defaultdict(float)


class UseMeter:
    """Seconds that each process kept each board busy; safe for one adder and one taker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}

    def add(self, snapshot: SourceSnapshot) -> None:
        """Add what one pass tells; a first pass has no window to tell of."""
        with self._lock:
            for gpu in snapshot.gpus:
                window = self._windows.get(gpu.uuid)
                if window is None:
                    told = gpu.process_use is not None
                    self._windows[gpu.uuid] = _Window(snapshot.taken_at, told=told)
                    continue
                elapsed = snapshot.taken_at - window.read_at
                window.read_at = snapshot.taken_at
                window.told = gpu.process_use is not None
                if gpu.process_use is None:
                    window.clear()
                    continue
                window.seconds += elapsed
                for use in gpu.process_use:
                    window.busy[use.pid] += use.sm_ratio * elapsed

    def take(self, uuid: str) -> Mapping[int, float] | None:
        """Mean share of the board's time by pid since the last take; None where nobody tells."""
        with self._lock:
            window = self._windows.get(uuid)
            if window is None or not window.told:
                return None
            seconds, busy = window.seconds, window.busy
            window.clear()
        return {pid: min(1.0, part / seconds) for pid, part in busy.items()} if seconds else {}
