"""What of each board is held and what is free, in the units in which it is handed out.

A board that is not cut is one unit; a board in MIG mode has its instances for units, and what is
not cut into instances can be given to nobody: it is neither held nor free.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seedance_obs.exporter.books.residency import Occupancy, Resident
from seedance_obs.exporter.fragmentation.limits import Holding, Limit, taken
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.fragmentation.request import WHOLE_GPU
from seedance_obs.sources.readings import MigReadings
from seedance_obs.workload import Workload


@dataclass(frozen=True, slots=True)
class Unit:
    """A board or MIG instance, as it is handed out.

    Attributes:
        size: The share (0 to 1) of its board that it is.
        free: The share of its board that nobody holds of it.
        free_memory_bytes: Its memory that nobody holds and nothing uses; None where not known.
        holds: Who holds it, and which share of the board.
    """

    size: float
    free: float
    free_memory_bytes: float | None
    holds: tuple[tuple[Workload, float], ...] = ()


def milli(share: float) -> int:
    """A share of a board in thousandths: the same for what is free and for what is asked for."""
    return round(share * WHOLE_GPU)


def units_of(
    gpu: LocatedGpu, occupied: Occupancy | None, limits: Mapping[Holding, Limit]
) -> tuple[Unit, ...] | None:
    """The units of a board; none where it is in MIG mode and not cut.

    None where it cannot be told who holds it, or how large its instances are.
    """
    if occupied is None:
        return None
    if gpu.device.mig is True and not gpu.merged.mig:
        return None if occupied.residents() else ()
    units = []
    for place, residents in occupied.places:
        if place.instance is None:
            units.append(_board(gpu, residents, limits))
        else:
            size = _size(place.instance, gpu.merged.mig_slices)
            if size is None:
                return None
            units.append(_instance(place.instance, size, residents))
    return tuple(units)


def _board(
    gpu: LocatedGpu, residents: tuple[Resident, ...], limits: Mapping[Holding, Limit]
) -> Unit:
    takes = [taken(gpu.merged.uuid, resident, limits) for resident in residents]
    most = max(sum(take.memory for take in takes), sum(take.sm for take in takes))
    free = max(0, WHOLE_GPU - milli(most)) / WHOLE_GPU  # ten tenths must leave nothing
    holders = (resident.workload for resident in residents)
    values = {name: chosen.value for name, chosen in gpu.merged.readings.items()}
    return Unit(
        size=1.0,
        free=free,
        free_memory_bytes=_free_memory(values, free),
        holds=tuple(zip(holders, map(max, takes), strict=True)),
    )


def _instance(instance: MigReadings, size: float, residents: tuple[Resident, ...]) -> Unit:
    """An instance is taken whole by whoever is on it."""
    free = 0.0 if residents else 1.0
    return Unit(
        size=size,
        free=size * free,
        free_memory_bytes=_free_memory(instance.values, free),
        holds=tuple((resident.workload, size) for resident in residents),
    )


def _size(instance: MigReadings, board_slices: int | None) -> float | None:
    if not instance.slices or not board_slices:
        return None
    return min(1.0, instance.slices / board_slices)


def _free_memory(values: Mapping[str, float], free: float) -> float | None:
    """Bytes that are neither used nor, by the free share of the unit, anybody's."""
    if not free:
        return 0.0
    unused = _unused_memory(values)
    if free == 1.0 or unused is None:
        return unused
    total = values.get("memory_total_bytes")
    return None if total is None else min(unused, free * total)


def _unused_memory(values: Mapping[str, float]) -> float | None:
    """Total less used less reserved, which is what drivers call free."""
    if "memory_free_bytes" in values:
        return values["memory_free_bytes"]
    names = ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")
    if any(name not in values for name in names):
        return None
    total, used, reserved = (values[name] for name in names)
    return max(0.0, total - used - reserved)
