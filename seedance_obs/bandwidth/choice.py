"""Which source of a channel is believed, so that nothing is told twice and no dead zero is told.

Sources come and go: a driver without a counter, a page that is not scraped, a field that reads 0
on a board whatever passes. Each channel tells what its best source says; the others wait.
"""

from collections.abc import Iterable, Mapping
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


class Choice:
    """Picks the source of each channel; see `ORDERS`, of which the first is the best.

    A source gives way while it is silent, for `SILENT_SECONDS` or three of its own windows. It
    gives way, too, once it has stood at exactly 0 while another of the channel moved, over two
    stretches of `candidate.STRETCH_SECONDS` in a row, until it moves itself; if nothing else speaks
    then, the channel is not known rather than idle. What one source has told is not told again by
    the next: its windows are cut to the time that is left, and their amounts with them.

    The sources of a network adapter count different traffic (RDMA passes the kernel by), so that
    they are added and not chosen from.
    """

    def __init__(self, *, silent_seconds: float = SILENT_SECONDS) -> None:
        self._silent = silent_seconds
        self._channels: dict[Channel, _Candidates] = {}

    def choose(self, flows: Iterable[Flow], now: float) -> list[Flow]:
        """What is believed of the flows that have come, at most one flow of a channel.

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
            chosen.append(candidates.believed(of_channel, now, silent=self._silent))
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
        self._told_until = float("-inf")

    @property
    def stuck(self) -> str:
        """The best source that stands; empty if none does."""
        found = [name for name in self._sources if self._sources[name].stuck]
        return min(found, key=self._rank, default="")

    def believed(self, flows: Iterable[Flow], now: float, *, silent: float) -> Flow:
        """What the best source says that has not been told; no windows if nobody is believed."""
        for flow in flows:
            self._sources.setdefault(flow.source, Candidate()).take(flow.windows)
        if self._moving is not None and len(self._sources) > 1:
            for name, candidate in self._sources.items():
                others = {key: one for key, one in self._sources.items() if key != name}
                candidate.compare(others, moving=self._moving)
        fit = [name for name, one in self._sources.items() if one.speaks(now, silent=silent)]
        best = min(fit, key=self._rank, default="")
        windows = self._sources[best].untold(self._told_until) if best else ()
        if windows:
            self._told_until = windows[-1].end
        for candidate in self._sources.values():
            candidate.drop(self._told_until)
        return Flow(self._channel, best, windows)

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
    return Flow(channel, "+".join(sorted({flow.source for flow in told})), tuple(sums))
