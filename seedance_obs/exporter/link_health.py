"""Whether a GPU's links are what they should be: its NVLinks by number, its PCIe link under load.

An idle GPU lets its PCIe link fall to the lowest generation to save power, so a slow link says
nothing until the GPU works. NVLinks are counted against the most that were ever up at once, or
against the product where all its boards have the same number. A board without a bridge has lost
none, nor has a host none of whose GPUs ever had one up: its share of the fabric is not activated.
"""

from dataclasses import dataclass

from seedance_obs.merge import Chosen, MergedGpu
from seedance_obs.topology.model import Absent, Device, FabricMembership, known
from seedance_obs.topology.products import product

TOGETHER_SECONDS = 5.0  # readings of two sources that belong to one moment
LOADED_RATIO = 0.1  # activity from which the link is out of its power saving


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """What the driver says of a GPU's links now, not what it said before it fell silent.

    `pcie_degraded` is the finding of the last reading under load, None before there was one.
    """

    fabric: FabricMembership | None = None
    nvlinks_active: int | None = None
    nvlinks_expected: int | None = None
    pcie_degraded: bool | None = None


class LinkWatch:
    """What was seen of each GPU's links, by UUID."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}
        self._loaded_at: dict[str, float] = {}
        self._degraded: dict[str, bool] = {}

    def watch(self, gpu: MergedGpu, device: Device) -> LinkHealth:
        """The links of a GPU: `gpu` as just read, without what is remembered of it."""
        self._watch_pcie(gpu)
        active = _active(gpu, device)
        if active is not None:
            self._most[gpu.uuid] = max(active, self._most.get(gpu.uuid, 0))
        told = None if gpu.fabric is None else device.fabric
        return LinkHealth(
            fabric=None if isinstance(told, Absent) else told,
            nvlinks_active=active,
            nvlinks_expected=None if active is None else self._expected(device, gpu.uuid),
            pcie_degraded=self._degraded.get(gpu.uuid),
        )

    def _expected(self, device: Device, uuid: str) -> int:
        board = product(known(device.model) or "") if any(self._most.values()) else None
        return max(self._most[uuid], (board and board.nvlinks) or 0)

    def _watch_pcie(self, gpu: MergedGpu) -> None:
        """Judge only from the second loaded reading on: a link needs a moment to speed up."""
        activity = _activity(gpu)
        if activity is None or activity.value < LOADED_RATIO:
            self._loaded_at.pop(gpu.uuid, None)
            return
        before = self._loaded_at.setdefault(gpu.uuid, activity.taken_at)
        if activity.taken_at > before:
            verdict = _is_degraded(gpu, activity.taken_at)
            if verdict is not None:
                self._degraded[gpu.uuid] = verdict


def _activity(gpu: MergedGpu) -> Chosen | None:
    """How busy the GPU is; what DCGM says only where NVML does not, as of a board in MIG mode."""
    return gpu.readings.get("utilization_ratio") or gpu.readings.get("engine_active_ratio")


def _active(gpu: MergedGpu, device: Device) -> int | None:
    if gpu.nvlinks is None or any(link.active is None for link in gpu.nvlinks):
        return None
    if isinstance(device.nvlinks, Absent):
        return None
    return sum(link.active is True for link in gpu.nvlinks)


def _is_degraded(gpu: MergedGpu, at: float) -> bool | None:
    """Whether generation or width is below what device and slot allow; None if neither is known.

    A reading that was taken long before or after the load of that moment says nothing about it.
    """
    below = [
        now.value < best.value
        for now, best in (
            (gpu.readings.get("pcie_generation"), gpu.readings.get("pcie_generation_max")),
            (gpu.readings.get("pcie_width"), gpu.readings.get("pcie_width_max")),
        )
        if now is not None and best is not None and abs(now.taken_at - at) <= TOGETHER_SECONDS
    ]
    return any(below) if below else None
