"""Joins the fast loops of a node with its topology, with who holds its GPUs, and with capacities.

`observe` runs on the threads that poll, `read_fast` on one of its own, `advance` and `view` on the
one that assembles.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from seedance_obs.bandwidth.choice import Choice
from seedance_obs.bandwidth.grid import SILENT_SECONDS
from seedance_obs.bandwidth.loads import UNOBSERVED, Holders, SharedSegment
from seedance_obs.bandwidth.meter import Meter
from seedance_obs.bandwidth.reading import ChannelReading, Nic, NodeBandwidth
from seedance_obs.bandwidth.segment_meters import SegmentMeters
from seedance_obs.bandwidth.segment_windows import WINDOW_SECONDS
from seedance_obs.config import NodeSettings
from seedance_obs.exporter.bandwidth.capacities import capacities
from seedance_obs.exporter.bandwidth.lateness import LateSeconds
from seedance_obs.exporter.bandwidth.page_flows import PageFlows
from seedance_obs.exporter.bandwidth.progress import ProgressWatch
from seedance_obs.exporter.bandwidth.scores import Scores
from seedance_obs.exporter.bandwidth.shares import shares_of
from seedance_obs.exporter.books.residency import Occupancy
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.flow import Channel, Flow
from seedance_obs.sources.nics import NicLoop
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.topology.model import Absent, Device, Topology, known
from seedance_obs.topology.naming import number_list
from seedance_obs.topology.near_nics import near_gpus
from seedance_obs.topology.segments import Segment, segments

STALE_SECONDS = 30.0
STALE_WINDOWS = 3  # its own, of a source that tells more seldom
GONE_SECONDS = 60.0  # without a word, and a channel is not told of
POLLS_KEPT = 60  # that nobody takes


class BandwidthWatch:
    """What the fast loops have seen of a node.

    Attributes:
        view: As of the last `advance`.
    """

    def __init__(
        self,
        root: Path,
        *,
        interval_seconds: float,
        window_seconds: float,
        monotonic: Callable[[], float],
        stale_after_seconds: float = STALE_SECONDS,
    ) -> None:
        self.view = NodeBandwidth()
        self._interval_seconds = interval_seconds
        self._window_seconds = window_seconds
        self._stale_seconds = stale_after_seconds
        self._nics = NicLoop(root, interval_seconds=interval_seconds, monotonic=monotonic)
        self._lock = threading.Lock()
        self._flows: deque[Sequence[Flow]] = deque(maxlen=POLLS_KEPT)  # until they are taken
        self._page_flows = PageFlows()
        self._choice = Choice()
        self._meters: dict[Channel, Meter] = {}
        self._lengths: dict[Channel, float] = {}  # of the last windows
        self._late = LateSeconds()
        self._segments = SegmentMeters(
            interval_seconds=interval_seconds,
            window_seconds=window_seconds,
            patience_seconds=stale_after_seconds,
        )
        self._progress = ProgressWatch(window_seconds=WINDOW_SECONDS)
        self._scores = Scores(self._progress)
        self._laid_out: Topology | None = None
        self._near: tuple[Device, ...] = ()
        self._nearest: Mapping[str, Sequence[str]] = {}
        self._capacities: Mapping[Channel, float] = {}
        self._members: Mapping[tuple[str, str], Sequence[str]] = {}
        self._faults = Faults()

    @classmethod
    def open(
        cls, settings: NodeSettings, *, monotonic: Callable[[], float]
    ) -> "BandwidthWatch | None":
        """The watch that the settings ask for; None where they ask for none."""
        if not settings.bandwidth_enabled:
            return None
        return cls(
            Path(settings.node_root),
            interval_seconds=settings.bandwidth_interval_seconds,
            window_seconds=settings.bandwidth_window_seconds,
            monotonic=monotonic,
            stale_after_seconds=settings.sampler_stale_after_seconds,
        )

    def observe(self, snapshot: SourceSnapshot) -> None:
        """Take what a source saw since it was last polled."""
        flows = self._page_flows.of(snapshot) if snapshot.source == "dcgm" else snapshot.flows
        with self._lock:
            self._flows.append(flows)

    def read_fast(self) -> None:
        """Read the network adapters near the GPUs once."""
        self._nics.tick()

    def close(self) -> None:
        """Let the adapters' files go; `read_fast` must not be called any more."""
        self._nics.close()

    def advance(
        self,
        gpus: Sequence[LocatedGpu],
        topology: Topology,
        seats: Sequence[Seat],
        occupancies: Mapping[str, Occupancy | None],
        now: float,
    ) -> None:
        """Add up what was seen since the last time and tell it anew; a fault leaves no view."""
        with self._lock:
            told = list(chain.from_iterable(self._flows))
            self._flows.clear()
        self.view, of_nics = NodeBandwidth(window_seconds=self._window_seconds), self._nics.take()
        with self._faults.kept_to("bandwidth"):
            self._follow(gpus, topology)
            self._progress.note(seats, now)
            flows = self._believed(told, of_nics, now)
            unknown = {uuid for uuid, occupied in occupancies.items() if occupied is None}
            shares = {**shares_of(seats), **{uuid: {UNOBSERVED: 1.0} for uuid in unknown}}
            self._segments.add(flows, Holders(shares, self._nearest), now=now)
            for window in self._segments.take_windows():
                self._scores.add(
                    window, self._members.get((window.segment.kind, window.segment.name), ())
                )
            self._scores.advance(now)
            self.view = self._as_view(now)

    def _believed(self, told: Iterable[Flow], of_nics: Sequence[Flow], now: float) -> list[Flow]:
        """The flows that are believed, as meters judge them; those of adapters by protocol."""
        believed: list[Flow] = []
        chosen = self._choice.choose((*told, *of_nics), now)
        for flow in chosen:
            meter = self._meters.get(flow.channel)
            if meter is None:
                meter = self._meters[flow.channel] = Meter(
                    interval_seconds=self._interval_seconds, window_seconds=self._window_seconds
                )
            capacity = self._capacities.get(flow.channel)
            settled = meter.add(flow.windows, capacity, flow.source, pace=flow.pace)
            self._lengths[flow.channel] = flow.windows[-1].seconds
            if flow.channel.medium != "network":
                believed.append(replace(flow, windows=tuple(settled)))
        return [*believed, *of_nics]

    def _follow(self, gpus: Sequence[LocatedGpu], topology: Topology) -> None:
        """Go by what the node is now: its segments, the adapters near its GPUs, capacities."""
        is_new = topology is not self._laid_out
        if is_new:
            self._near = near_gpus(topology)
            self._nics.watch(nic.name for nic in self._near)
            self._nearest = {nic.name: _nearest_gpus(topology, nic) for nic in self._near}
        found = capacities(gpus, self._near, self._nics.capacity)
        if is_new or found != self._capacities:
            of_nics = {
                channel.device: level
                for channel, level in found.items()
                if channel.medium == "network"
            }
            shared = segments(topology, nic_capacities=of_nics)
            self._members = {(each.kind, each.name): self._gpus_of(each) for each in shared}
            self._segments.follow(_with_capacity(shared))
            self._capacities, self._laid_out = found, topology

    def _gpus_of(self, segment: Segment) -> Sequence[str]:
        """The GPUs whose work a segment can slow down."""
        near = (uuid for nic in segment.nics for uuid in self._nearest.get(nic, ()))
        return segment.gpus or tuple(dict.fromkeys(near))

    def _readings(self, now: float) -> Iterator[tuple[Channel, ChannelReading]]:
        """The channels that were heard; of one that is silent neither mean nor peak is known."""
        for channel, meter in self._meters.items():
            silence = now - (meter.told_until or 0.0)
            least = SILENT_SECONDS if channel.medium == "network" else self._stale_seconds
            patience = max(least, STALE_WINDOWS * self._lengths[channel])
            if silence <= patience:
                yield channel, meter.reading()
            elif silence <= GONE_SECONDS:
                yield channel, replace(meter.reading(), mean=None, peak=None)

    def _as_view(self, now: float) -> NodeBandwidth:
        channels = dict(self._readings(now))
        self._late.add(channels)
        return NodeBandwidth(
            channels=channels,
            nics=tuple(map(_nic, self._near)),
            segments=self._segments.readings(),
            tenants=self._segments.tenants(),
            sensitivities=tuple(self._scores.view(now)),
            window_seconds=self._window_seconds,
            stuck=self._choice.stuck,
            late_seconds=dict(self._late.of_loops),
        )


def _with_capacity(shared: Iterable[Segment]) -> list[SharedSegment]:
    return [
        SharedSegment(each.kind, each.name, each.gpus, each.nics, each.capacity)
        for each in shared
        if not isinstance(each.capacity, Absent) and each.capacity > 0
    ]


def _nearest_gpus(topology: Topology, nic: Device) -> tuple[str, ...]:
    """The GPUs that are closest to an adapter on PCIe, by UUID; all where nobody can tell."""
    levels = {
        known(gpu.uuid) or gpu.name: topology.path(gpu.name, nic.name).pcie
        for gpu in topology.gpus
        if gpu.present
    }
    told = [level for level in levels.values() if not isinstance(level, Absent)]
    best = min(told, default=None)
    return tuple(uuid for uuid, level in levels.items() if best is None or level == best)


def _nic(nic: Device) -> Nic:
    return Nic(
        pci_bus_id=nic.name,
        name=nic.label,
        numa_node=number_list(nic.numa) or "",
        pcie_root=known(nic.pcie_root) or "",
        pcie_switch=known(nic.pcie_switch) or "",
    )
