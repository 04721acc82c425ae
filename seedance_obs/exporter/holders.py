"""From who is on a board to what its account is told: parts, activity, memory, link classes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import lcm

from seedance_obs.attribution.tick import Holder
from seedance_obs.exporter.residency import UNKNOWN_WORKLOAD, Occupancy, Place, Resident
from seedance_obs.merge import MergedGpu
from seedance_obs.workload import Workload

# What says for how much of the time a board or an instance was busy: the meaning that process
# utilisation has, so that active time is the same wherever it is known from.
BUSY = ("engine_active_ratio", "utilization_ratio", "sm_active_ratio")
HALF = 0.5  # of a tick: how long one that came or went in it was there, for all that is known

Use = Mapping[int, float]  # shares (0 to 1) of a board's time since its last tick, by pid
AccountOf = Callable[[Workload], str]


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

    Residents of one place share it equally; those that were there at the tick `before` and are not
    now come with their last activity only. Activity is a share of the whole board: by process
    where the driver tells, else that of the place where one workload is alone on it, else unknown.
    """
    each = lcm(*(max(1, len(residents)) for _, residents in occupied.places))
    found = []
    for place, residents in occupied.places:
        busy = _activities(gpu, occupied, place, residents, _at(before, place), use)
        for resident in residents:
            found.append(
                Holder(
                    account=account_of(resident.workload),
                    parts=place.slices * each // len(residents),
                    activity=busy[resident.workload.key],
                    memory_bytes=resident.memory_bytes,
                    links=links_of(resident.workload),
                )
            )
            del busy[resident.workload.key]
        left = {r.workload.key: r.workload for r in _at(before, place)}
        found += [Holder(account_of(left[key]), 0, share) for key, share in busy.items() if share]
    if use is not None:
        found += _departed(occupied, use, owner_of, account_of)
    return _each_once(found), occupied.slices * each


def _at(occupied: Occupancy | None, place: Place) -> Sequence[Resident]:
    if occupied is None:
        return ()
    return next((here for there, here in occupied.places if there.number == place.number), ())


def _activities(
    gpu: MergedGpu,
    occupied: Occupancy,
    place: Place,
    residents: Sequence[Resident],
    before: Sequence[Resident],
    use: Use | None,
) -> dict[str, float | None]:
    """The activity of each resident of a place, and of those that have left an instance."""
    if place.instance is not None:
        return _of_instance(place, occupied.slices, residents, before)
    if gpu.vgpus and len(residents) == len(gpu.vgpus):
        return {
            resident.workload.key: guest.sm_ratio
            for resident, guest in zip(residents, gpu.vgpus, strict=True)
        }
    if use is not None:
        return {
            r.workload.key: min(1.0, sum(use.get(pid, 0.0) for pid in r.pids))
            if r.certain
            else None
            for r in residents
        }
    busy = next((gpu.value(name) for name in BUSY if name in gpu.readings), None)
    return {r.workload.key: busy if len(residents) == 1 else None for r in residents}


def _of_instance(
    place: Place, slices: int, residents: Sequence[Resident], before: Sequence[Resident]
) -> dict[str, float | None]:
    """The activity of a MIG instance, shared by all that were on it since the last tick."""
    values = place.instance.values if place.instance else {}
    busy = next((values[name] for name in BUSY if name in values), None)
    now, then = ({r.workload.key for r in those} for those in (residents, before))
    weights = {key: 1.0 if key in then or not then else HALF for key in now}
    weights |= dict.fromkeys(then - now, HALF)
    if busy is None:
        return dict.fromkeys(now)
    whole = sum(weights.values())
    return {key: busy * place.slices / slices * weight / whole for key, weight in weights.items()}


def _departed(
    occupied: Occupancy,
    use: Use,
    owner_of: Callable[[int], Workload | None],
    account_of: AccountOf,
) -> Iterator[Holder]:
    """The last activity of processes that have ended since the last tick."""
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
