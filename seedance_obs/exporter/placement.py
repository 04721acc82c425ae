"""How well workloads sit on the links between a node's GPUs, tick by tick.

It runs on the thread that assembles, so that no scrape waits for a search among sets of GPUs: what
was found stays until the wiring changes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.faults import Faults
from seedance_obs.exporter.view import (
    LocatedGpu,
    PlacementView,
    ShownWorkload,
    WorkloadPlacement,
)
from seedance_obs.topology.bandwidth import PathModel
from seedance_obs.topology.class_bandwidths import class_bandwidths
from seedance_obs.topology.model import Absent, Topology
from seedance_obs.topology.placement.placements import Placements


class PlacementWatch:
    """Remembers what the links of the last topology carry."""

    def __init__(self) -> None:
        self._placements = Placements()
        self._topology: Topology | None = None
        self._paths: Mapping[tuple[str, str], float] = {}
        self._classes: Mapping[str, float] = {}
        self._faults = Faults()

    def view(
        self,
        gpus: Sequence[LocatedGpu],
        topology: Topology,
        seats: Iterable[Seat],
        workloads: Iterable[ShownWorkload],
    ) -> PlacementView | None:
        """The links and the workloads on them now; None where it fails, and the log says why."""
        with self._faults.kept_to("placement"):
            if topology is not self._topology:
                self._paths, self._classes = _paths(topology), class_bandwidths(topology)
                self._topology = topology
            whole = {gpu.merged.uuid: gpu.device.name for gpu in gpus if _is_whole(gpu)}
            held = _held(seats, whole)
            placed = tuple(self._placed(topology, held, [*whole.values()], workloads))
            return PlacementView(self._paths, self._classes, placed)
        return None

    def _placed(
        self,
        topology: Topology,
        held: Mapping[str, frozenset[str]],
        whole: Sequence[str],
        workloads: Iterable[ShownWorkload],
    ) -> Iterator[WorkloadPlacement]:
        """Workloads on several GPUs of which every pair's bandwidth is known."""
        for shown in workloads:
            key = shown.workload.key
            devices = held.get(account_name(shown.tenant, key), frozenset())
            if len(devices) < 2 or key == UNKNOWN_WORKLOAD.key:
                continue
            actual = self._placements.placement(topology, devices).mean
            best = self._placements.widest(topology, devices, among=whole).mean
            if not isinstance(actual, Absent) and not isinstance(best, Absent):
                yield WorkloadPlacement(key, shown.tenant, actual, best)


def _paths(topology: Topology) -> Mapping[tuple[str, str], float]:
    """What each pair of GPUs that are there can send each other; pairs that are unknown lack."""
    model = PathModel(topology)
    gpus = {gpu.name for gpu in topology.gpus if gpu.present}
    carried = {
        (path.source, path.target): model.bandwidth(path)
        for path in topology.paths
        if path.source in gpus and path.target in gpus
    }
    return {
        pair: found.bytes_per_second
        for pair, found in carried.items()
        if not isinstance(found, Absent)
    }


def _is_whole(gpu: LocatedGpu) -> bool:
    """Whether who holds the board may use its links: no MIG instance and no vGPU has any."""
    return gpu.device.mig is not True and not gpu.merged.vgpus


def _held(seats: Iterable[Seat], whole: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """The whole boards that each account is on, by device name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for seat in seats:
        if seat.gpu.uuid in whole:
            found[seat.account].add(whole[seat.gpu.uuid])
    return {account: frozenset(devices) for account, devices in found.items()}
