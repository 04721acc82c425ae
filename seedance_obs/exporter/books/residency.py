"""Who is on each place of a board: the workloads of its processes, and the pods that were given it.

A place is a whole board, or one MIG instance. Processes are what is true now; who was allocated a
device may be told late, or stay listed for half an hour after the end, so a claim that living
processes of another pod contradict is dropped.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
    sole: bool = False  # it was given the whole place for itself
    activity: float | None = None  # of a virtual machine, as its host's driver says


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
    `has_ended` is asked of those that run nothing. A process on an instance that nobody lists
    makes the whole board one of which that cannot be told.
    """
    places = places_of(gpu)
    computing: defaultdict[int | None, list[GpuProcess]] = defaultdict(list)
    for process in gpu.processes or ():
        if not process.graphics:
            computing[process.gpu_instance if gpu.mig else None].append(process)
    found, dropped, told = [], 0, gpu.processes is not None
    placed = 0
    for place in places:
        here = _at(place, computing)
        placed += len(here)
        owners = [owner_of(process.pid) for process in here]
        claims = claims_on(place)
        if claims is None and not any(owners):
            return None
        kept = _believable(claims or (), owners)
        dropped += len(claims or ()) - len(kept)
        told = told or bool(kept)
        found.append((place, tuple(_residents(here, owners, kept, has_ended))))
    if placed < sum(map(len, computing.values())):
        return None
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
    """The claims that no living process of another pod (or job, of a job) contradicts.

    A pod whose name nobody knows contradicts nothing: it may be the very one.
    """
    if all(claim.shared for claim in claims):
        return list(claims)
    named: defaultdict[str, set[object]] = defaultdict(set)
    for owner in owners:
        if owner is not None and (owner.pod or owner.kind != "pod"):
            named[owner.kind].update(_names(owner))
    return [
        claim
        for claim in claims
        if claim.shared
        or not (others := named.get(claim.workload.kind))
        or not others.isdisjoint(_names(claim.workload))
    ]


def _names(workload: Workload) -> Iterator[object]:
    """What two accounts of one workload have in common: the key, the pod's name, the job's id."""
    yield workload.key
    if workload.namespace or workload.pod:
        yield workload.namespace, workload.pod
    if workload.slurm_job:
        yield workload.slurm_job


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
    _name_the_nameless(residents, claims)
    running = {name for resident in residents.values() for name in _names(resident.workload)}
    idle = [c.workload for c in claims if running.isdisjoint(_names(c.workload))]
    idle = [workload for workload in idle if not has_ended(workload)]
    for workload in idle:
        residents[workload.key] = Resident(workload, certain=not strangers or len(idle) == 1)
    # Processes that cannot be looked up (no host pids) are those of the pods nothing else is of.
    unknown = idle[0] if len(idle) == 1 else UNKNOWN_WORKLOAD
    for process in strangers if len(idle) < 2 else ():
        _put(residents, unknown, process)
    given = {name for claim in claims if not claim.shared for name in _names(claim.workload)}
    for resident in residents.values():
        resident.sole = not given.isdisjoint(_names(resident.workload))
    return list(residents.values())


def _name_the_nameless(residents: dict[str, Resident], claims: Sequence[Claim]) -> None:
    """Give the only pod without a name the only name that is left over."""
    nameless = [
        resident
        for resident in residents.values()
        if resident.workload.kind == "pod" and not resident.workload.pod
    ]
    running = {name for resident in residents.values() for name in _names(resident.workload)}
    over = [
        claim.workload
        for claim in claims
        if claim.workload.pod and running.isdisjoint(_names(claim.workload))
    ]
    if len(nameless) == len(over) == 1:
        named = over[0]
        nameless[0].workload = replace(
            nameless[0].workload,
            namespace=named.namespace,
            pod=named.pod,
            container=nameless[0].workload.container or named.container,
        )


def _put(residents: dict[str, Resident], workload: Workload, process: GpuProcess) -> None:
    resident = residents.setdefault(workload.key, Resident(workload))
    resident.pids.append(process.pid)
    resident.memory_bytes += process.memory_bytes or 0


def _guests(gpu: MergedGpu) -> Iterable[Resident]:
    """The virtual machines of a vGPU host; one may have several virtual GPUs of a board."""
    found: dict[str, Resident] = {}
    for guest in gpu.vgpus or ():
        workload = Workload("vgpu", guest.vm_id or guest.vgpu_uuid, 0)
        resident = found.setdefault(workload.key, Resident(workload, activity=0.0))
        resident.memory_bytes += guest.memory_bytes or 0
        known = resident.activity is not None and guest.sm_ratio is not None
        resident.activity = (resident.activity or 0.0) + (guest.sm_ratio or 0.0) if known else None
    return found.values()
