"""Bytes that passed over a board's PCIe and NVLink ports since its last tick."""

from collections.abc import Mapping
from typing import Any

from seedance_obs.merge import MergedGpu

COUNTERS = {
    "pcie": ("pcie_transmit_bytes", "pcie_receive_bytes"),
    "nvlink": ("nvlink_transmit_bytes", "nvlink_receive_bytes"),
}


class TrafficMeter:
    """The advance of each board's byte counters; one that went back restarted and tells nothing."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}  # bytes by board and counter

    def take(self, gpu: MergedGpu) -> Mapping[str, int]:
        """Bytes in both directions by kind of link, since the last take."""
        passed: dict[str, int] = {}
        for kind, counters in COUNTERS.items():
            advances = [self._advance(gpu, name) for name in counters if name in gpu.readings]
            if advances:
                passed[kind] = sum(advances)
        return passed

    def _advance(self, gpu: MergedGpu, counter: str) -> int:
        now = int(gpu.readings[counter].value)
        last = self._last.get((gpu.uuid, counter), now)
        self._last[gpu.uuid, counter] = now
        return max(0, now - last)

    def as_state(self) -> list[list[Any]]:
        """What a checkpoint keeps: board, counter and its bytes at the last take."""
        return [[uuid, counter, value] for (uuid, counter), value in self._last.items()]

    def restore(self, state: list[list[Any]]) -> None:
        """Take up what a checkpoint kept: the next take covers the time since then."""
        self._last = {(str(uuid), str(counter)): int(value) for uuid, counter, value in state}
