"""All shared segments of a node: windows of channels go in, readings come out.

Time is cut into cells of the fast loop's interval, cells into blocks of about a second. A block of
a segment is closed when all its members have told of it, however late the slowest is. A cell that
a GPU has not told of is not observed, for a load that lacks a member would be too low; one that is
silent for long, or for three of its own windows, is no longer waited for. A GPU that the host has
lost is no member any more. An adapter is read by a loop of our own, so that one which has not told
for five seconds is left out, and the load is that of the others.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import floor

from seedance_obs.bandwidth.contention import KEPT_SECONDS, SegmentMeter
from seedance_obs.bandwidth.grid import SILENT_SECONDS, Block, Key, Track
from seedance_obs.bandwidth.loads import Holders, Load, SharedSegment, load_of
from seedance_obs.bandwidth.reading import SegmentName, SegmentReading, TenantReading
from seedance_obs.bandwidth.segment_windows import SegmentWindow, SegmentWindows
from seedance_obs.flow import DIRECTIONS, Flow

PATIENCE_SECONDS = 30.0
PATIENCE_WINDOWS = 3  # its own, of a member that tells more seldom
LONGEST_PATIENCE_SECONDS = 180.0  # three pages of DCGM's, of the longest that are believed
BLOCK_SECONDS = 1.0
RETIRED_KEPT = 200


class SegmentMeters:
    """The meters of a node's shared segments; for one thread.

    Args:
        interval_seconds: The fast loop's, which is the length of a cell.
        window_seconds: What means, peaks and jitter are taken over.
        patience_seconds: How long a GPU that is silent is waited for, at least.
    """

    def __init__(
        self,
        *,
        interval_seconds: float,
        window_seconds: float,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._cell = interval_seconds
        self._count = max(1, round(BLOCK_SECONDS / interval_seconds))
        self._block_seconds = self._count * interval_seconds
        self._window_blocks = max(1, round(window_seconds / self._block_seconds))
        self._patience = patience_seconds
        self._kept = LONGEST_PATIENCE_SECONDS + 2 * patience_seconds
        self._lines: dict[SegmentName, _Line] = {}
        self._retired: dict[SegmentName, _Line] = {}
        self._tracks: dict[Key, Track] = {}
        self._until: list[float] = []  # when each of the holders ended
        self._holders: list[Holders] = []

    def follow(self, segments: Iterable[SharedSegment]) -> None:
        """Meter these segments from now on; one that was metered before goes on where it was.

        What is left out is no longer told.
        """
        before = {**self._retired, **self._lines}
        self._lines = {
            name: self._line(segment, name, before.pop(name, None))
            for segment in segments
            for name in _names(segment)
        }
        self._retired = dict(list(before.items())[-RETIRED_KEPT:])

    def add(self, flows: Iterable[Flow], holders: Holders, *, now: float) -> None:
        """Take in what was observed, and close all blocks that are complete.

        Args:
            flows: One source for each channel; of an adapter one for `rdma` and one for every
                other protocol, which add up.
            holders: Whose the GPUs were since the call before.
            now: Monotonic seconds, on the clock of the windows.
        """
        self._forget(now)
        for flow in flows:
            if flow.channel.medium != "power":
                self._track(flow, now).add(flow.windows)
        self._until.append(now)
        self._holders.append(holders)
        for line in self._lines.values():
            self._advance(line, now)
            line.meter.expect(holders.tenants_of(line.gpus), line.closed)

    def readings(self) -> tuple[SegmentReading, ...]:
        """The segments that have ever been observed."""
        found = (line.meter.reading() for line in self._lines.values())
        return tuple(reading for reading in found if reading is not None)

    def tenants(self) -> tuple[TenantReading, ...]:
        """What each tenant sends over each of them."""
        return tuple(each for line in self._lines.values() for each in line.meter.tenants())

    def take_windows(self) -> tuple[SegmentWindow, ...]:
        """The half minutes completed since the last take, those of one segment in order."""
        return tuple(each for line in self._lines.values() for each in line.windows.take())

    def _line(self, segment: SharedSegment, name: SegmentName, before: "_Line | None") -> "_Line":
        if before is not None:
            before.follow(segment)
            return before
        meter = SegmentMeter(
            name, segment.capacity, cell_seconds=self._cell, window_blocks=self._window_blocks
        )
        return _Line(segment, meter, SegmentWindows(cell_seconds=self._cell))

    def _track(self, flow: Flow, now: float) -> Track:
        channel = flow.channel
        via = "" if channel.medium != "network" else "rdma" if flow.source == "rdma" else "ethernet"
        key = Key(*channel, via)
        if key not in self._tracks:
            first = floor((now - self._kept) / self._cell)
            self._tracks[key] = Track(self._cell, first=first)
        return self._tracks[key]

    def _advance(self, line: "_Line", now: float) -> None:
        until = floor(self._told_until(line.load, now) / self._block_seconds)
        oldest = floor((now - self._kept) / self._block_seconds)
        for number in range(max(line.closed + 1, oldest), until):
            self._close(line, number)
            line.closed = number

    def _told_until(self, load: Load, now: float) -> float:
        """Until when all that a load is made from has been told, but for what is silent."""
        until = now
        for key in load.keys(self._holders[-1]):
            track = self._tracks.get(key)
            if track is not None and now - track.end <= self._patience_with(key, track):
                until = min(until, track.end)
        return until

    def _patience_with(self, key: Key, track: Track) -> float:
        if key.medium == "network":
            return SILENT_SECONDS
        own = min(PATIENCE_WINDOWS * track.length, LONGEST_PATIENCE_SECONDS)
        return max(self._patience, own)

    def _close(self, line: "_Line", number: int) -> None:
        start = number * self._block_seconds
        block = Block(
            self._tracks, first=number * self._count, count=self._count, cell_seconds=self._cell
        )
        parts = line.load.parts(block, self._holders_at(start + self._block_seconds / 2))
        kept = round(KEPT_SECONDS / self._block_seconds)
        moved = line.meter.close(number, parts, block.holes, kept_blocks=kept)
        line.windows.add(start, moved, segment=line.meter.segment, capacity=line.meter.capacity)

    def _holders_at(self, at: float) -> Holders:
        place = bisect_left(self._until, at)
        return self._holders[min(place, len(self._holders) - 1)]

    def _forget(self, now: float) -> None:
        """Let go of what no block needs any more, and of channels that are gone."""
        oldest = floor((now - self._kept) / self._block_seconds)
        latest = floor(now / self._block_seconds)
        needed = min((line.closed + 1 for line in self._lines.values()), default=latest + 1)
        first = max(needed, oldest)
        for key, track in list(self._tracks.items()):
            track.forget_before((first - 1) * self._count)  # a block is seen with what was before
            if now - track.end > self._kept:
                del self._tracks[key]
        gone = bisect_left(self._until, first * self._block_seconds)
        del self._until[:gone], self._holders[:gone]


class _Line:
    """One segment in one direction; `closed` is the last block of it that was."""

    def __init__(
        self, segment: SharedSegment, meter: SegmentMeter, windows: SegmentWindows
    ) -> None:
        self.meter = meter
        self.windows = windows
        self.load = load_of(segment, meter.segment.direction)
        self.closed = -1
        self._segment = segment

    @property
    def gpus(self) -> Sequence[str]:
        """The GPUs whose tenants may use it at any time."""
        return self._segment.gpus

    def follow(self, segment: SharedSegment) -> None:
        """Take over other members or another capacity."""
        if segment != self._segment:
            self._segment = segment
            self.load = load_of(segment, self.meter.segment.direction)
            self.meter.capacity = segment.capacity


def _names(segment: SharedSegment) -> Sequence[SegmentName]:
    directions = ("",) if segment.kind == "hbm" else DIRECTIONS
    return [SegmentName(segment.kind, segment.name, direction) for direction in directions]
