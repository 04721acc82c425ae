"""Who held what and who burned what on a simulated machine, found by adding up small steps.

Nothing here uses the closed forms: power and processes are asked for in the middle of every
step, so this is the yardstick both of the physics and of whatever measures the machine.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil

from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import Board, boards

UNALLOCATED = "unallocated"
STEP_S = 0.01


@dataclass(frozen=True, slots=True)
class Truth:
    """GPU-seconds and joules over one interval; tenants that held nothing are absent."""

    gpu_seconds: dict[str, float]  # by tenant, with `unallocated`
    joules: dict[str, float]  # by tenant, with `unallocated`
    gpu_joules: tuple[float, ...]  # by GPU, in NVML's order


def truth(machine: Machine, t0: float, t1: float, *, step_s: float = STEP_S) -> Truth:
    """What happened from t0 to t1, in seconds since the machine's epoch.

    A GPU's time and its whole energy (idle part included) go to the tenants with a process alive
    on it, in equal parts however many processes or MIG slices each has; without a process both
    are `unallocated`. A lost GPU counts no more. The error is at most one step at each change of
    power or of processes.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    joules: defaultdict[str, float] = defaultdict(float)
    totals = []
    for board in boards(machine):
        total = 0.0
        for middle, width in _steps(board, t0, t1, step_s):
            energy = board.power_watts(middle) * width
            total += energy
            for tenant, part in _parts(board, middle):
                seconds[tenant] += width * part
                joules[tenant] += energy * part
        totals.append(total)
    return Truth(dict(seconds), dict(joules), tuple(totals))


def _steps(board: Board, t0: float, t1: float, step_s: float) -> list[tuple[float, float]]:
    end = min(t1, board.lost_at)
    if end <= t0:
        return []
    count = ceil((end - t0) / step_s)
    width = (end - t0) / count
    return [(t0 + (index + 0.5) * width, width) for index in range(count)]


def _parts(board: Board, t: float) -> list[tuple[str, float]]:
    holders = {process.workload.tenant for process in board.processes(t)} or {UNALLOCATED}
    return [(tenant, 1.0 / len(holders)) for tenant in sorted(holders)]
