"""Whether a GPU's links are what they should be: its NVLinks by number, its PCIe link under load.

An idle GPU lets its PCIe link fall to the lowest generation to save power, so a slow link says
nothing until the GPU works. NVLinks are counted against the most that were ever up at once, or
against the product where all its boards have the same number. A board without a bridge has lost
none, nor has a host none of whose GPUs ever had one up: its share of the fabric is not activated.
"""

from dataclasses import dataclass

from seedance_obs.merge import MergedGpu
from seedance_obs.topology.model import Absent, Device
from seedance_obs.topology.products import product

LOADED_RATIO = 0.1  # activity from which the link is out of its power saving


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """`pcie_degraded` is the finding of the last reading under load, None before there was one."""

    nvlinks_active: int | None = None
    nvlinks_expected: int | None = None
    pcie_degraded: bool | None = None


class LinkWatch:
    """What was seen of each GPU's links, by UUID."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}
        self._loaded: set[str] = set()
        self._degraded: dict[str, bool] = {}

    def watch(self, gpu: MergedGpu, device: Device) -> LinkHealth:
        """The links of a GPU after one more reading of it."""
        self._watch_pcie(gpu)
        active = _active(device)
        if active is not None:
            self._most[gpu.uuid] = max(active, self._most.get(gpu.uuid, 0))
        return LinkHealth(
            nvlinks_active=active,
            nvlinks_expected=None if active is None else self._expected(gpu),
            pcie_degraded=self._degraded.get(gpu.uuid),
        )

    def _expected(self, gpu: MergedGpu) -> int:
        known = product(gpu.model or "") if any(self._most.values()) else None
        return max(self._most[gpu.uuid], (known and known.nvlinks) or 0)

    def _watch_pcie(self, gpu: MergedGpu) -> None:
        """Judge only from the second loaded reading on: a link needs a moment to speed up."""
        activity = (gpu.value("utilization_ratio"), gpu.value("engine_active_ratio"))
        loaded = max(ratio or 0.0 for ratio in activity) >= LOADED_RATIO
        if loaded and gpu.uuid in self._loaded:
            verdict = _is_degraded(gpu)
            if verdict is not None:
                self._degraded[gpu.uuid] = verdict
        (self._loaded.add if loaded else self._loaded.discard)(gpu.uuid)


def _active(device: Device) -> int | None:
    if isinstance(device.nvlinks, Absent):
        return None
    return sum(port.active is True for port in device.nvlinks)


def _is_degraded(gpu: MergedGpu) -> bool | None:
    """Whether generation or width is below what device and slot allow; None if neither is known."""
    below = [
        now < best
        for now, best in (
            (gpu.value("pcie_generation"), gpu.value("pcie_generation_max")),
            (gpu.value("pcie_width"), gpu.value("pcie_width_max")),
        )
        if now is not None and best is not None
    ]
    return any(below) if below else None
