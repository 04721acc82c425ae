"""What each kind of idle and orphaned GPU use looks like at one moment.

A detector says what is so now; for how long it must have been so is `board_watch`'s. What is
unknown is not so: a detector that lacks a reading sees nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from seedance_obs.leaks.board_sight import BoardSight, ContextSight


@dataclass(frozen=True, slots=True)
class BoardLimits:
    """From where on, and for how long, something on a board is suspect.

    Those that an operator sets have the names of the options `leaks_*`, and their defaults.

    Attributes:
        gap_seconds: Longer without a sight of the place, and every clock of it starts anew.
        busy_ratio: A board with no process is busy from this share of its time on.
        spin_utilization_ratio: A board looks fully used from here on: drivers tell whole percents
            of short windows, of which one may miss the last.
        spin_power_ratio: Below this part of the way from idle to the limit, a board draws little.
            A kernel that only waits lifts the clocks and hardly the draw: an H100 stuck in a
            collective was reported at 13 % of the way up from an empty board's 69 W, of which open
            contexts alone made 10 %. So a tenth above what open contexts draw holds kernels that
            wait, and hardly any that compute or stream; above an empty board's draw it misses
            some that wait, and accuses nobody more.
    """

    gpu_memory_bytes: int = 512 * 2**20
    context_seconds: float = 1800.0
    context_samples: int = 100
    context_activity_ratio: float = 0.01
    orphan_seconds: float = 300.0
    allocated_seconds: float = 1800.0
    spin_seconds: float = 600.0
    gap_seconds: float = 45.0
    busy_ratio: float = 0.1
    spin_utilization_ratio: float = 0.99
    spin_power_ratio: float = 0.1


class Seen(NamedTuple):
    """One thing that is so at a place, as of the reading `at` (monotonic seconds)."""

    at: float
    context: ContextSight | None = None
    account: str = ""

    @property
    def name(self) -> tuple[int | None, int | None, str]:
        """What tells it from others of its kind at its place, now and later."""
        if self.context is None:
            return None, None, self.account
        return self.context.process.pid, self.context.process.start_ticks, ""


def _pseudo_idle(sight: BoardSight, limits: BoardLimits) -> Iterator[Seen]:
    for context in sight.contexts or ():
        if context.warm or context.alive is False or not _holds(context.memory_bytes, limits):
            continue
        if sight.activity_of(context).idle(limits.context_activity_ratio):
            yield Seen(sight.activity_read_at(context), context)


def _dead(sight: BoardSight, limits: BoardLimits) -> Iterator[Seen]:
    for context in sight.contexts or ():
        # What computes is not dead: then the pids are others' than those that were looked for.
        works = (context.sm_ratio or 0.0) >= limits.context_activity_ratio
        if context.alive is False and not works and _holds(context.memory_bytes, limits):
            yield Seen(sight.at, context)


def _orphaned_memory(sight: BoardSight, limits: BoardLimits) -> Iterator[Seen]:
    if sight.contexts == () and _holds(sight.memory_used_bytes, limits):
        yield Seen(sight.at)


def _busy_alone(sight: BoardSight, limits: BoardLimits) -> Iterator[Seen]:
    shares = (sight.utilization_ratio, sight.sm_active_ratio)
    if sight.contexts == () and any(share and share >= limits.busy_ratio for share in shares):
        yield Seen(sight.at)


def _allocated(sight: BoardSight, _limits: BoardLimits) -> Iterator[Seen]:
    if sight.contexts is not None:
        for account in sight.idle_holders:
            yield Seen(sight.at, account=account)


def _spinning(sight: BoardSight, limits: BoardLimits) -> Iterator[Seen]:
    watts, idle, limit = sight.power_watts, sight.idle_watts, sight.limit_watts
    if watts is None or idle is None or limit is None or sight.utilization_ratio is None:
        return
    if sight.utilization_ratio < limits.spin_utilization_ratio:
        return
    if watts < idle + limits.spin_power_ratio * (limit - idle):
        yield Seen(sight.at)


def _holds(memory_bytes: int | None, limits: BoardLimits) -> bool:
    return memory_bytes is not None and memory_bytes >= limits.gpu_memory_bytes


DETECTORS: dict[str, Callable[[BoardSight, BoardLimits], Iterator[Seen]]] = {
    "pseudo_idle_context": _pseudo_idle,
    "dead_pid_memory": _dead,
    "memory_without_process": _orphaned_memory,
    "busy_without_process": _busy_alone,
    "allocated_without_process": _allocated,
    "spinning": _spinning,
}


def seconds_needed(kind: str, limits: BoardLimits) -> float:
    """For how long something of a kind must have been so."""
    if kind == "pseudo_idle_context":
        return limits.context_seconds
    if kind == "allocated_without_process":
        return limits.allocated_seconds
    return limits.spin_seconds if kind == "spinning" else limits.orphan_seconds


def evidence_of(kind: str, seen: Seen, sight: BoardSight) -> dict[str, float]:
    """The numbers of the latest sight, of the process where it is one's, else of the place."""
    if seen.context is not None:
        own = seen.context.sm_ratio is not None
        numbers = {
            "gpu_memory_bytes": seen.context.memory_bytes,
            "sm_ratio": seen.context.sm_ratio if own else sight.sm_active_ratio,
            "dram_ratio": seen.context.dram_ratio if own else sight.dram_active_ratio,
            "utilization_ratio": None if own else sight.utilization_ratio,
        }
    else:
        numbers = {
            "gpu_memory_bytes": sight.memory_used_bytes,
            "sm_ratio": sight.sm_active_ratio,
            "dram_ratio": sight.dram_active_ratio,
            "utilization_ratio": sight.utilization_ratio,
            "power_watts": sight.power_watts,
            "idle_watts": sight.idle_watts if kind == "spinning" else None,
        }
    return {name: float(value) for name, value in numbers.items() if value is not None}
