"""Who held what and who burned what on a simulated machine, found by adding up small steps.

Nothing here uses the closed forms: power and processes are asked for in the middle of every
step, so this is the yardstick both of the physics and of whatever measures the machine.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import NamedTuple

from seedance_obs.sources.sim.machine import GHOST, Machine
from seedance_obs.sources.sim.physics import Board, Holding, activity_at, boards, run_at

UNALLOCATED = "unallocated"
STEP_S = 0.01
_NOTHING = 1e-9  # of a board; less is rounding


class Run(NamedTuple):
    """One run of a workload, by the workload's name; the next run is another pod or job."""

    workload: str
    run: int


@dataclass(slots=True)
class Use:
    """What somebody had of the boards.

    Active are the watts that its own context and activity add to the idle board, and the time in
    which it kept (its share of) a device busy. Reserved is the idle board's draw by the part held,
    and the rest of the time of that part.
    """

    active_joules: float = 0.0
    reserved_joules: float = 0.0
    active_seconds: float = 0.0
    reserved_seconds: float = 0.0

    @property
    def joules(self) -> float:
        """All of its energy."""
        return self.active_joules + self.reserved_joules

    @property
    def gpu_seconds(self) -> float:
        """All of its time: by the part of the board that it held."""
        return self.active_seconds + self.reserved_seconds

    def add(self, other: "Use") -> None:
        """Take in what another has had."""
        self.active_joules += other.active_joules
        self.reserved_joules += other.reserved_joules
        self.active_seconds += other.active_seconds
        self.reserved_seconds += other.reserved_seconds


@dataclass(frozen=True, slots=True)
class Truth:
    """GPU-seconds and joules over one interval; who held nothing is absent."""

    runs: Mapping[Run, Use]
    tenants: Mapping[str, Use]
    unallocated: Use  # free boards and parts, reserved by nobody; active is what ghosts draw
    gpu_joules: tuple[float, ...]  # by GPU, in NVML's order

    @property
    def joules(self) -> dict[str, float]:
        """Active and reserved energy by tenant, with `unallocated`."""
        return {name: use.joules for name, use in self._accounts()}

    @property
    def gpu_seconds(self) -> dict[str, float]:
        """Active and reserved time by tenant, with `unallocated`."""
        return {name: use.gpu_seconds for name, use in self._accounts()}

    def _accounts(self) -> Iterator[tuple[str, Use]]:
        yield from self.tenants.items()
        if self.unallocated != Use():
            yield UNALLOCATED, self.unallocated


def truth(machine: Machine, t0: float, t1: float, *, step_s: float = STEP_S) -> Truth:
    """What happened from t0 to t1, in seconds since the machine's epoch.

    A device (a board, or a MIG instance) belongs in equal parts to the processes that have a
    context on it, and to those that were given it, from the start to the end of their runs;
    devices that nobody holds, and what no MIG instance covers, are unallocated, and so is what
    nobody's process draws. A lost GPU counts no more. The error is at most one step at each
    change of power or of processes.
    """
    runs: defaultdict[Run, Use] = defaultdict(Use)
    unallocated = Use()
    totals = []
    for board in boards(machine):
        total = 0.0
        for middle, width in steps(board, t0, t1, step_s):
            total += board.power_watts(middle) * width
            free = 1.0
            for run, use, part in _uses(board, middle, width):
                runs[run].add(use)
                free -= part
            ghosts = sum(board.holding_watts(held, middle) for held in board.ghosts(middle))
            unallocated.active_joules += ghosts * width
            if free > _NOTHING:
                unallocated.add(_reserved(board, free, free * width, width))
        totals.append(total)
    return Truth(dict(runs), _by_tenant(machine, runs), unallocated, tuple(totals))


def steps(board: Board, t0: float, t1: float, step_s: float) -> Iterator[tuple[float, float]]:
    """The middles and the widths of the steps from t0 to t1, or to the loss of a board."""
    end = min(t1, board.lost_at)
    if end <= t0:
        return
    count = ceil((end - t0) / step_s)
    width = (end - t0) / count
    for index in range(count):
        yield t0 + (index + 0.5) * width, width


def _by_tenant(machine: Machine, runs: Mapping[Run, Use]) -> dict[str, Use]:
    tenant_of = {workload.name: workload.tenant for workload in machine.workloads}
    tenants: defaultdict[str, Use] = defaultdict(Use)
    for run, use in runs.items():
        tenants[tenant_of[run.workload]].add(use)
    return dict(tenants)


def _uses(board: Board, t: float, width: float) -> Iterator[tuple[Run, Use, float]]:
    """What each living holding has of one step, and its part of the board."""
    alive = [held for held in board.holdings if _holds(held, t)]
    alive.sort(key=lambda held: -1 if held.mig is None else held.mig)
    for _, group in groupby(alive, key=lambda held: held.mig):
        device = list(group)
        part = device[0].size / len(device)
        busy = [held.weight * (activity_at(held.workload, held.rank, t) or 0.0) for held in device]
        for held, active, rest in zip(device, busy, _rests(part, busy), strict=True):
            use = _reserved(board, part, rest * width, width)
            use.active_seconds = active * width
            use.active_joules = board.holding_watts(held, t) * width
            yield _run(held, t), use, part


def _holds(held: Holding, t: float) -> bool:
    return held.workload.guise != GHOST and run_at(held.workload, t) is not None


def _rests(part: float, busy: list[float]) -> list[float]:
    """What of a device's idle time each holder has: the rest of its part.

    Where one is busy beyond its part, it is so in the idle time of the others, who lose in
    proportion to their rests.
    """
    rests = [max(0.0, part - active) for active in busy]
    idle = part * len(busy) - sum(busy)
    return [rest * idle / sum(rests) if idle > 0 else 0.0 for rest in rests]


def _reserved(board: Board, part: float, seconds: float, width: float) -> Use:
    return Use(reserved_joules=board.idle_watts * part * width, reserved_seconds=seconds)


def _run(held: Holding, t: float) -> Run:
    return Run(held.workload.name, run_at(held.workload, t) or 0)
