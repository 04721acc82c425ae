"""What is told of one place of a board: its readings, its processes, and who holds it."""

from collections.abc import Mapping, Sequence

from seedance_obs.exporter.books.residency import Place, places_of
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import GpuProcess


def values_at(gpu: MergedGpu, place: Place) -> Mapping[str, float]:
    """The readings of a place by quantity."""
    if place.instance is None:
        return {name: read.value for name, read in gpu.readings.items()}
    values = dict(place.instance.values)
    if not _has_memory(gpu, place):
        values.pop("memory_used_bytes", None)
    return values


def _has_memory(gpu: MergedGpu, place: Place) -> bool:
    """Whether what is in use at a GPU instance is told of this compute instance of it.

    They share it: it is told of the first, while no process on another may be the one that uses it.
    """
    mine = place.instance
    of_all = [each for each in gpu.mig if mine and each.gpu_instance == mine.gpu_instance]
    if mine is None or len(of_all) == 1:
        return True
    elsewhere = [
        process
        for process in gpu.processes or ()
        if process.gpu_instance == mine.gpu_instance
        and process.compute_instance != mine.compute_instance
    ]
    return mine == of_all[0] and not elsewhere


def activity_at(gpu: MergedGpu, place: Place) -> float | None:
    """When a whole board's SM activity was read, or what stands for it; of an instance unknown."""
    names = ("sm_active_ratio", "utilization_ratio")
    known = [gpu.readings[name] for name in names if name in gpu.readings]
    return known[0].taken_at if known and place.instance is None else None


def processes_at(gpu: MergedGpu, place: Place) -> Sequence[GpuProcess] | None:
    """The driver's list at a place, graphics too; None where it says nothing."""
    if gpu.processes is None or gpu.vgpus:
        return None
    if place.instance is None:
        return gpu.processes
    number, compute = place.instance.gpu_instance, place.instance.compute_instance
    return [
        process
        for process in gpu.processes
        if process.gpu_instance == number
        and (None in (compute, process.compute_instance) or compute == process.compute_instance)
    ]


def idle_holders(
    gpu: MergedGpu, processes: Sequence[GpuProcess] | None, seats: Sequence[Seat]
) -> tuple[str, ...]:
    """Who was given a place and runs nothing there; nobody while any process is nobody's."""
    seated = {pid for seat in seats for pid in seat.pids}
    computing = {process.pid for process in processes or () if not process.graphics}
    if gpu.vgpus or processes is None or not computing <= seated:
        return ()
    return tuple(seat.account for seat in seats if not seat.pids)


def free_ratio(gpu: MergedGpu, place: Place, seats: Sequence[Seat]) -> float:
    """Which part (0 to 1) a place is of what nobody holds of its board; 0 where it is held.

    Slices of the board without an instance are nobody's either. `seats` are all of the board.
    """
    if place.instance is None:
        return 1.0
    held = [seat.instance for seat in seats]
    if place.instance in held:
        return 0.0
    places = places_of(gpu)
    whole = max(gpu.mig_slices or 0, sum(each.slices for each in places))
    return place.slices / (whole - sum(each.slices for each in places if each.instance in held))
