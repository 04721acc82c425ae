"""What the fast loop reads by GPM of a board that has it: links and memory, in hardware means."""

from collections.abc import Callable
from math import ceil

from seedance_obs.flow import Channel, Window
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml.asking import NEVER_AGAIN
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.flow_store import FlowStore
from seedance_obs.sources.nvml.gpm import DRAM_BUSY, LASTING, MIB, SHORTEST_SECONDS, TRAFFIC_METRICS
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary

METRICS = (*TRAFFIC_METRICS, DRAM_BUSY)
_PERCENT = 0.01
_EARLY = 1e-6  # of a tick: what rounding may take from a pace of whole ticks
_FUNCTION = "nvmlGpmMetricsGet"
_REFUSALS = (*NEVER_AGAIN, *LASTING[_FUNCTION])
_RATE = QUANTITIES["pcie_transmit_bytes_per_second"]  # for NVLink too: it says what can be true
_RATIO = QUANTITIES["dram_active_ratio"]


class FastGpm:
    """The GPM metrics of one board, in windows from one sample to the next.

    Samples are `gpm.SHORTEST_SECONDS` apart or more, so not every tick of a fast loop takes one.
    A board that refuses is not asked again until it is described anew.
    """

    name = "gpm"

    def __init__(
        self,
        board: Board,
        library: NvmlLibrary,
        *,
        store: FlowStore,
        interval_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._board = board
        self._library = library
        self._store = store
        self._monotonic = monotonic
        ticks = ceil(SHORTEST_SECONDS / interval_seconds - _EARLY)
        self._pace = ticks * interval_seconds
        self._channels = [Channel(board.uuid, *place) for place in TRAFFIC_METRICS.values()]
        self._memory = Channel(board.uuid, "hbm")
        self._last: float | None = None
        self._refused = False
        self.has_pcie = False

    def renew(self, board: Board) -> None:
        """Go on with the same board described anew, and ask though it was refused."""
        self._board = board
        self._refused = False

    def forget(self) -> None:
        """Let no window begin before the next reading."""
        self._last = None

    def read(self) -> None:
        """Ask if it is time to, and store the means since the time before.

        Raises:
            NvmlError: the driver failed.
        """
        start, now = self._last, self._monotonic()
        if self._refused or (start is not None and now - start < SHORTEST_SECONDS):
            return
        try:
            answer = self._library.call(_FUNCTION, self._board.name, *METRICS)
        except NvmlError as error:
            if error.code not in _REFUSALS:
                raise
            self._refused, self._last, self.has_pcie = True, None, False
            return
        self._last = self._monotonic()
        if start is not None and isinstance(answer, list):
            self._keep(answer, start, self._last)

    def _keep(self, answer: list[object], start: float, end: float) -> None:
        *rates, busy = answer
        seconds = end - start
        for channel, rate in zip(self._channels, rates, strict=False):
            if isinstance(rate, int | float) and _RATE.admits(rate * MIB):
                self._tell(channel, Window(start, end, rate * MIB * seconds))
                self.has_pcie = self.has_pcie or channel.medium == "pcie"
        if isinstance(busy, int | float) and _RATIO.admits(busy * _PERCENT):
            self._tell(self._memory, Window(start, end, busy * _PERCENT * seconds))

    def _tell(self, channel: Channel, window: Window) -> None:
        self._store.add(channel, "gpm", window, pace=self._pace)
