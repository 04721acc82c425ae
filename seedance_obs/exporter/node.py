"""The node as the exporter knows it: sources are polled into it, and a view of it is assembled.

Nothing here waits for a driver on behalf of a scrape: polling happens on the sampler's threads,
assembling takes whatever the sources said last, and a scrape reads the last view.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from seedance_obs.config import NodeSettings
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.accounts import Accounts, tenants_of
from seedance_obs.exporter.memory import BoardMemory
from seedance_obs.exporter.view import LocatedGpu, NodeView, SourceState
from seedance_obs.merge import MergedGpu, merge
from seedance_obs.sources.procfs import read_process, user_name
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.sysfs import PciFacts, nvidia_gpus, read_pci
from seedance_obs.topology.domains import HIDDEN_SWITCH, LinkedGpu, nvlink_domains, rack_domain

LOG = logging.getLogger(__name__)
PCI_REFRESH_SECONDS = 60.0
COUNTER_PATIENCE_SECONDS = 120.0  # several of dcgm-exporter's collection intervals


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
    """One GPU node: its sources, its accounts and its current view.

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
        self._accounts = Accounts(gap_seconds=settings.sampler_stale_after_seconds)
        self._lock = threading.Lock()
        self._latest: dict[str, SourceSnapshot] = {}
        self._owners: dict[str, dict[int, str]] = {}  # by source: process to user
        self._states: dict[str, SourceState] = {}
        self._faults: dict[str, str] = {}
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._labels: dict[str, tuple[str, ...]] = {}
        self._pci: dict[str, PciFacts | None] = {}
        self._domains: dict[str, str] = {}  # by PCI address
        self._pci_gpus = 0
        self._pci_read_at: float | None = None
        self._most_seen = 0

    def poll(self, name: str) -> None:
        """Ask one source; a fault is logged when it starts and when it ends."""
        source = self.sources[name]
        started = self._monotonic()
        snapshot, fault = None, ""
        try:
            snapshot = source.read()
        except SourceUnavailableError as error:
            fault = str(error)
        except Exception as error:
            fault = f"a fault of this exporter: {error!r}"
            if fault != self._faults.get(name):
                LOG.exception("event=source_broken source=%s", name)
        self._log_change(name, fault)
        owners = {} if snapshot is None else self._find_owners(snapshot)
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
                self._owners[name] = owners
                self._accounts.count_xids(name, snapshot.xids)
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
            owners = {pid: user for known in self._owners.values() for pid, user in known.items()}
        self._refresh_pci(now)
        merged = merge(snapshots, self._orders)
        gpus = self._locate([self._memory.complete(gpu) for gpu in merged])
        if self._started_at is None and snapshots:
            self._started_at = self._wall()
        for gpu in gpus:
            self._accounts.advance(gpu.merged, tenants_of(gpu.merged, owners.get))
        self._most_seen = max(self._most_seen, len(gpus))
        with self._lock:
            xid_errors = self._accounts.xids(self._labels_of)
        self.view = NodeView(
            node_name=self.view.node_name,
            started_at=self._started_at,
            gpus=gpus,
            missing=self._missing(gpus),
            expected_gpus=self._settings.node_expected_gpus or max(self._pci_gpus, self._most_seen),
            sources={**states, **self._file_system_states()},
            versions={k: v for each in reversed(snapshots) for k, v in each.versions.items()},
            dropped=dropped,
            xid_errors=xid_errors,
            accounts=self._accounts.tenants(),
        )
        return self.view

    def close(self) -> None:
        """Let every source go."""
        for source in self.sources.values():
            source.close()

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
        }

    def _refresh_pci(self, now: float) -> None:
        if self._pci_read_at is None or now - self._pci_read_at >= PCI_REFRESH_SECONDS:
            self._pci_read_at = now
            self._pci_gpus = len(nvidia_gpus(self._sysfs_root) or ())
            for bus_id in self._pci:
                self._read_pci(bus_id)

    def _read_pci(self, bus_id: str) -> PciFacts | None:
        """PCI facts now; what was known stays when the bus has nothing to say any more."""
        facts = read_pci(self._sysfs_root, bus_id)
        if facts is not None or bus_id not in self._pci:
            self._pci[bus_id] = facts
        return self._pci[bus_id]

    def _pci_facts(self, bus_id: str | None) -> PciFacts | None:
        if bus_id is None:
            return None
        return self._pci[bus_id] if bus_id in self._pci else self._read_pci(bus_id)

    def _locate(self, gpus: Sequence[MergedGpu]) -> tuple[LocatedGpu, ...]:
        domains = self._domains_of(gpus)
        located = []
        for gpu in gpus:
            labels = _labels(gpu, self._pci_facts(gpu.pci_bus_id), domains)
            self._labels[gpu.uuid] = labels
            located.append(LocatedGpu(merged=gpu, labels=labels))
        return tuple(located)

    def _domains_of(self, gpus: Sequence[MergedGpu]) -> Mapping[str, str]:
        """Each GPU's NVLink domain; a domain keeps its name when one of its GPUs is lost."""
        places = {gpu.pci_bus_id for gpu in gpus}
        lost = [gpu for gpu in self._memory.boards() if gpu.pci_bus_id not in places]
        linked = [gpu for gpu in map(_linked, [*gpus, *lost]) if gpu is not None]
        domains = nvlink_domains(self.view.node_name, linked)
        racks = {gpu.pci_bus_id for gpu in linked if gpu.rack is not None}
        for bus_id, domain in domains.items():
            if bus_id in racks or bus_id not in self._domains:
                self._domains[bus_id] = domain
        return self._domains

    def _missing(self, gpus: Sequence[LocatedGpu]) -> tuple[tuple[str, ...], ...]:
        seen = {gpu.merged.uuid for gpu in gpus}
        places = {gpu.merged.pci_bus_id for gpu in gpus}
        return tuple(
            labels
            for uuid, labels in self._labels.items()
            if uuid not in seen and labels[2] not in places  # a replaced board is not missing
        )

    def _labels_of(self, uuid: str) -> tuple[str, ...]:
        return self._labels.get(uuid, ("", uuid, "", "", "", "", ""))

    def _find_owners(self, snapshot: SourceSnapshot) -> dict[int, str]:
        """Who runs each process of a snapshot; one that has just ended keeps the user it had."""
        before = self._owners.get(snapshot.source, {})
        owners = {}
        for pid in {p.pid for gpu in snapshot.gpus for p in gpu.processes or ()}:
            process = read_process(self._proc_root, pid)
            if process is not None:
                owners[pid] = user_name(self._root, process.uid)
            elif pid in before:
                owners[pid] = before[pid]
        return owners


def _linked(gpu: MergedGpu) -> LinkedGpu | None:
    if gpu.pci_bus_id is None:
        return None
    fabric, rack = gpu.fabric, None
    if fabric is not None:
        rack = rack_domain(
            fabric.cluster_uuid, fabric.clique_id, state=fabric.state, status=fabric.status
        )
    peers = frozenset(
        link.remote_bus_id or HIDDEN_SWITCH for link in gpu.nvlinks or () if link.active
    )
    return LinkedGpu(pci_bus_id=gpu.pci_bus_id, peers=peers, rack=rack)


def _labels(gpu: MergedGpu, pci: PciFacts | None, domains: Mapping[str, str]) -> tuple[str, ...]:
    return (
        "" if gpu.index is None else str(gpu.index),
        gpu.uuid,
        gpu.pci_bus_id or "",
        "" if pci is None or pci.numa_node is None else str(pci.numa_node),
        (pci and pci.pcie_root) or "",
        (pci and pci.pcie_switch) or "",
        domains.get(gpu.pci_bus_id or "", ""),
    )
