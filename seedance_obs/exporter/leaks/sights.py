"""From a tick to what the detectors of boards are told: each place, its contexts, its holders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD, Place, places_of
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.warm import WarmServers
from seedance_obs.leaks.board_sight import BoardSight, ContextSight
from seedance_obs.leaks.suspect import ProcessName
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import GpuProcess, ProcessUse


@dataclass(frozen=True, slots=True)
class Alive:
    """A process on a GPU as the last probe found it; `alive` is None where nobody can tell."""

    name: ProcessName
    alive: bool | None


class Sights:
    """Describes boards by what the driver, the books and the last probe say of them."""

    def __init__(self, warm: WarmServers) -> None:
        self._warm = warm
        self._known: Mapping[int, Alive] = {}
        self._trusted = False
        self._owners: dict[int, str] = {}  # accounts of the processes that drivers list, by pid

    def know(self, known: Mapping[int, Alive], *, trusted: bool) -> None:
        """Take what a probe found out of the processes on GPUs, by pid.

        A driver's list is not to be trusted where this exporter shares no pids with the host: it
        leaves out whom a container cannot see.
        """
        self._known, self._trusted = known, trusted

    def of(
        self,
        boards: Iterable[MergedGpu],
        seats: Sequence[Seat],
        idle_watts: Mapping[str, float | None],
    ) -> Iterator[BoardSight]:
        """Every place of every board; `idle_watts` is what boards draw when idle, by UUID."""
        boards = list(boards)
        self._remember(boards, seats)
        for gpu in boards:
            own = [seat for seat in seats if seat.gpu.uuid == gpu.uuid]
            for place in places_of(gpu):
                yield self._sight(gpu, place, own, idle_watts.get(gpu.uuid))

    def _remember(self, boards: Iterable[MergedGpu], seats: Iterable[Seat]) -> None:
        """Keep whose each process is for as long as a driver lists it, also after its end."""
        known = [seat for seat in seats if seat.workload != UNKNOWN_WORKLOAD]
        self._owners |= {pid: seat.account for seat in known for pid in seat.pids}
        listed = {process.pid for gpu in boards for process in gpu.processes or ()}
        self._owners = {pid: own for pid, own in self._owners.items() if pid in listed}

    def _sight(
        self, gpu: MergedGpu, place: Place, seats: Sequence[Seat], idle_watts: float | None
    ) -> BoardSight:
        instance = place.instance
        here = [seat for seat in seats if seat.instance == instance]
        processes = _processes(gpu, place) if self._trusted else None
        values = {name: read.value for name, read in gpu.readings.items()}
        if instance is not None:
            values = dict(instance.values)
        used = values.get("memory_used_bytes")
        return BoardSight(
            gpu_uuid=gpu.uuid,
            at=gpu.listed_at,
            activity_at=None if instance else _activity_at(gpu),
            gpu_instance=None if instance is None else instance.gpu_instance,
            memory_used_bytes=None if used is None else int(used),
            utilization_ratio=values.get("utilization_ratio", values.get("engine_active_ratio")),
            sm_active_ratio=values.get("sm_active_ratio"),
            dram_active_ratio=values.get("dram_active_ratio", values.get("memory_busy_ratio")),
            power_watts=None if instance else gpu.value("power_watts"),
            idle_watts=None if instance else idle_watts,
            limit_watts=None if instance else gpu.value("power_limit_watts"),
            contexts=self._contexts(gpu, processes, here),
            idle_holders=_idle_holders(gpu, processes, here),
        )

    def _contexts(
        self, gpu: MergedGpu, processes: Sequence[GpuProcess] | None, seats: Sequence[Seat]
    ) -> tuple[ContextSight, ...] | None:
        if processes is None:
            return None
        seat_of = {pid: seat for seat in seats for pid in seat.pids}
        use = _use_by_pid(gpu)
        return tuple(self._context(process, seat_of.get(process.pid), use) for process in processes)

    def _context(
        self, process: GpuProcess, seat: Seat | None, use: Mapping[int, ProcessUse] | None
    ) -> ContextSight:
        """A process in the driver's list; who has no use where the driver tells it, has none."""
        known = self._known.get(process.pid)
        name = known.name if known else ProcessName(process.pid, None)
        account = seat.account if seat else ""
        workload = seat.workload if seat else None
        own = None if use is None else use.get(process.pid)
        return ContextSight(
            process=name,
            account=account,
            owner=self._owners.get(process.pid, ""),
            memory_bytes=process.memory_bytes,
            sm_ratio=own.sm_ratio if own else None if use is None else 0.0,
            dram_ratio=own.memory_ratio if own else None,
            alive=known.alive if known else None,
            warm=process.graphics or self._warm.admits(workload, tenant_of(account), name.comm),
        )


def _use_by_pid(gpu: MergedGpu) -> Mapping[int, ProcessUse] | None:
    """Each process's use of a whole board; None where the driver does not tell it."""
    if gpu.process_use is None or gpu.mig:
        return None
    return {use.pid: use for use in gpu.process_use}


def _activity_at(gpu: MergedGpu) -> float | None:
    """When the board's SM activity was read, or what stands for it."""
    names = ("sm_active_ratio", "utilization_ratio")
    return next((gpu.readings[name].taken_at for name in names if name in gpu.readings), None)


def _processes(gpu: MergedGpu, place: Place) -> Sequence[GpuProcess] | None:
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


def _idle_holders(
    gpu: MergedGpu, processes: Sequence[GpuProcess] | None, seats: Sequence[Seat]
) -> tuple[str, ...]:
    """Who was given a place and runs nothing there; nobody while any process is nobody's."""
    seated = {pid for seat in seats for pid in seat.pids}
    computing = {process.pid for process in processes or () if not process.graphics}
    if gpu.vgpus or processes is None or not computing <= seated:
        return ()
    return tuple(seat.account for seat in seats if not seat.pids)
