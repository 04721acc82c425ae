"""What NVML and dcgm-exporter tell of a simulated machine at the end of each second."""

from collections.abc import Iterator
from dataclasses import dataclass

from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import Board, Holding, boards, integral, run_at, run_start
from seedance_obs.sources.sim.truth import Run

SAMPLES = 6  # of process utilisation in a second, as the driver takes them


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """One process that was on a board at some time of the second.

    `activity` is its mean share (0 to 1) of the device (a board or a MIG instance) over the
    second, `peak` the largest of the driver's samples; `alive` says whether it is there at the end.
    """

    run: Run
    tenant: str
    mig: int | None
    activity: float
    peak: float
    alive: bool
    share: float  # of the device that its pod asked for: a replica, a shard


@dataclass(frozen=True, slots=True)
class InstanceReading:
    """One MIG instance: its size, and dcgm-exporter's profiling ratios over the second."""

    slices: int
    multiprocessors: int
    engine_active: float
    sm_active: float
    occupancy: float


@dataclass(frozen=True, slots=True)
class BoardReading:
    """One board at the end of a second."""

    gpu: int
    energy_mj: int
    power_watts: float  # at this very moment
    power_limit_watts: float
    slices: int
    processes: tuple[ProcessReading, ...]
    instances: tuple[InstanceReading, ...]  # empty: not in MIG mode

    @property
    def alive(self) -> tuple[ProcessReading, ...]:
        """The processes that NVML lists now."""
        return tuple(process for process in self.processes if process.alive)


Second = tuple[BoardReading, ...]


def read_seconds(machine: Machine, seconds: int) -> list[Second]:
    """The readings at 0, 1, ... up to `seconds` since the machine's epoch."""
    now = 0.0
    library = SimNvml(machine, lambda: now)
    library.call("nvmlInit")
    every = boards(machine)
    found = []
    for second in range(seconds + 1):
        now = float(second)
        found.append(tuple(_read(library, board, now) for board in every))
    return found


def _read(library: SimNvml, board: Board, t: float) -> BoardReading:
    device = f"gpu{board.gpu.index}"
    energy = library.call("nvmlDeviceGetTotalEnergyConsumption", device)
    power = library.call("nvmlDeviceGetPowerUsage", device)
    assert isinstance(energy, int)
    assert isinstance(power, int)
    return BoardReading(
        gpu=board.gpu.index,
        energy_mj=energy,
        power_watts=power / 1000,
        power_limit_watts=board.model.limit_watts,
        slices=7,
        processes=tuple(_processes(board, t)),
        instances=tuple(_instance(board, t, mig) for mig in range(len(board.gpu.mig))),
    )


def _processes(board: Board, t: float) -> Iterator[ProcessReading]:
    for held in board.holdings:
        workload = held.workload
        now = run_at(workload, t)
        for run in sorted({run_at(workload, t - 1), now} - {None}, key=str):
            samples = [
                _mean(held, run or 0, t - 1 + index / SAMPLES, t - 1 + (index + 1) / SAMPLES)
                for index in range(SAMPLES)
            ]
            yield ProcessReading(
                run=Run(workload.name, run or 0),
                tenant=workload.tenant,
                mig=held.mig,
                activity=workload.share * sum(samples) / SAMPLES,
                peak=workload.share * max(samples),
                alive=run == now,
                share=workload.share,
            )


def _mean(held: Holding, run: int, start: float, end: float) -> float:
    """The mean activity of one run over an interval; 0 while it is not there."""
    workload = held.workload
    begin = run_start(workload, run)
    over = float("inf") if workload.duration_s is None else begin + workload.duration_s
    first, last = max(start, begin), min(end, over)
    if last <= first:
        return 0.0
    done = integral(workload, held.rank, last, float) - integral(workload, held.rank, first, float)
    return max(0.0, done / (end - start))


def _instance(board: Board, t: float, mig: int) -> InstanceReading:
    profile = board.gpu.profile(mig)
    return InstanceReading(
        slices=profile.slices,
        multiprocessors=profile.multiprocessors,
        engine_active=round(board.busy_ratio(t, mig=mig), 6),
        sm_active=round(board.busy_ratio(t, mig=mig, of="sm"), 6),
        occupancy=round(board.busy_ratio(t, mig=mig, of="occupancy"), 6),
    )
