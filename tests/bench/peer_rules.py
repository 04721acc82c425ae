"""The rules by which peers give a board's energy to its tenants, from their published formulas.

All are fed at one second, which is kinder than what they do by default: Kepler reads every 5 s,
CEEMS integrates scrapes that are 15 to 30 s apart, OpenCost averages over minutes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from tests.bench.sim_readings import BoardReading, ProcessReading, Second

Joules = Mapping[str, float]  # by tenant
Rule = Callable[[Sequence[Second]], Joules]
SECONDS = 1.0  # between two readings


def ceems(seconds: Sequence[Second]) -> Joules:
    """Board watts by shard, or by MIG instance with the profiling metrics, summed at each scrape.

    A unit has `NumShares / CurrentShares` of a shared board; an instance has the board by
    SM_ACTIVE x SM_OCCUPANCY x its multiprocessors, and nobody has it where all are idle.
    """
    return _ceems(
        seconds,
        lambda board, mig: (
            board.instances[mig].sm_active
            * board.instances[mig].occupancy
            * board.instances[mig].multiprocessors
        ),
    )


def ceems_without_profiling(seconds: Sequence[Second]) -> Joules:
    """The same, an instance having the board by its multiprocessors among the occupied ones."""
    return _ceems(seconds, lambda board, mig: board.instances[mig].multiprocessors)


def kepler(seconds: Sequence[Second]) -> Joules:
    """Active watts by process, times the interval; active is what exceeds the least idle watts.

    Idle watts are the least seen without a process (0 before), and belong to nobody. Sharers of a
    board have active watts by their largest utilisation sample, or equally where all are idle;
    instances by engine activity, whatever their size. A process begins with its second reading.
    """
    joules: Counter[str] = Counter()
    idle: dict[int, float] = {}
    for before, now in pairwise(seconds):
        for earlier, board in zip(before, now, strict=True):
            if not board.alive:
                idle[board.gpu] = min(idle.get(board.gpu, board.power_watts), board.power_watts)
            known = {process.run for process in earlier.alive}
            active = max(0.0, board.power_watts - idle.get(board.gpu, 0.0))
            for process, ratio in _kepler_ratios(board):
                if process.run in known:
                    joules[process.tenant] += active * ratio * SECONDS
    return joules


def opencost(seconds: Sequence[Second]) -> Joules:
    """The board's energy by the part of it that a pod requests; what nobody requests is idle.

    This is the intent for shared boards (a replica is a part), where the code that was read bills
    each replica as a whole board.
    """
    joules: Counter[str] = Counter()
    for before, now in pairwise(seconds):
        for earlier, board in zip(before, now, strict=True):
            energy = (board.energy_mj - earlier.energy_mj) / 1000
            for process in board.alive:
                joules[process.tenant] += energy * _requested(board, process)
    return joules


def _ceems(seconds: Sequence[Second], weigh: Callable[[BoardReading, int], float]) -> Joules:
    joules: Counter[str] = Counter()
    for now in seconds[:-1]:  # a left Riemann sum of a gauge
        for board in now:
            for process, ratio in _ceems_ratios(board, weigh):
                joules[process.tenant] += board.power_watts * ratio * SECONDS
    return joules


def _ceems_ratios(
    board: BoardReading, weigh: Callable[[BoardReading, int], float]
) -> Iterator[tuple[ProcessReading, float]]:
    if not board.instances:
        yield from ((process, 1 / len(board.alive)) for process in board.alive)
        return
    weights = {process.mig: weigh(board, process.mig or 0) for process in board.alive}
    sharers = Counter(process.mig for process in board.alive)
    whole = sum(weights.values())
    for process in board.alive:
        if whole > 0:
            yield process, weights[process.mig] / whole / sharers[process.mig]


def _kepler_ratios(board: BoardReading) -> Iterator[tuple[ProcessReading, float]]:
    if not board.instances:
        peaks = {process: process.peak for process in board.alive}
    else:
        sharers = Counter(process.mig for process in board.alive)
        peaks = {
            process: board.instances[process.mig or 0].engine_active / sharers[process.mig]
            for process in board.alive
        }
    whole = sum(peaks.values())
    for process, peak in peaks.items():
        if whole > 0:
            yield process, peak / whole
        elif not board.instances:
            yield process, 1 / len(peaks)


def _requested(board: BoardReading, process: ProcessReading) -> float:
    size = board.instances[process.mig or 0].slices / board.slices if board.instances else 1.0
    return size * process.share
