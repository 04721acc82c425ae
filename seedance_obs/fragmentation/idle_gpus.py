"""Whether idle GPUs are fragmentation at all: what idles while work waits, and what is not wanted.

GPUs that idle while something waits for GPUs may be too few, too scattered or barred to it: placing
better could help. GPUs that idle while nothing waits are waste or headroom, and no placement helps.

It is about time, where the measures are about a moment: give it what a scheduler's accounts say of
each minute or job change of one partition, and ask `kind` before acting on fragmentation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

SHARE_THAT_COUNTS = 0.1  # of the idle GPU time, while something waits
MOSTLY = 0.5  # of the GPU time, idle


class Kind(Enum):
    """What a tenant's idle GPU time mostly is."""

    FRAGMENTATION = "fragmentation"  # a good part of it passes while work waits
    WASTE = "waste"  # little or nothing waits, and more than half of the GPUs idle
    HEADROOM = "headroom"  # little or nothing waits, and most GPUs are in use


@dataclass(frozen=True, slots=True)
class Interval:
    """What held for some time of the GPUs of one tenant, virtual cluster or partition.

    Attributes:
        seconds: For how long.
        total: GPUs there are.
        idle: GPUs that nobody is given; None where that is not known.
        pending: GPUs that are asked for and not given; None where that is not known.
    """

    seconds: float
    total: float
    idle: float | None
    pending: float | None


@dataclass(frozen=True, slots=True)
class IdleGpus:
    """Idle GPU time in its two parts; time of which either number is not known is left out.

    Attributes:
        total_gpu_seconds: GPU time there was.
        while_pending_gpu_seconds: Idle while something waited: at most this is fragmentation.
        unwanted_gpu_seconds: Idle while nothing waited.
    """

    total_gpu_seconds: float = 0.0
    while_pending_gpu_seconds: float = 0.0
    unwanted_gpu_seconds: float = 0.0

    @property
    def idle_gpu_seconds(self) -> float:
        """Both parts."""
        return self.while_pending_gpu_seconds + self.unwanted_gpu_seconds

    def kind(
        self, *, share_that_counts: float = SHARE_THAT_COUNTS, mostly: float = MOSTLY
    ) -> Kind | None:
        """What the idle time mostly is.

        Args:
            share_that_counts: It is fragmentation from this share of it on that passes while
                something waits.
            mostly: Else it is waste where more than this share of all GPU time is idle.

        Returns:
            The kind; None where no GPU was idle.
        """
        idle = self.idle_gpu_seconds
        if idle <= 0:
            return None
        if self.while_pending_gpu_seconds >= share_that_counts * idle:
            return Kind.FRAGMENTATION
        return Kind.WASTE if idle > mostly * self.total_gpu_seconds else Kind.HEADROOM


def idle_gpus(intervals: Iterable[Interval]) -> IdleGpus:
    """Split the idle GPU time of one tenant; give each tenant's intervals by themselves.

    What waits at one tenant does not make another's idle GPUs fragmented: they are not its to take.
    """
    total = waited_for = unwanted = 0.0
    for one in intervals:
        if one.idle is None or one.pending is None:
            continue
        total += one.seconds * one.total
        if one.pending > 0:
            waited_for += one.seconds * one.idle
        else:
            unwanted += one.seconds * one.idle
    return IdleGpus(total, waited_for, unwanted)
