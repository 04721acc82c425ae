"""When a node, or one workload, has been quiet for long enough to judge what it holds."""

from dataclasses import dataclass

# Why a window is not open. Where several apply, the first is told: what is known to be in use
# before what is not known, and the time that is still missing last.
REASONS = (
    "cpu_busy",
    "memory_in_use",
    "gpu_busy",
    "cpu_unknown",
    "memory_unknown",
    "gpu_unknown",
    "gap",
    "warming_up",
)


@dataclass(frozen=True, slots=True)
class IdleLimits:
    """From when on something counts as quiet.

    Attributes:
        cpu_ratio: Quiet below this share of CPU time.
        memory_ratio: Quiet below this share of memory in use; None: memory is not asked about, as
            of a workload, for the memory that it holds is what is to be judged.
        gpu_ratio: Quiet below this share of the GPUs' time.
        seconds: How long all must have been quiet before the window opens.
        gap_seconds: Longer than this after the last look nobody knows what went on meanwhile.
    """

    cpu_ratio: float
    memory_ratio: float | None
    gpu_ratio: float
    seconds: float
    gap_seconds: float


@dataclass(frozen=True, slots=True)
class Load:
    """What was in use since the look before, as shares (0 to 1); None where nobody can tell."""

    cpu_ratio: float | None
    memory_ratio: float | None
    gpu_ratio: float | None


class IdleWindow:
    """Opens once all looks of `seconds` in a row found all quiet; unknown is never quiet.

    The time is counted from the first quiet look, not from what that look reached back to. A gap
    between two looks, or a clock that steps back, starts it anew.

    Attributes:
        opened_at: Monotonic seconds of the look that opened it; None while it is closed.
        open_seconds: How long it has been open over all times: only what passed between two looks
            that both found it open.
        reason: Why it is closed, one of `REASONS`; empty while it is open.
    """

    def __init__(self, limits: IdleLimits) -> None:
        self._limits = limits
        self._quiet_since: float | None = None
        self._looked_at: float | None = None
        self.opened_at: float | None = None
        self.open_seconds = 0.0
        self.reason = "warming_up"

    @property
    def open(self) -> bool:
        """Whether the last look found it open."""
        return self.opened_at is not None

    def advance(self, now: float, load: Load) -> None:
        """Take a look at `now`, in monotonic seconds, that found this load."""
        before, self._looked_at = self._looked_at, now
        gap = before is not None and not 0 <= now - before <= self._limits.gap_seconds
        loud = self._loud(load)
        if gap or loud:
            self._quiet_since = self.opened_at = None
        if loud:
            self.reason = loud
            return
        if self._quiet_since is None:
            self._quiet_since = now
        if now - self._quiet_since < self._limits.seconds:
            self.reason = "gap" if gap else "warming_up"
            return
        if self.opened_at is None:
            self.opened_at = now
        elif before is not None:
            self.open_seconds += now - before
        self.reason = ""

    def _loud(self, load: Load) -> str:
        """The first reason for which this load is not quiet; empty where it is."""
        limits = self._limits
        asked = [
            ("cpu_busy", "cpu_unknown", load.cpu_ratio, limits.cpu_ratio),
            ("gpu_busy", "gpu_unknown", load.gpu_ratio, limits.gpu_ratio),
        ]
        if limits.memory_ratio is not None:
            memory = ("memory_in_use", "memory_unknown", load.memory_ratio, limits.memory_ratio)
            asked.insert(1, memory)
        for busy, _, ratio, limit in asked:
            if ratio is not None and not ratio < limit:  # so that NaN is not quiet
                return busy
        return next((unknown for _, unknown, ratio, _ in asked if ratio is None), "")
