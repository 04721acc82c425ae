"""From who is on a board to what its account is told: parts, activity, memory, link classes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import lcm

from seedance_obs.attribution.tick import Holder
from seedance_obs.exporter.residency import UNKNOWN_WORKLOAD, Occupancy, Place, Resident
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import MigReadings
from seedance_obs.workload import Workload

# What says for how much of the time a board or an instance was busy: the meaning that process
# utilisation has, so that active time is the same wherever it is known from.
BUSY = ("engine_active_ratio", "utilization_ratio", "sm_active_ratio")

AccountOf = Callable[[Workload], str]


Use = Mapping[int, float]  # shares (0 to 1) of a board's time since its last tick, by pid


def holders_of(
    gpu: MergedGpu,
    occupied: Occupancy,
    use: Use | None,
    *,
    owner_of: Callable[[int], Workload | None],
    account_of: AccountOf,
    links_of: Callable[[Workload], Mapping[str, str]],
) -> tuple[tuple[Holder, ...], int]:
    """The holders of a board, each account once, and into how many parts the board is divided.

    Residents of one place share it equally. Activity is a share of the whole board: by process
    where the driver tells, else that of the place where one workload is alone on it, else unknown.
    """
    each = lcm(*(max(1, len(residents)) for _, residents in occupied.places))
    found = [
        Holder(
            account=account_of(resident.workload),
            parts=place.slices * each // len(residents),
            activity=_activity(gpu, occupied, place, residents, resident, use),
            memory_bytes=resident.memory_bytes,
            links=links_of(resident.workload),
        )
        for place, residents in occupied.places
        for resident in residents
    ]
    found += _departed(occupied, use, owner_of, account_of)
    return _each_once(found), occupied.slices * each


def _activity(
    gpu: MergedGpu,
    occupied: Occupancy,
    place: Place,
    residents: Sequence[Resident],
    resident: Resident,
    use: Use | None,
) -> float | None:
    if place.instance is not None:
        return _of_instance(place.instance, place.slices / occupied.slices, residents)
    if not resident.certain:
        return None
    if use is not None:
        return min(1.0, sum(use.get(pid, 0.0) for pid in resident.pids))
    if gpu.vgpus and len(residents) == len(gpu.vgpus):
        return gpu.vgpus[list(residents).index(resident)].sm_ratio
    return (
        next((gpu.value(name) for name in BUSY if name in gpu.readings), None)
        if (len(residents) == 1)
        else None
    )


def _of_instance(instance: MigReadings, size: float, residents: Sequence[Resident]) -> float | None:
    busy = next((instance.values[name] for name in BUSY if name in instance.values), None)
    return None if busy is None else busy * size / len(residents)


def _departed(
    occupied: Occupancy,
    use: Use | None,
    owner_of: Callable[[int], Workload | None],
    account_of: AccountOf,
) -> Iterable[Holder]:
    """The last activity of processes that have ended since the last tick."""
    if use is None:
        return
    residents = occupied.residents()
    present = {pid for resident in residents for pid in resident.pids}
    alone = residents[0].workload if len(residents) == 1 else UNKNOWN_WORKLOAD
    for pid, ratio in use.items():
        if pid not in present and ratio > 0 and (residents or owner_of(pid)):
            yield Holder(account_of(owner_of(pid) or alone), 0, min(1.0, ratio))


def _each_once(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """Holders of one account as one: a workload may hold several MIG instances of a board."""
    merged: dict[object, Holder] = {}
    for holder in holders:
        before = merged.get(holder.account)
        merged[holder.account] = holder if before is None else _together(before, holder)
    return tuple(merged.values())


def _together(one: Holder, other: Holder) -> Holder:
    known = None not in (one.activity, other.activity)
    return replace(
        one,
        parts=one.parts + other.parts,
        activity=(one.activity or 0.0) + (other.activity or 0.0) if known else None,
        memory_bytes=one.memory_bytes + other.memory_bytes,
        links={**other.links, **one.links},
    )
