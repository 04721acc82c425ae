"""Windows that wait to be taken."""

import threading
from collections import deque

from seedance_obs.flow import Channel, Flow, Window

ROOM = 600  # windows of one channel from one source: a minute, ten times a second

_Told = tuple[Channel, str, float | None]  # of whom, by whom, and at which pace


class FlowStore:
    """Gathers windows in one thread and gives them away in another.

    Where nobody takes them, the oldest of a channel make room for the newest.
    """

    def __init__(self, *, room: int = ROOM) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._waiting: dict[_Told, deque[Window]] = {}
        self._dropped = 0

    def add(
        self, channel: Channel, source: str, window: Window, *, pace: float | None = None
    ) -> None:
        """Keep a window, the newest of its channel and source; `pace` is that of its flow."""
        told = channel, source, pace
        with self._lock:
            windows = self._waiting.get(told)
            if windows is None:
                windows = self._waiting[told] = deque(maxlen=self._room)
            self._dropped += len(windows) == self._room
            windows.append(window)

    def take(self) -> tuple[Flow, ...]:
        """What was added since the last time."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return tuple(
            Flow(channel, source, tuple(windows), pace)
            for (channel, source, pace), windows in waiting.items()
        )

    def take_dropped(self) -> int:
        """How many windows nobody took in time, since the last time."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        return dropped
