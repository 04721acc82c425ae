"""Who is on each place of a board: the workloads of its processes, and the pods that were given it.

A place is a whole board, or one MIG instance. Processes are what is true now; who was allocated a
device may be told late, or stay listed for half an hour after the end, so a claim that living
processes of another pod contradict is dropped.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import GpuProcess, MigReadings
from seedance_obs.workload import Workload

UNKNOWN_WORKLOAD = Workload("process", "unknown", 0)  # of processes nobody could look up


@dataclass(frozen=True, slots=True)
class Claim:
    """A workload that was given a place, by what allocates it; `shared`: others may be too."""

    workload: Workload
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A whole board (`instance` None) or one MIG instance of it, and its slices of the board."""

    instance: MigReadings | None
    slices: int

    @property
    def number(self) -> tuple[int, int | None] | None:
        """What names it on its board as long as the board is not cut anew."""
        if self.instance is None:
            return None
        return (self.instance.gpu_instance, self.instance.compute_instance)


@dataclass(slots=True)
class Resident:
    """A workload on a place; one without pids was given it and runs nothing there."""

    workload: Workload
    pids: list[int] = field(default_factory=list)
    memory_bytes: int = 0
    certain: bool = True  # False: the pids are those of this workload or of another one beside it


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The residents of each place; a place without any is free."""

    places: tuple[tuple[Place, tuple[Resident, ...]], ...]
    slices: int  # of the whole board
    dropped_claims: int = 0

    def residents(self) -> list[Resident]:
        """All residents, place by place."""
        return [resident for _, residents in self.places for resident in residents]


def occupancy(
    gpu: MergedGpu,
    owner_of: Callable[[int], Workload | None],
    claims_on: Callable[[Place], Sequence[Claim] | None],
    *,
    has_ended: Callable[[Workload], bool] = lambda _workload: False,
) -> Occupancy | None:
    """Who is where on a board; None where that cannot be told.

    `claims_on` answers None while who was given a place cannot be told, though it could before;
    `has_ended` is asked of those that run nothing.
    """
    places = places_of(gpu)
    computing: defaultdict[int | None, list[GpuProcess]] = defaultdict(list)
    for process in gpu.processes or ():
        if not process.graphics:
            computing[process.gpu_instance if gpu.mig else None].append(process)
    found, dropped, told = [], 0, gpu.processes is not None
    for place in places:
        here = _at(place, computing)
        owners = [owner_of(process.pid) for process in here]
        claims = claims_on(place)
        if claims is None and not any(owners):
            return None
        kept = _believable(claims or (), owners)
        dropped += len(claims or ()) - len(kept)
        told = told or bool(kept)
        found.append((place, tuple(_residents(here, owners, kept, has_ended))))
    if gpu.vgpus:
        found[0] = (places[0], tuple(_guests(gpu)))
    return Occupancy(tuple(found), _slices(gpu, places), dropped) if told else None


def places_of(gpu: MergedGpu) -> list[Place]:
    """The places of a board; a MIG instance of unknown size counts as one slice."""
    if gpu.mig:
        return [Place(instance, instance.slices or 1) for instance in gpu.mig]
    return [Place(None, 1)]


def _slices(gpu: MergedGpu, places: Sequence[Place]) -> int:
    taken = sum(place.slices for place in places)
    return max(taken, gpu.mig_slices or taken) if gpu.mig else 1


def _at(place: Place, computing: Mapping[int | None, list[GpuProcess]]) -> list[GpuProcess]:
    """The processes of a place, of those on each GPU instance."""
    instance = place.instance
    if instance is None:
        return computing.get(None, [])
    here = computing.get(instance.gpu_instance, [])
    if instance.compute_instance is None:
        return here
    compute = (instance.compute_instance, None)
    return [process for process in here if process.compute_instance in compute]


def _believable(claims: Sequence[Claim], owners: Iterable[Workload | None]) -> list[Claim]:
    """The claims that no living process of another pod contradicts."""
    pods = {
        name
        for owner in owners
        if owner is not None and owner.kind == "pod"
        for name in _names(owner)
    }
    return [
        claim
        for claim in claims
        if claim.shared or not pods or not pods.isdisjoint(_names(claim.workload))
    ]


def _names(workload: Workload) -> Iterator[object]:
    """What two accounts of one workload have in common: the key, or the pod's name."""
    yield workload.key
    if workload.namespace or workload.pod:
        yield workload.namespace, workload.pod


def _residents(
    processes: Sequence[GpuProcess],
    owners: Sequence[Workload | None],
    claims: Sequence[Claim],
    has_ended: Callable[[Workload], bool],
) -> list[Resident]:
    residents: dict[str, Resident] = {}
    strangers = []
    for process, owner in zip(processes, owners, strict=True):
        if owner is None:
            strangers.append(process)
        else:
            _put(residents, owner, process)
    running = {name for resident in residents.values() for name in _names(resident.workload)}
    idle = [c.workload for c in claims if running.isdisjoint(_names(c.workload))]
    idle = [workload for workload in idle if not has_ended(workload)]
    for workload in idle:
        residents[workload.key] = Resident(workload, certain=not strangers or len(idle) == 1)
    # Processes that cannot be looked up (no host pids) are those of the pods nothing else is of.
    unknown = idle[0] if len(idle) == 1 else UNKNOWN_WORKLOAD
    for process in strangers if len(idle) < 2 else ():
        _put(residents, unknown, process)
    return list(residents.values())


def _put(residents: dict[str, Resident], workload: Workload, process: GpuProcess) -> None:
    resident = residents.setdefault(workload.key, Resident(workload))
    resident.pids.append(process.pid)
    resident.memory_bytes += process.memory_bytes or 0


def _guests(gpu: MergedGpu) -> Iterable[Resident]:
    for guest in gpu.vgpus or ():
        workload = Workload("vgpu", guest.vm_id or guest.vgpu_uuid, 0)
        yield Resident(workload, memory_bytes=guest.memory_bytes or 0)
