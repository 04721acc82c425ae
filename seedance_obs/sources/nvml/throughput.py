"""PCIe traffic of boards that neither count it nor have GPM: the driver looks for 20 ms a call."""

import threading
from collections.abc import Callable, Sequence

from seedance_obs.flow import Channel, Window
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml.asking import NEVER_AGAIN
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.flow_store import FlowStore
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary

LOOK_SECONDS = 0.02
_FUNCTION = "nvmlDeviceGetPcieThroughput"
_KILO = 1000
_COUNTERS = ("transmit", "receive")  # by nvmlPcieUtilCounter_t
_RATE = QUANTITIES["pcie_transmit_bytes_per_second"]


class ThroughputReader:
    """Asks one board for one direction at a time, in turn.

    For a thread of its own, since each call blocks. Its windows are the 20 ms that the driver
    looked; what passed between them is unknown. `driver` is held while a call is under way.
    """

    def __init__(
        self, library: NvmlLibrary, store: FlowStore, *, monotonic: Callable[[], float]
    ) -> None:
        self.driver = threading.Lock()
        self._library = library
        self._store = store
        self._monotonic = monotonic
        self._turn = 0

    def step(self, boards: Callable[[], Sequence[Board]]) -> None:
        """Ask the next board, of those there are by now, for its next direction.

        Raises:
            NvmlError: the driver failed.
        """
        with self.driver:
            waiting = [board for board in boards() if _key(board) not in board.unsupported]
            if not waiting:
                return
            turn, direction = divmod(self._turn, len(_COUNTERS))
            self._turn += 1
            self._ask(waiting[turn % len(waiting)], direction)

    def _ask(self, board: Board, counter: int) -> None:
        try:
            answer = self._library.call(_FUNCTION, board.name, counter)
        except NvmlError as error:
            if error.code not in NEVER_AGAIN:
                raise
            board.unsupported.add(_key(board))
            return
        if isinstance(answer, int | float) and _RATE.admits(answer * _KILO):
            at = self._monotonic()
            channel = Channel(board.uuid, "pcie", _COUNTERS[counter])
            window = Window(at - LOOK_SECONDS, at, answer * _KILO * LOOK_SECONDS)
            self._store.add(channel, "throughput", window)


def _key(board: Board) -> tuple[str, str, tuple[int, ...]]:
    return _FUNCTION, board.name, ()
