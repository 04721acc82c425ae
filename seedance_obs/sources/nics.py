"""The fast loop over network adapters: what they count, as windows of time.

Which files those are and whose bytes they hold is told in `nic_files`. They stay open, for a read
of an open one costs a tenth; the kernel makes their text anew at each read from the start.
"""

import errno
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from math import ceil
from threading import Lock

from seedance_obs.flow import Channel, Flow, Window
from seedance_obs.sources.nic_files import NicCounter, NicFiles, find_nic

LOOK_SECONDS = 10.0  # between looks at which files an adapter has, and its speed
_LOOK_AGAIN_SECONDS = 1.0  # after a file has gone
_KEPT_SECONDS = 120.0  # of windows that nobody takes
_GONE = (errno.ENODEV, errno.ESTALE, errno.EINVAL, errno.ENXIO, errno.EBADF)
# Full counters of InfiniBand stay at all ones for good, those of 32 bits after a few seconds.
_FULL = (2**32 - 1, 2**64 - 1)
# A counter that was lost and found again jumps by all that was ever counted. A link can carry
# nothing like it, while loops inside an adapter may exceed the port's rate.
_TIMES_CAPACITY = 4.0
_BEYOND_ANY = 1e12  # bytes per second, where the capacity is not known

_Told = tuple[str, str, float | None]  # source, direction and pace, as `Flow` has them


class NicLoop:
    """Reads the counters of some adapters at each tick.

    One thread calls `tick`, and `close` after its last; the other methods are for any thread and
    never wait for a device. A tick that was late makes a longer window; a counter that cannot be
    read, fell, is full, or jumped beyond belief makes none, and the next window begins anew.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        interval_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        """Nothing is read yet; `root` is a host root, such as `/host`."""
        self._root = os.fspath(root)
        self._interval = interval_seconds
        self._monotonic = monotonic
        self._adapters: dict[str, _Adapter] = {}
        self._lock = Lock()
        self._wanted: tuple[str, ...] = ()
        self._capacities: dict[str, float | None] = {}
        self._windows: defaultdict[tuple[str, _Told], deque[Window]] = self._none()

    def watch(self, addresses: Iterable[str]) -> None:
        """From the next tick on read these adapters, by canonical PCI address, and no others."""
        with self._lock:
            self._wanted = tuple(addresses)

    def tick(self) -> None:
        """Read every watched adapter once."""
        with self._lock:
            wanted = self._wanted
        for address in self._adapters.keys() - set(wanted):
            self._adapters.pop(address).close()
        for address in wanted:
            if address not in self._adapters:
                self._adapters[address] = _Adapter(
                    self._root, address, self._interval / 2, self._monotonic
                )
        found = [(address, self._adapters[address].read()) for address in wanted]
        with self._lock:
            self._capacities = {name: nic.capacity for name, nic in self._adapters.items()}
            for address, windows in found:
                for told, window in windows:
                    self._windows[address, told].append(window)

    def take(self) -> tuple[Flow, ...]:
        """The windows since the last call, by adapter, source and direction.

        Of an adapter with RDMA and Ethernet counters the two are different bytes, which add up.
        What nobody takes for two minutes is dropped, oldest first.
        """
        with self._lock:
            taken, self._windows = self._windows, self._none()
        return tuple(
            Flow(Channel(address, "network", direction), source, tuple(windows), pace)
            for (address, (source, direction, pace)), windows in taken.items()
        )

    def capacity(self, address: str) -> float | None:
        """Bytes per second one way; None where not known, not watched, or the link is down."""
        with self._lock:
            return self._capacities.get(address)

    def close(self) -> None:
        """Close every file; a later tick would open them again."""
        for adapter in self._adapters.values():
            adapter.close()
        self._adapters.clear()

    def _none(self) -> defaultdict[tuple[str, _Told], deque[Window]]:
        most = ceil(_KEPT_SECONDS / self._interval)
        return defaultdict(lambda: deque(maxlen=most))


class _Adapter:
    """One PCI function: its open counters, and when to look for them again."""

    def __init__(
        self, root: str, address: str, shortest: float, monotonic: Callable[[], float]
    ) -> None:
        self._root = root
        self._address = address
        self._shortest = shortest
        self._monotonic = monotonic
        self._files = NicFiles()
        self._open: dict[NicCounter, _OpenCounter] = {}
        self._look_at = monotonic()

    @property
    def capacity(self) -> float | None:
        return self._files.capacity

    def read(self) -> list[tuple[_Told, Window]]:
        now = self._monotonic()
        if now >= self._look_at:
            self._look(now)
        found = []
        most = _BEYOND_ANY if self.capacity is None else _TIMES_CAPACITY * self.capacity
        for counter, opened in list(self._open.items()):
            try:
                window = opened.window(self._monotonic, most)
            except OSError:
                self._open.pop(counter).close()
                self._look_at = min(self._look_at, now + _LOOK_AGAIN_SECONDS)
                continue
            if window is not None:
                found.append(((counter.source, counter.direction, opened.pace), window))
        return found

    def close(self) -> None:
        for opened in self._open.values():
            opened.close()
        self._open.clear()

    def _look(self, now: float) -> None:
        """Find the files anew; a counter whose files are the same ones goes on as it was."""
        try:
            self._files = find_nic(self._root, self._address)
        except OSError:
            self._look_at = now + _LOOK_AGAIN_SECONDS
            return
        self._look_at = now + LOOK_SECONDS
        for counter in self._open.keys() - set(self._files.counters):
            self._open.pop(counter).close()
        for counter in self._files.counters:
            if counter in self._open:
                continue
            try:
                opened = _OpenCounter(counter, self._shortest, self._files.refresh_seconds)
            except OSError:
                self._look_at = now + _LOOK_AGAIN_SECONDS
                continue
            self._open[counter] = opened


class _OpenCounter:
    """The open files of one counter, and where its next window starts.

    `pace` is how long its windows are meant to be at most; None where a tick is.
    """

    def __init__(self, counter: NicCounter, shortest: float, refresh_seconds: float) -> None:
        """Open the files.

        Raises:
            OSError: one cannot be opened; then none stays open.
        """
        self._unit = counter.unit
        self._shortest = max(shortest, 0.75 * refresh_seconds)
        self._shortest_still = max(shortest, 1.5 * refresh_seconds)
        self.pace = self._shortest_still if refresh_seconds else None
        self._start: tuple[float, list[int]] | None = None
        self._descriptors: list[int] = []
        try:
            for file in counter.files:
                self._descriptors.append(os.open(file.path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def window(self, monotonic: Callable[[], float], most: float) -> Window | None:
        """What has passed since the last window; None where that is not known, or not yet.

        `most` is what can pass, in bytes per second.

        Raises:
            OSError: a file has gone, so that it must be opened anew.
        """
        counts = self._counts()
        now = monotonic()
        if counts is None:
            self._start = None
            return None
        if self._start is None:
            self._start = (now, counts)
            return None
        start, before = self._start
        if now - start < (self._shortest_still if counts == before else self._shortest):
            return None
        self._start = (now, counts)
        if any(count < earlier for count, earlier in zip(counts, before, strict=True)):
            return None
        window = Window(start, now, float((sum(counts) - sum(before)) * self._unit))
        return window if window.level <= most else None

    def _counts(self) -> list[int] | None:
        """What the files say; None where one says nothing, or is full."""
        try:
            counts = [int(os.pread(descriptor, 64, 0)) for descriptor in self._descriptors]
        except ValueError:
            return None
        except OSError as error:
            if error.errno in _GONE:
                raise
            return None
        return None if any(count < 0 or count in _FULL for count in counts) else counts
