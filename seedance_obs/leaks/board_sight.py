"""What the detectors of idle and orphaned GPU use are told of a board, and what counts as idle.

Idle is defined here and nowhere else. SM activity alone would call a process idle that copies all
the time, or that only encodes video, memory activity alone one that computes in registers, so all
count; the first must be known.
"""

from dataclasses import dataclass
from typing import NamedTuple

from seedance_obs.process_tree import ProcessName

Place = tuple[str, int | None, int | None]  # a board, its GPU instance, and the compute instance


class Activity(NamedTuple):
    """How busy SMs, memory, and the encoder or decoder of video were, whichever was busier.

    Shares (0 to 1) of the time; None where nobody tells.
    """

    sm_ratio: float | None = None
    dram_ratio: float | None = None
    video_ratio: float | None = None

    @property
    def highest(self) -> float | None:
        """The busiest of those that are known; None where SMs are unknown."""
        if self.sm_ratio is None:
            return None
        return max(self.sm_ratio, self.dram_ratio or 0.0, self.video_ratio or 0.0)

    def idle(self, below_ratio: float) -> bool | None:
        """Whether nothing was as busy as that; None where it cannot be told."""
        highest = self.highest
        return None if highest is None else highest < below_ratio


@dataclass(frozen=True, slots=True)
class ContextSight:
    """A process in the driver's list of one place. Each process is listed once.

    Attributes:
        process: Its name; the same pid with another start is another process.
        account: What the books book its part of the board to, as `account_names` spells it; empty
            where unknown.
        owner: Whose it was while it lived, where the books have lost that.
        memory_bytes: GPU memory that it holds there.
        sm_ratio: Share of the board's time for which it kept SMs busy, where told of it alone.
        dram_ratio: The same of the board's memory.
        video_ratio: The same of its encoder or decoder, whichever it used more.
        alive: False where it is certain that the process has ended; None where nobody can tell.
        warm: Whether it may hold memory and wait: a declared warm server, a display server.
    """

    process: ProcessName
    account: str = ""
    owner: str = ""
    memory_bytes: int | None = None
    sm_ratio: float | None = None
    dram_ratio: float | None = None
    video_ratio: float | None = None
    alive: bool | None = None
    warm: bool = False


@dataclass(frozen=True, slots=True)
class BoardSight:
    """One place, a whole board or one MIG instance of it, as seen at one moment.

    Attributes:
        gpu_uuid: The board.
        gpu_instance: The MIG GPU instance; None for the whole board.
        compute_instance: The compute instance of it, which is a place of its own.
        slices: Its size, in slices of the board; of no matter for a whole board.
        free_ratio: Which part (0 to 1) it is of what nobody holds of the board; 0 where it is held.
        at: Monotonic seconds.
        activity_at: When the activity of the place was read, where that is another time: a reading
            that is shown again is not another sample.
        memory_used_bytes: In use at the place, without what the driver reserves. The compute
            instances of a GPU instance share its memory: it is in use at one of them only.
        utilization_ratio: Share of the time in which any kernel ran.
        sm_active_ratio: Mean share of SMs that had work.
        dram_active_ratio: Share of the time in which memory moved data.
        video_ratio: Share of the time in which the encoder or decoder worked, the busier of both.
        power_watts: What the board draws; of a MIG instance unknown.
        idle_watts: What it draws with nothing running: best with contexts open, where that is
            known, since they keep clocks up; else its floor.
        limit_watts: The most that it may draw.
        contexts: All processes of the driver's list, graphics too. None where the list cannot be
            had, or says nothing: on a vGPU host, or in a container that sees no other's processes.
        idle_holders: Accounts that were given the place and run nothing on it.
    """

    gpu_uuid: str
    at: float
    gpu_instance: int | None = None
    compute_instance: int | None = None
    slices: int = 1
    free_ratio: float = 1.0
    activity_at: float | None = None
    memory_used_bytes: int | None = None
    utilization_ratio: float | None = None
    sm_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    video_ratio: float | None = None
    power_watts: float | None = None
    idle_watts: float | None = None
    limit_watts: float | None = None
    contexts: tuple[ContextSight, ...] | None = None
    idle_holders: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """What names the place."""
        return self.gpu_uuid, self.gpu_instance, self.compute_instance

    @property
    def activity(self) -> Activity:
        """Of the whole place.

        SMs have work only while a kernel runs: where their own activity is unknown, the share of
        time with a kernel stands for it as an upper bound, and calls nothing idle that is not.
        """
        known = self.sm_active_ratio is not None
        return Activity(
            self.sm_active_ratio if known else self.utilization_ratio,
            self.dram_active_ratio,
            self.video_ratio,
        )

    def activity_of(self, context: ContextSight) -> Activity:
        """The process's own where its SMs are told of, else that of all at the place."""
        if context.sm_ratio is None:
            return self.activity
        return Activity(context.sm_ratio, context.dram_ratio, context.video_ratio)

    def activity_read_at(self, context: ContextSight) -> float:
        """Monotonic seconds at which that was read."""
        if context.sm_ratio is None and self.activity_at is not None:
            return self.activity_at
        return self.at
