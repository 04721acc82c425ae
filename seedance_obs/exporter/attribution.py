"""Who used what on this node: joins processes, pods and boards into accounts, tick by tick.

`observe` runs on the thread that reads the driver, `advance` on the one that assembles the view.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from seedance_obs.attribution.tick import EnergyReading, Holder, Tick
from seedance_obs.exporter.books import Books
from seedance_obs.exporter.claims import Claims
from seedance_obs.exporter.holders import Use, holders_of
from seedance_obs.exporter.link_classes import link_classes
from seedance_obs.exporter.residency import Occupancy, occupancy
from seedance_obs.exporter.roster import Known, Roster
from seedance_obs.exporter.traffic import TrafficMeter
from seedance_obs.exporter.use_meter import UseMeter
from seedance_obs.exporter.view import AttributionView, LocatedGpu, ShownWorkload
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.topology.model import Topology
from seedance_obs.workload import Workload


class Owners(Protocol):
    """Whatever knows which workload a process belongs to."""

    def owner(self, pid: int) -> Workload | None:
        """The workload of a process, or None when it is gone or hidden."""
        ...


class Attribution:
    """The books of a node, and what is needed to keep them."""

    def __init__(
        self,
        books: Books,
        roster: Roster,
        *,
        owners: Owners,
        tenant_of: Callable[[Workload], str],
        workload_limit: int,
        shapley: bool,
    ) -> None:
        self._books = books
        self._roster = roster
        self._owners = owners
        self._tenant_of = tenant_of
        self._workload_limit = workload_limit
        self._shapley = shapley
        self._use = UseMeter()
        self._traffic = TrafficMeter()
        self._lock = threading.Lock()
        self._owned: dict[int, Workload] = {}
        self._dropped_claims = 0
        self._links: dict[str, Mapping[str, str]] = {}  # by workload

    def observe(self, snapshot: SourceSnapshot) -> None:
        """Look up the processes of a pass while they live, and add up what they used.

        One that ended since the last pass keeps the owner it had, for its last activity.
        """
        listed = {p.pid for gpu in snapshot.gpus for p in gpu.processes or ()}
        used = {u.pid for gpu in snapshot.gpus for u in gpu.process_use or ()}
        owned = {}
        for pid in listed | used:
            owner = self._owners.owner(pid) or self._owned.get(pid)
            if owner is not None:
                owned[pid] = owner
        with self._lock:
            self._owned = owned
        self._use.add(snapshot)

    def advance(
        self,
        gpus: Sequence[LocatedGpu],
        topology: Topology,
        now: float,
        *,
        pods: SourceSnapshot | None = None,
    ) -> None:
        """Book what passed on every board since its last tick.

        `pods` is what the kubelet told last: of its devices, living processes know better.
        """
        with self._lock:
            owned = self._owned
        claims = self._claims(pods)
        found = [(gpu, occupancy(gpu.merged, owned.get, claims.on(gpu.merged))) for gpu in gpus]
        self._links = _links_by_workload(found, topology)
        for gpu, occupied in found:
            self._dropped_claims += 0 if occupied is None else occupied.dropped_claims
            tick = self._tick(gpu.merged, occupied, owned, now)
            self._books.advance(gpu.merged.uuid, gpu.merged.model, tick)
        for account in self._roster.leave(now):
            self._books.leave(account)

    def view(self) -> AttributionView:
        """The books as they are now; of too many workloads the newest are hidden."""
        known = list(self._roster.known().items())
        shown = dict(known[: self._workload_limit])
        return AttributionView(
            tenants=tuple(self._books.tenants()),
            workloads=tuple(ShownWorkload(k.workload, k.tenant) for k in shown.values()),
            workload_accounts=tuple(a for a in self._books.workloads() if a.account in shown),
            hidden_workloads=len(known) - len(shown),
            evidence=tuple(self._books.evidence()),
            dropped_claims=self._dropped_claims,
            shapley=self._shapley,
        )

    def known(self) -> Mapping[str, Known]:
        """Every workload that is on a GPU, or was minutes ago, by account."""
        return self._roster.known()

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"books": self._books.as_state(), "roster": self._roster.as_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what a checkpoint kept."""
        self._roster.restore(state["roster"])
        self._books.restore(state["books"])

    def _tick(
        self,
        gpu: MergedGpu,
        occupied: Occupancy | None,
        owned: Mapping[int, Workload],
        now: float,
    ) -> Tick:
        used = self._use.take(gpu.uuid)
        holders: tuple[Holder, ...] | None = None
        parts = 1
        if occupied is not None:
            holders, parts = holders_of(
                gpu,
                occupied,
                None if used is None else Use(used),
                owner_of=owned.get,
                account_of=lambda workload: self._roster.account(
                    workload, self._tenant_of(workload), now
                ),
                links_of=lambda workload: self._links.get(workload.key, {}),
            )
        return Tick(
            at_us=round(gpu.listed_at * 1e6),
            holders=holders,
            parts=parts,
            energy=_energy(gpu),
            power_watts=gpu.value("power_watts"),
            power_limit_watts=gpu.value("power_limit_watts"),
            traffic=self._traffic.take(gpu),
        )


def _energy(gpu: MergedGpu) -> EnergyReading | None:
    read = gpu.readings.get("energy_mj")
    if read is None:
        return None
    return EnergyReading(int(read.value), round(read.taken_at * 1e6), read.source)


def _links_by_workload(
    found: Sequence[tuple[LocatedGpu, Occupancy | None]], topology: Topology
) -> dict[str, Mapping[str, str]]:
    held: dict[str, list[str]] = {}
    for gpu, occupied in found:
        for resident in () if occupied is None else occupied.residents():
            devices = held.setdefault(resident.workload.key, [])
            if gpu.device.name not in devices:
                devices.append(gpu.device.name)
    return {workload: link_classes(topology, devices) for workload, devices in held.items()}
