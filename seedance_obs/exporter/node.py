"""The node as the exporter knows it: sources are polled into it, and a view of it is assembled.

Nothing here waits for a driver on behalf of a scrape: polling happens on the sampler's threads,
assembling takes whatever the sources said last, and a scrape reads the last view.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from seedance_obs.config import NodeSettings
from seedance_obs.errors import DriverReleasedError, SourceUnavailableError
from seedance_obs.exporter.bandwidth.watch import BandwidthWatch
from seedance_obs.exporter.books.opening import open_attribution
from seedance_obs.exporter.fragmentation.watch import FragmentationWatch
from seedance_obs.exporter.leaks.opening import open_leaks
from seedance_obs.exporter.link_health import LinkHealth, LinkWatch
from seedance_obs.exporter.memory import COUNTER_PATIENCE_SECONDS, BoardMemory
from seedance_obs.exporter.placement import PlacementWatch
from seedance_obs.exporter.view import LocatedGpu, NodeView, SourceState, gpu_labels
from seedance_obs.exporter.xid_counts import XidCounts
from seedance_obs.exporter.xid_times import XidTimes
from seedance_obs.layout import HostLayout
from seedance_obs.merge import MergedGpu, merge
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.topology.model import Topology

LOG = logging.getLogger(__name__)
PCI_REFRESH_SECONDS = 60.0


class Source(Protocol):
    """Something that can be asked for a snapshot of the node's GPUs."""

    name: str

    def read(self) -> SourceSnapshot:
        """One pass; raises SourceUnavailableError with a sentence when there is none."""
        ...

    def close(self) -> None:
        """Let go of whatever is held."""
        ...


class Node:
    """One GPU node: its sources, its books and its current view.

    `poll` may be called from one thread per source, `assemble` from one thread.
    """

    def __init__(
        self,
        settings: NodeSettings,
        sources: Sequence[Source],
        *,
        node_name: str,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._root = root = Path(settings.node_root)
        self.sources = {source.name: source for source in sources}
        self.view = NodeView(node_name=node_name)
        self._settings = settings
        self._orders = settings.source_orders()
        self._monotonic = monotonic
        self._wall = wall
        self._started_at: float | None = None
        self._proc_root, self._sysfs_root = root / "proc", root / "sys"
        self._memory = BoardMemory(patience_seconds=COUNTER_PATIENCE_SECONDS)
        self._attribution = open_attribution(settings, monotonic=monotonic, wall=wall)
        self._leaks = open_leaks(
            settings,
            host_pids=lambda: self._attribution.host_pids,
            wall=wall,
            cpu_clock=cpu_clock,
        )
        self._bandwidth = BandwidthWatch.open(settings, monotonic=monotonic)
        self._fragmentation = FragmentationWatch(settings, kubelet="podresources" in self.sources)
        self._placement = PlacementWatch()
        self._xids = XidCounts()
        self._xid_times = XidTimes()
        self._lock = threading.Lock()
        self._latest: dict[str, SourceSnapshot] = {}
        self._states: dict[str, SourceState] = {}
        self._faults: dict[str, str] = {}
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._labels: dict[str, tuple[str, ...]] = {}
        self._layout = HostLayout(self._sysfs_root, node_name)
        self._links = LinkWatch()
        self._pci_read_at: float | None = None
        self._most_seen = 0

    def poll(self, name: str) -> None:
        """Ask one source; a fault is logged when it starts and when it ends."""
        source = self.sources[name]
        started = self._monotonic()
        snapshot, fault = None, ""
        try:
            snapshot = source.read()
        except DriverReleasedError as error:
            fault = str(error)
            with self._lock:
                self._xid_times.forget()
        except SourceUnavailableError as error:
            fault = str(error)
        except Exception as error:
            fault = f"a fault of this exporter: {error!r}"
            if fault != self._faults.get(name):
                LOG.exception("event=source_broken source=%s", name)
        self._log_change(name, fault)
        if snapshot is not None and any(gpu.processes is not None for gpu in snapshot.gpus):
            self._attribution.observe(snapshot)
        if snapshot is not None and self._bandwidth is not None:
            self._bandwidth.observe(snapshot)
        with self._lock:
            before = self._states.get(name, SourceState(up=False))
            self._states[name] = SourceState(
                up=snapshot is not None,
                taken_at=snapshot.taken_at if snapshot else before.taken_at,
                read_seconds=self._monotonic() - started,
                restarts=getattr(source, "restarts", None),
                abandoned=getattr(source, "abandoned", None),
            )
            if snapshot is not None:
                self._latest[name] = snapshot
                self._xids.add(name, snapshot.xids)
                self._xid_times.note(snapshot.xids, snapshot.taken_at)
                for reason, count in snapshot.dropped.items():
                    self._dropped[name, reason] += count

    def assemble(self) -> NodeView:
        """Build the view from what every source said last, leaving out the stale."""
        now = self._monotonic()
        with self._lock:
            snapshots = [
                self._latest[name]
                for name in self.sources
                if name in self._latest
                and now - self._latest[name].taken_at <= self._settings.sampler_stale_after_seconds
            ]
            states, dropped = dict(self._states), dict(self._dropped)
            pods = self._latest.get("podresources")
        self._refresh_pci(now)
        merged = merge(snapshots, self._orders)
        boards = _one_at_a_place(merged, [self._memory.complete(gpu) for gpu in merged])
        lost = list(self._lost(boards))
        pairs = [pair for snapshot in snapshots for pair in snapshot.pairs]
        topology = self._layout.lay_out(boards, lost, pairs)
        gpus = self._locate(boards, topology)
        if self._started_at is None and snapshots:
            self._started_at = self._wall()
        self._attribution.advance(gpus, topology, now, pods=pods)
        self._most_seen = max(self._most_seen, len(gpus))
        expected = self._settings.node_expected_gpus or max(
            self._layout.gpus_on_bus, self._most_seen
        )
        attribution = self._attribution.view()
        if self._leaks is not None:
            seats = self._attribution.seats
            self._leaks.note(boards, seats, attribution, now, expected=expected)
        if self._bandwidth is not None:
            self._bandwidth.advance(
                gpus, topology, self._attribution.seats, self._attribution.occupancies, now
            )
        states |= self._file_system_states()
        actions = {gpu.merged.uuid: gpu.merged.value("recovery_action") for gpu in gpus}
        with self._lock:
            xid_errors = self._xids.totals(self._labels_of)
            self._xid_times.settle(actions, now)
            xid_times = self._xid_times.last(self._labels_of)
        self.view = NodeView(
            node_name=self.view.node_name,
            started_at=self._started_at,
            gpus=gpus,
            missing=tuple(self._labels[gpu.uuid] for gpu in lost),
            topology=topology,
            links=self._watch_links(merged, gpus),
            expected_gpus=expected,
            sources=states,
            versions={k: v for each in reversed(snapshots) for k, v in each.versions.items()},
            dropped=dropped,
            xid_errors=xid_errors,
            xid_times=xid_times,
            attribution=attribution,
            leaks=self._leaks.view if self._leaks is not None else None,
            bandwidth=self._bandwidth.view if self._bandwidth is not None else None,
            placement=self._placement.view(
                gpus, topology, self._attribution.seats, attribution.workloads
            ),
            fragmentation=self._fragmentation.view(
                gpus,
                topology,
                self._attribution.occupancies,
                self._attribution.quotas,
                now,
                snapshots=snapshots,
                pods=pods,
                states=states,
            ),
        )
        return self.view

    def refresh(self) -> None:
        """Read what changes slowly or may block: quotas and the host's energy."""
        self._attribution.refresh(self._monotonic())

    def probe(self) -> None:
        """Look for leaks, where that is asked for."""
        if self._leaks is not None:
            self._leaks.probe(self._monotonic())

    def read_fast(self) -> None:
        """Read the network adapters once, where that is asked for."""
        if self._bandwidth is not None:
            self._bandwidth.read_fast()

    def close(self) -> None:
        """Let every source go."""
        for source in self.sources.values():
            source.close()
        if self._bandwidth is not None:
            self._bandwidth.close()

    def _log_change(self, name: str, fault: str) -> None:
        before = self._faults.get(name, "")
        self._faults[name] = fault
        if fault and fault != before:
            LOG.warning("event=source_down source=%s reason=%r", name, fault)
        elif before and not fault:
            LOG.warning("event=source_up source=%s", name)

    def _file_system_states(self) -> Mapping[str, SourceState]:
        return {
            "sysfs": SourceState(up=(self._sysfs_root / "bus/pci/devices").is_dir()),
            "procfs": SourceState(up=(self._proc_root / "stat").exists()),
            **self._attribution.states(),
        }

    def _refresh_pci(self, now: float) -> None:
        if self._pci_read_at is None or now - self._pci_read_at >= PCI_REFRESH_SECONDS:
            self._pci_read_at = now
            self._layout.refresh()

    def _lost(self, gpus: Sequence[MergedGpu]) -> Iterator[MergedGpu]:
        """Boards that were seen before; one whose place another has taken was replaced."""
        seen = {gpu.uuid for gpu in gpus}
        places: set[str | None] = {gpu.pci_bus_id for gpu in gpus} - {None}
        lost = [board for board in self._memory.boards() if board.uuid not in seen]
        for board in sorted(lost, key=lambda board: -board.seen_at):
            if board.pci_bus_id not in places:
                places |= {board.pci_bus_id} - {None}
                yield board

    def _watch_links(
        self, merged: Sequence[MergedGpu], gpus: Sequence[LocatedGpu]
    ) -> Mapping[str, LinkHealth]:
        told = {gpu.uuid: gpu for gpu in merged}
        return {
            gpu.merged.uuid: self._links.watch(told[gpu.merged.uuid], gpu.device) for gpu in gpus
        }

    def _locate(self, boards: Sequence[MergedGpu], topology: Topology) -> tuple[LocatedGpu, ...]:
        gpus = []
        for board in boards:
            device = topology.by_name[board.pci_bus_id or board.uuid]
            labels = self._labels[board.uuid] = gpu_labels(device, topology)
            gpus.append(LocatedGpu(board, device, labels))
        return tuple(gpus)

    def _labels_of(self, uuid: str) -> tuple[str, ...]:
        return self._labels.get(uuid, ("", uuid, "", "", "", "", ""))


def _one_at_a_place(merged: Sequence[MergedGpu], boards: Sequence[MergedGpu]) -> list[MergedGpu]:
    """The boards without those whose remembered place another board is read at now.

    A page that names boards by UUID alone may go on naming one that was replaced.
    """
    owners = {gpu.pci_bus_id: gpu.uuid for gpu in merged if gpu.pci_bus_id}
    return [
        board for board in boards if owners.get(board.pci_bus_id or "", board.uuid) == board.uuid
    ]
