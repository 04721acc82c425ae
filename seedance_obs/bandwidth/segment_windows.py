"""What passed over a segment in consecutive half minutes: what sensitivity is judged from."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from seedance_obs.bandwidth.contention import Moved
from seedance_obs.bandwidth.reading import SegmentName

WINDOW_SECONDS = 30.0
OBSERVED_RATIO = 0.8  # of a window that must have been observed
WINDOWS_KEPT = 20


@dataclass(frozen=True, slots=True)
class SegmentWindow:
    """The means of a window in bytes per second.

    Attributes:
        start: Monotonic seconds, a multiple of `WINDOW_SECONDS`.
        capacity: What the segment carries.
        load: Of all together.
        tenants: Of each; what nobody holds is among them as `unallocated` or `unobserved`. One
            that is not there moved nothing.
    """

    segment: SegmentName
    start: float
    capacity: float
    load: float
    tenants: Mapping[str, float]


class SegmentWindows:
    """Gathers the blocks of one segment into windows; those that nobody takes are bounded."""

    def __init__(self, *, cell_seconds: float) -> None:
        self._cell = cell_seconds
        self._done: deque[SegmentWindow] = deque(maxlen=WINDOWS_KEPT)
        self._number: int | None = None
        self._clear()

    def add(
        self, start: float, moved: Moved | None, *, segment: SegmentName, capacity: float
    ) -> None:
        """Take in a block that begins at `start`; None for one that was not observed."""
        number = int(start // WINDOW_SECONDS)
        if number != self._number:
            self._finish(segment, capacity)
            self._number = number
        if moved is None:
            return
        self._count += moved.load.cells
        self._total += moved.load.total
        for tenant, sums in moved.tenants.items():
            self._tenants[tenant] = self._tenants.get(tenant, 0.0) + sums.total

    def take(self) -> list[SegmentWindow]:
        """The windows that were completed since the last take and observed well enough."""
        done = list(self._done)
        self._done.clear()
        return done

    def _finish(self, segment: SegmentName, capacity: float) -> None:
        seconds = self._count * self._cell
        if self._number is not None and seconds >= OBSERVED_RATIO * WINDOW_SECONDS:
            self._done.append(
                SegmentWindow(
                    segment=segment,
                    start=self._number * WINDOW_SECONDS,
                    capacity=capacity,
                    load=self._total / seconds,
                    tenants={name: total / seconds for name, total in self._tenants.items()},
                )
            )
        self._clear()

    def _clear(self) -> None:
        self._count = 0
        self._total = 0.0
        self._tenants: dict[str, float] = {}
