"""From who is on a board to what its account is told: parts, activity, memory, link classes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import lcm

from seedance_obs.attribution.tick import Holder
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD, Occupancy, Place, Resident
from seedance_obs.merge import MergedGpu
from seedance_obs.workload import Workload

# What says for how much of the time a board or an instance was busy: the meaning that process
# utilisation has, so that active time is the same wherever it is known from.
BUSY = ("engine_active_ratio", "utilization_ratio", "sm_active_ratio")
HALF = 0.5  # of a tick: how long one that came or went in it was there, for all that is known

Use = Mapping[int, float]  # shares (0 to 1) of a board's time since its last tick, by pid
AccountOf = Callable[[Workload], str]
Activities = dict[str, float | None]  # by workload, as shares of the whole board


def holders_of(
    gpu: MergedGpu,
    occupied: Occupancy,
    before: Occupancy | None,
    use: Use | None,
    *,
    owner_of: Callable[[int], Workload | None],
    account_of: AccountOf,
    links_of: Callable[[Workload], Mapping[str, str]],
) -> tuple[tuple[Holder, ...], int]:
    """The holders of a board, each account once, and into how many parts the board is divided.

    Residents of one place share it equally; who was there at one end of the tick only held half
    of that. Activity is by process where the driver tells, else that of the place where one
    workload is alone on it, else unknown.
    """
    if gpu.process_use is None:
        use = None  # what is left of it is of before the driver fell silent
    known = before is not None and before.slices == occupied.slices
    ends = (before, occupied) if before is not None and known else (occupied, occupied)
    workloads = {r.workload.key: r.workload for end in ends for r in end.residents()}
    active: Activities = dict.fromkeys(workloads, 0.0)
    for place, residents in occupied.places:
        gone = _at(ends[0], place)
        for key, share in _activities(gpu, occupied, place, residents, gone, use).items():
            active[key] = _sum(active[key], share)
    for workload, share in _departed(gpu, occupied, use or {}, owner_of):
        workloads.setdefault(workload.key, workload)
        active[workload.key] = _sum(active.get(workload.key, 0.0), share)
    parts, whole = _parts(ends)
    memory: Counter[str] = Counter()
    for resident in occupied.residents():
        memory[resident.workload.key] += resident.memory_bytes
    holders = (
        Holder(account_of(workload), parts[key], active[key], memory[key], links_of(workload))
        for key, workload in workloads.items()
    )
    return tuple(holders), whole


def _parts(ends: Sequence[Occupancy]) -> tuple[Counter[str], int]:
    """Parts by workload, and of the whole board, over both halves of a tick."""
    each = lcm(*(max(1, len(residents)) for end in ends for _, residents in end.places))
    parts: Counter[str] = Counter()
    for end in ends:
        for place, residents in end.places:
            for resident in residents:
                parts[resident.workload.key] += place.slices * each // len(residents)
    return parts, sum(end.slices for end in ends) * each


def _at(occupied: Occupancy, place: Place) -> Sequence[Resident]:
    return next((here for there, here in occupied.places if there.number == place.number), ())


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else min(1.0, one + other)


def _activities(
    gpu: MergedGpu,
    occupied: Occupancy,
    place: Place,
    residents: Sequence[Resident],
    before: Sequence[Resident],
    use: Use | None,
) -> Activities:
    """The activity of each resident of a place, of who left too where only the place's is known."""
    if place.instance is not None:
        told = place.instance.values
        busy = next((told[name] for name in BUSY if name in told), None)
        return _shared(busy, place.slices / occupied.slices, residents, before)
    if gpu.vgpus:
        return {resident.workload.key: resident.activity for resident in residents}
    if use is not None:
        return {r.workload.key: _of_processes(r, use) for r in residents}
    if len(residents) > 1:
        return {r.workload.key: None for r in residents}
    busy = next((gpu.value(name) for name in BUSY if name in gpu.readings), None)
    return _shared(busy, 1.0, residents, before)


def _of_processes(resident: Resident, use: Use) -> float | None:
    if not resident.certain:
        return None
    return min(1.0, sum(use.get(pid, 0.0) for pid in resident.pids))


def _shared(
    busy: float | None, size: float, residents: Sequence[Resident], before: Sequence[Resident]
) -> Activities:
    """The activity of a place, shared by all that were on it since the last tick."""
    now, then = ({r.workload.key: None for r in those} for those in (residents, before))
    weights = {key: 1.0 if key in then and key in now else HALF for key in {**now, **then}}
    if busy is None:
        return dict(now)
    whole = sum(weights.values())
    return {key: busy * size * weight / whole for key, weight in weights.items()}


def _departed(
    gpu: MergedGpu, occupied: Occupancy, use: Use, owner_of: Callable[[int], Workload | None]
) -> Iterator[tuple[Workload, float]]:
    """The last activity of processes that have ended since the last tick.

    One that nobody could look up while it lived is of whoever has the board for itself.
    """
    present = {process.pid for process in gpu.processes or ()}
    sole = [resident.workload for resident in occupied.residents() if resident.sole]
    unnamed = sole[0] if len(sole) == 1 else UNKNOWN_WORKLOAD
    for pid, ratio in use.items():
        if pid not in present and ratio > 0:
            yield owner_of(pid) or unnamed, ratio
