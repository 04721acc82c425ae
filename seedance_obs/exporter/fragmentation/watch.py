"""Fragmentation of a node, tick by tick: from who holds its boards to what is left of them.

It runs on the thread that assembles. Holders are those of the books: whoever was given a device
holds it, though nothing runs there, and so does a process that nobody placed.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import fsum

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.attribution import KUBELET_PATIENCE_SECONDS
from seedance_obs.exporter.books.residency import Occupancy
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.fragmentation.free_gpus import free_gpus
from seedance_obs.exporter.fragmentation.limits import limits_of
from seedance_obs.exporter.fragmentation.placements import Placements
from seedance_obs.exporter.fragmentation.units import Unit, units_of
from seedance_obs.exporter.view import FragmentationView, LocatedGpu, QuotaRow, SourceState
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.topology.model import Topology


class FragmentationWatch:
    """Remembers the node's placements; `kubelet`: there is one to tell who was given what."""

    def __init__(self, settings: NodeSettings, *, kubelet: bool) -> None:
        self._placements = Placements(settings.fragmentation_placements)
        self._kubelet = kubelet
        self._job_map = bool(settings.slurm_job_map_directory)
        self._listed: set[str] = set()  # boards that the driver has told of
        self._faults = Faults()

    def view(
        self,
        gpus: Sequence[LocatedGpu],
        topology: Topology,
        occupied: Mapping[str, Occupancy | None],
        quotas: Iterable[QuotaRow],
        now: float,
        *,
        snapshots: Iterable[SourceSnapshot] = (),
        pods: SourceSnapshot | None,
        states: Mapping[str, SourceState],
    ) -> FragmentationView | None:
        """What is free now; None where it cannot be computed, and the log says why.

        Args:
            gpus: The boards that anybody tells of; one that is lost is neither held nor free.
            topology: Where they sit.
            occupied: Who is on each, by UUID; None where that cannot be told.
            quotas: What those who share a board may use of it.
            now: Monotonic seconds.
            snapshots: What each source told last, by which a board is known to be lost.
            pods: What the kubelet told last.
            states: How the sources fare, of which Slurm's job map is one.
        """
        with self._faults.kept_to("fragmentation"):
            there = self._without_lost(gpus, snapshots)
            limits = limits_of(quotas, _memory_total(there))
            told = self._jobs_told(states) and self._pods_told(there, pods, now)
            found = []
            for gpu in there:
                units = units_of(gpu, occupied.get(gpu.merged.uuid), limits)
                found.append((gpu, units if told or _is_full(units) else None))
            return self._measured(found, topology)
        return None

    def _without_lost(
        self, gpus: Sequence[LocatedGpu], snapshots: Iterable[SourceSnapshot]
    ) -> Sequence[LocatedGpu]:
        """Without the boards that the driver told of before and, while it answers, no longer does.

        A page may go on listing such a board, with values that it had or with none.
        """
        listed = {
            gpu.uuid
            for snapshot in snapshots
            if any(gpu.processes is not None for gpu in snapshot.gpus)
            for gpu in snapshot.gpus
        }
        self._listed |= listed
        lost = self._listed - listed if listed else set()
        return [gpu for gpu in gpus if gpu.merged.uuid not in lost]

    def _measured(
        self, found: Sequence[tuple[LocatedGpu, tuple[Unit, ...] | None]], topology: Topology
    ) -> FragmentationView:
        boards = [(gpu, units) for gpu, units in found if units is not None]
        self._placements.note(chain.from_iterable(units for _, units in boards))
        unknown = len(found) - len(boards)
        told = bool(boards) and not unknown
        return FragmentationView(
            boards={gpu.merged.uuid: fsum(u.free for u in units) for gpu, units in boards if units},
            unknown=unknown,
            placements=len(self._placements),
            free=free_gpus(boards, topology, self._placements.asked) if told else None,
        )

    def _pods_told(
        self, gpus: Iterable[LocatedGpu], pods: SourceSnapshot | None, now: float
    ) -> bool:
        """Whether it is known who was given what, where there is a kubelet.

        A device that nobody can tell by the kubelet's spelling may be any of those that look free.
        In its place a DCGM page will do, but only one that names pods: others show none either.
        """
        if not self._kubelet or any(gpu.merged.pods for gpu in gpus):
            return True
        recent = pods is not None and now - pods.taken_at <= KUBELET_PATIENCE_SECONDS
        return recent and pods is not None and not pods.dropped.get("device")

    def _jobs_told(self, states: Mapping[str, SourceState]) -> bool:
        return not self._job_map or ("slurm_job_map" in states and states["slurm_job_map"].up)


def _is_full(units: tuple[Unit, ...] | None) -> bool:
    """Whether nothing looks free: then nothing may have been given to somebody unheard of."""
    return units is not None and not any(unit.free for unit in units)


def _memory_total(gpus: Iterable[LocatedGpu]) -> Mapping[str, float]:
    totals = ((gpu.merged.uuid, gpu.merged.value("memory_total_bytes")) for gpu in gpus)
    return {uuid: total for uuid, total in totals if total is not None}
