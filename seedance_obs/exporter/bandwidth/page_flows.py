"""The windows that a dcgm-exporter page tells of: its profiling gauges, which are means."""

from collections.abc import Iterator

from seedance_obs.flow import Channel, Flow, Window
from seedance_obs.sources.readings import SourceSnapshot

QUANTITIES = {
    "pcie_transmit_bytes_per_second": ("pcie", "transmit"),
    "pcie_receive_bytes_per_second": ("pcie", "receive"),
    "nvlink_transmit_bytes_per_second": ("nvlink", "transmit"),
    "nvlink_receive_bytes_per_second": ("nvlink", "receive"),
    "dram_active_ratio": ("hbm", ""),
}
LONGEST_SECONDS = 60.0  # a mean of longer ago says nothing of the time in between


class PageFlows:
    """Each page's gauges as the mean of the time since the page before."""

    def __init__(self) -> None:
        self._read_at: float | None = None

    def of(self, page: SourceSnapshot) -> tuple[Flow, ...]:
        """One window of each channel that the page has; none of the first page."""
        before, self._read_at = self._read_at, page.taken_at
        if before is None or not 0 < page.taken_at - before <= LONGEST_SECONDS:
            return ()
        return tuple(_flows(page, before))


def _flows(page: SourceSnapshot, start: float) -> Iterator[Flow]:
    for gpu in page.gpus:
        for quantity, (medium, direction) in QUANTITIES.items():
            level = gpu.values.get(quantity)
            if level is not None:
                window = Window(start, page.taken_at, level * (page.taken_at - start))
                yield Flow(Channel(gpu.uuid, medium, direction), "dcgm", (window,))
