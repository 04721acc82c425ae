"""What leaks or lies idle on a simulated machine, and since when: the truth for leak probes.

Nothing here knows how a probe decides: each kind is a condition at a moment, and has lasted as
long as it held at every step back from there.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from seedance_obs.sources.sim.host_use import memory, open_fds
from seedance_obs.sources.sim.machine import HOLDER, Machine
from seedance_obs.sources.sim.physics import Board, Holding, activity_at, boards, run_at, run_start
from seedance_obs.sources.sim.programs import Program, programs

STEP_S = 1.0
GPU_MEMORY_MIB = 512  # less is nobody's leak
IDLE_RATIO, BUSY_RATIO, FULL_RATIO = 0.01, 0.1, 0.99  # of the time of a board
SPIN_RATIO = 0.1  # of the way from idle power to the limit
NEAR_LIMIT_RATIO = 0.8  # of a process's descriptors
SPARSE_RATIO, SPARSE_BYTES = 0.3, 2_000_000_000  # of data and stack; resident in all

Condition = Callable[[float], bool]


class Suspect(NamedTuple):
    """One thing that is wrong, with `since` in seconds since the machine's epoch.

    It is a process's (`pid`), a board's (`gpu`), or that of a process on a board (both).
    """

    kind: str
    since: float
    workload: str = ""
    pid: int | None = None
    gpu: int | None = None


def suspects(machine: Machine, t: float) -> list[Suspect]:
    """What is wrong at t, however short it has been so; `since` is early by no step, late by one.

    Growth is listed at any rate, and every process of a workload by itself.
    """
    found = [each for program in programs(machine, t) for each in _of_process(program, t)]
    for board in boards(machine):
        found += _of_contexts(board, t)
        found += _of_board(board, t)
        found += _of_holders(board, t)
    return sorted(found, key=lambda each: (each.kind, each.since, each.pid or 0, each.gpu or 0))


def _lasting(condition: Condition, t: float, born: float) -> float | None:
    """Since when a condition has held at every step; None where it does not hold at t."""
    if not condition(t):
        return None
    since = t
    while since > born and condition(max(born, since - STEP_S)):
        since = max(born, since - STEP_S)
    return since


def _of_process(program: Program, t: float) -> Iterator[Suspect]:
    for kind, shows in _PROCESS_KINDS.items():
        since = _lasting(partial(shows, program), t, program.start_s)
        if since is not None:
            yield Suspect(kind, since, program.workload.name, program.pid)


def _fds_grow(program: Program, t: float) -> bool:
    host = program.workload.host
    leaks = host.fds_per_s > 0 and host.fds_reset_s is None
    return leaks and open_fds(program, t) < host.fd_limit


def _fds_near_limit(program: Program, t: float) -> bool:
    return open_fds(program, t) >= NEAR_LIMIT_RATIO * program.workload.host.fd_limit


def _memory_grows(program: Program, _t: float) -> bool:
    return program.workload.host.anonymous_mb_per_h > 0


def _is_sparse(program: Program, t: float) -> bool:
    held = memory(program, t)
    sparse = held.anonymous < SPARSE_RATIO * (held.data + held.stack)
    return sparse and held.resident * 1024 > SPARSE_BYTES


_PROCESS_KINDS: dict[str, Callable[[Program, float], bool]] = {
    "fd_growth": _fds_grow,
    "fd_near_limit": _fds_near_limit,
    "anonymous_growth": _memory_grows,
    "sparse_residency": _is_sparse,
}


def _of_contexts(board: Board, t: float) -> Iterator[Suspect]:
    alive = board.processes(t)
    for process in board.listed(t):
        workload, gpu = process.workload, board.gpu.index
        if workload.memory_mib < GPU_MEMORY_MIB:
            continue
        if process not in alive:
            ended = process.start_s + (workload.duration_s or 0.0)
            yield Suspect("dead_pid_memory", ended, workload.name, process.pid, gpu)
            continue
        since = _lasting(partial(_is_idle, process.holding), t, process.start_s)
        if since is not None:
            yield Suspect("pseudo_idle_context", since, workload.name, process.pid, gpu)


def _is_idle(held: Holding, t: float) -> bool:
    return held.weight * (activity_at(held.workload, held.rank, t) or 0.0) < IDLE_RATIO


def _of_board(board: Board, t: float) -> Iterator[Suspect]:
    for kind, shows in _BOARD_KINDS.items():
        since = _lasting(partial(shows, board), t, 0.0)
        if since is not None:
            yield Suspect(kind, since, gpu=board.gpu.index)


def _holds_for_nobody(board: Board, t: float) -> bool:
    return not board.listed(t) and board.memory_used_mib(t) >= GPU_MEMORY_MIB


def _works_for_nobody(board: Board, t: float) -> bool:
    return not board.listed(t) and bool(board.ghosts(t)) and board.busy_ratio(t) >= BUSY_RATIO


def _spins(board: Board, t: float) -> bool:
    idle = board.idle_watts
    little = idle + SPIN_RATIO * (board.model.limit_watts - idle)
    return board.busy_ratio(t) >= FULL_RATIO and board.power_watts(t) < little


_BOARD_KINDS: dict[str, Callable[[Board, float], bool]] = {
    "memory_without_process": _holds_for_nobody,
    "busy_without_process": _works_for_nobody,
    "spinning": _spins,
}


def _of_holders(board: Board, t: float) -> Iterator[Suspect]:
    for held in board.holdings:
        run = run_at(held.workload, t)
        if held.workload.guise == HOLDER and run is not None and t < board.lost_at:
            since = run_start(held.workload, run)
            yield Suspect(
                "allocated_without_process", since, held.workload.name, gpu=board.gpu.index
            )
