"""Which source of a channel is believed, so that nothing is told twice and no dead zero is told.

Sources come and go: a driver without a counter, a page that is not scraped, a field that reads 0
on a board whatever passes. Each channel tells what its best source says; the others wait.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType

from seedance_obs.bandwidth.candidate import Candidate
from seedance_obs.flow import Channel, Flow, Window

ORDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pcie": ("gpm", "counter", "dcgm", "throughput"),
        "nvlink": ("counter", "gpm", "dcgm"),
        "hbm": ("gpm", "dcgm"),
        "power": ("sensor",),
    }
)
# By medium, the level from which a source moves: below it, another may round what it sees to 0.
MOVING: Mapping[str, float] = MappingProxyType({"pcie": 1e6, "nvlink": 1e6, "hbm": 0.01})
SILENT_SECONDS = 10.0
GAP_SECONDS = 1.0  # that nobody has told, and that are worth to wait for


class Choice:
    """Picks the source of each channel; see `ORDERS`, of which the first is the best.

    A source gives way while it is silent, for `SILENT_SECONDS` or three of its own windows. It
    gives way, too, once it has stood at exactly 0 while another of the channel moved, over two
    stretches in a row of which both have told (`candidate.STRETCH_SECONDS` or a window of the
    slower, and of a page as long as its value stays the same), until it moves itself; if nothing
    else speaks then, the channel is not known rather than idle.

    What one source has told is not told again by the next: its windows are cut to the time that is
    left, and their amounts with them. What a source that comes back has missed is told by the one
    that has seen it; if that will only tell with its next page, both wait for it.

    The sources of a network adapter count different traffic (RDMA passes the kernel by), so that
    they are added and not chosen from.
    """

    def __init__(self, *, silent_seconds: float = SILENT_SECONDS) -> None:
        self._silent = silent_seconds
        self._channels: dict[Channel, _Candidates] = {}

    def choose(self, flows: Iterable[Flow], now: float) -> list[Flow]:
        """What is believed of the flows that have come, of each channel in order of time.

        A channel has one flow, and one more from each source that fills a gap before it.

        Args:
            flows: of all sources, each in order of time.
            now: monotonic seconds, on the clock of the windows.
        """
        chosen = []
        by_channel: dict[Channel, list[Flow]] = {}
        for flow in flows:
            by_channel.setdefault(flow.channel, []).append(flow)
        for channel, of_channel in by_channel.items():
            if channel.medium == "network":
                chosen.append(_added(channel, of_channel))
                continue
            candidates = self._channels.setdefault(channel, _Candidates(channel))
            chosen += candidates.believed(of_channel, now, silent=self._silent)
        return [flow for flow in chosen if flow.windows]

    @property
    def stuck(self) -> Mapping[Channel, str]:
        """The best source of each channel that is not believed because it stands at 0."""
        return {
            channel: candidates.stuck
            for channel, candidates in self._channels.items()
            if candidates.stuck
        }


class _Candidates:
    """The sources of one channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._order = ORDERS.get(channel.medium, ())
        self._moving = MOVING.get(channel.medium)
        self._sources: dict[str, Candidate] = {}
        self._paces: dict[str, float | None] = {}
        self._told_until = -inf

    @property
    def stuck(self) -> str:
        """The best source that stands; empty if none does."""
        found = [name for name in self._sources if self._sources[name].stuck]
        return min(found, key=self._rank, default="")

    def believed(self, flows: Iterable[Flow], now: float, *, silent: float) -> list[Flow]:
        """What the best source says that has not been told; nothing if nobody is believed."""
        for flow in flows:
            self._sources.setdefault(flow.source, Candidate(flow.source)).take(flow.windows)
            self._paces[flow.source] = flow.pace
        self._compare()
        fit = [name for name, one in self._sources.items() if one.speaks(now, silent=silent)]
        ranked = sorted(fit, key=self._rank)
        told = list(self._told(ranked, now)) if ranked else []
        for candidate in self._sources.values():
            candidate.drop(self._told_until)
        return told

    def _compare(self) -> None:
        if self._moving is not None and len(self._sources) > 1:
            for name, candidate in self._sources.items():
                others = {key: one for key, one in self._sources.items() if key != name}
                candidate.compare(others, moving=self._moving)

    def _told(self, ranked: Sequence[str], now: float) -> Iterator[Flow]:
        """What the best says, after what others say of a gap before it; nothing while they may."""
        best, *names = ranked
        begins, known = self._sources[best].begins, self._told_until + GAP_SECONDS
        if known < begins < inf:
            others = [self._sources[name] for name in names]
            if not any(one.begins <= known and one.end >= begins for one in others) and any(
                one.end < begins and one.is_due(now) for one in others
            ):
                return
            for name in sorted(names, key=lambda name: self._sources[name].begins):
                yield from self._tell(name, until=begins)
        yield from self._tell(best)

    def _tell(self, name: str, until: float = inf) -> Iterator[Flow]:
        windows = self._sources[name].untold(self._told_until, until)
        if windows:
            self._told_until = windows[-1].end
            yield Flow(self._channel, name, windows, self._paces[name])

    def _rank(self, source: str) -> tuple[int, str]:
        known = source in self._order
        return (self._order.index(source) if known else len(self._order), source)


def _added(channel: Channel, flows: Iterable[Flow]) -> Flow:
    """The sum of sources that were read in the same ticks."""
    told = [flow for flow in flows if flow.windows]
    windows = sorted(
        (window for flow in told for window in flow.windows),
        key=lambda window: window.start + window.end,
    )
    sums: list[Window] = []
    for window in windows:
        start, end, amount = window
        if sums and (start + end) / 2 < sums[-1].end:
            sums[-1] = sums[-1]._replace(amount=sums[-1].amount + amount)
        else:
            start = max(start, sums[-1].end) if sums else start
            sums.append(Window(start, end, amount))
    paces = [flow.pace for flow in told if flow.pace is not None]
    source = "+".join(sorted({flow.source for flow in told}))
    return Flow(channel, source, tuple(sums), max(paces, default=None))
