"""What each process used of its board, where the driver tells, and what a missing one did.

A driver leaves out who did nothing, but also whom it cannot tell apart. So a missing process is
idle only on boards whose activity those explain that are told of.
"""

from collections.abc import Mapping

from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import ProcessUse

# A board and its processes are averaged over different moments: what comes and goes differs now
# and then, and is made up for by the next readings. So what is not explained adds up, in readings
# of a fully busy board, half of whose activity is expected to be told of.
EXPECTED_PART = 0.5
MOST_UNEXPLAINED = 2.0
_WORK = ("utilization_ratio", "sm_active_ratio")  # the first that is known
_VIDEO = ("encoder_utilization_ratio", "decoder_utilization_ratio")


class ToldUse:
    """Follows whether what the driver tells of processes explains what their boards do."""

    def __init__(self) -> None:
        self._unexplained: dict[str, tuple[float, float]] = {}  # by board, with when it was read

    def of(self, gpu: MergedGpu) -> Mapping[int, ProcessUse]:
        """The use of a board's processes by pid; of who is missing here it is unknown."""
        if gpu.process_use is None or gpu.mig:
            return {}
        told = {use.pid: use for use in gpu.process_use}
        if not self._explains(gpu, told):
            return told
        return {process.pid: ProcessUse(process.pid, 0.0) for process in gpu.processes or ()} | told

    def _explains(self, gpu: MergedGpu, told: Mapping[int, ProcessUse]) -> bool:
        before = self._unexplained.get(gpu.uuid)
        busy = _busy(gpu)
        if busy is not None and (before is None or before[0] != gpu.listed_at):
            more = EXPECTED_PART * busy - _told(told)
            left = (before[1] if before else 0.0) + more
            before = gpu.listed_at, min(2 * MOST_UNEXPLAINED, max(0.0, left))
            self._unexplained[gpu.uuid] = before
        return before is not None and before[1] <= MOST_UNEXPLAINED


def video_ratio(encoder_ratio: float | None, decoder_ratio: float | None) -> float | None:
    """The busier of the two; None where neither is known."""
    return max((each for each in (encoder_ratio, decoder_ratio) if each is not None), default=None)


def _busy(gpu: MergedGpu) -> float | None:
    """The share of its time for which a board worked or handled video; None where unknown."""
    work = next((gpu.value(name) for name in _WORK if name in gpu.readings), None)
    return None if work is None else max(work, *(gpu.value(name) or 0.0 for name in _VIDEO))


def _told(told: Mapping[int, ProcessUse]) -> float:
    """What all processes together did of that."""
    return max(
        sum(use.sm_ratio for use in told.values()),
        sum(video_ratio(use.encoder_ratio, use.decoder_ratio) or 0.0 for use in told.values()),
    )
