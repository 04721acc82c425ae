"""From a tick to what the detectors of boards are told: each place, its contexts, its holders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD, Place, places_of
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.listed import Alive, Listed, ListedProcesses
from seedance_obs.exporter.leaks.places import (
    activity_at,
    free_ratio,
    idle_holders,
    processes_at,
    values_at,
)
from seedance_obs.exporter.leaks.told_use import ToldUse, video_ratio
from seedance_obs.exporter.leaks.warm import WarmServers
from seedance_obs.leaks.board_sight import BoardSight, ContextSight
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import GpuProcess, ProcessUse


@dataclass(frozen=True, slots=True)
class _Board:
    """A board at one tick, its seats, and what is known of its processes by pid."""

    gpu: MergedGpu
    seats: Sequence[Seat]
    listed: Mapping[int, Listed]
    use: Mapping[int, ProcessUse]
    idle_watts: float | None


class Sights:
    """Describes boards by what the driver, the books and the last probe say of them."""

    def __init__(self, warm: WarmServers) -> None:
        self._warm = warm
        self._told: tuple[Mapping[int, Alive], bool] = {}, False
        self._listed = ListedProcesses()
        self._use = ToldUse()

    def know(self, told: Mapping[int, Alive], *, trusted: bool) -> None:
        """Take what a probe found out of the processes on GPUs, by pid.

        A driver's list is not to be trusted where this exporter shares no pids with the host: it
        leaves out whom a container cannot see.
        """
        self._told = told, trusted

    def of(
        self,
        boards: Iterable[MergedGpu],
        seats: Sequence[Seat],
        idle_watts: Mapping[str, float | None],
    ) -> Iterator[BoardSight]:
        """Every place of these boards; `idle_watts` is what boards draw when idle, by UUID.

        What is known of a board that is not among them is kept.
        """
        told, trusted = self._told
        for gpu in boards:
            own = [seat for seat in seats if seat.gpu.uuid == gpu.uuid]
            known = [seat for seat in own if seat.workload != UNKNOWN_WORKLOAD]
            accounts = {pid: seat.account for seat in known for pid in seat.pids}
            listed, use = self._listed.note(gpu, told, accounts), self._use.of(gpu)
            board = _Board(gpu, own, listed, use, idle_watts.get(gpu.uuid))
            for place in places_of(gpu):
                yield self._sight(board, place, trusted=trusted)

    def _sight(self, board: _Board, place: Place, *, trusted: bool) -> BoardSight:
        gpu, instance = board.gpu, place.instance
        here = [seat for seat in board.seats if seat.instance == instance]
        processes = processes_at(gpu, place) if trusted else None
        values = values_at(gpu, place)
        used = values.get("memory_used_bytes")
        return BoardSight(
            gpu_uuid=gpu.uuid,
            at=gpu.listed_at,
            gpu_instance=None if instance is None else instance.gpu_instance,
            compute_instance=None if instance is None else instance.compute_instance,
            slices=place.slices,
            free_ratio=free_ratio(gpu, place, board.seats),
            activity_at=activity_at(gpu, place),
            memory_used_bytes=None if used is None else int(used),
            utilization_ratio=values.get("utilization_ratio", values.get("engine_active_ratio")),
            sm_active_ratio=values.get("sm_active_ratio"),
            dram_active_ratio=values.get("dram_active_ratio", values.get("memory_busy_ratio")),
            video_ratio=video_ratio(
                values.get("encoder_utilization_ratio"), values.get("decoder_utilization_ratio")
            ),
            power_watts=None if instance else gpu.value("power_watts"),
            idle_watts=None if instance else board.idle_watts,
            limit_watts=None if instance else gpu.value("power_limit_watts"),
            contexts=self._contexts(board, processes, here),
            idle_holders=idle_holders(gpu, processes, here),
        )

    def _contexts(
        self, board: _Board, processes: Sequence[GpuProcess] | None, seats: Sequence[Seat]
    ) -> tuple[ContextSight, ...] | None:
        if processes is None:
            return None
        seat_of = {pid: seat for seat in seats for pid in seat.pids}
        return tuple(
            self._context(board, process, seat_of.get(process.pid)) for process in processes
        )

    def _context(self, board: _Board, process: GpuProcess, seat: Seat | None) -> ContextSight:
        """A process in the driver's list."""
        listed, use = board.listed[process.pid], board.use.get(process.pid)
        account = seat.account if seat else ""
        workload = seat.workload if seat else None
        admitted = self._warm.admits(workload, tenant_of(account), listed.name.comm)
        return ContextSight(
            process=listed.name,
            account=account,
            owner=listed.owner,
            memory_bytes=process.memory_bytes,
            sm_ratio=use.sm_ratio if use else None,
            dram_ratio=use.memory_ratio if use else None,
            video_ratio=video_ratio(use.encoder_ratio, use.decoder_ratio) if use else None,
            alive=listed.alive,
            warm=process.graphics or admitted,
        )
