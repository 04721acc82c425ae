"""The fast loop over the driver: what bursts between two passes, in windows of a tenth of a second.

It runs in threads beside the passes, in the same process and over the same library. The pass says
which boards there are; a fault here costs windows and nothing else.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from seedance_obs.flow import Flow
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.fast_fields import FastFields
from seedance_obs.sources.nvml.fast_gpm import FastGpm
from seedance_obs.sources.nvml.flow_store import FlowStore
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary
from seedance_obs.sources.nvml.throughput import ThroughputReader
from seedance_obs.sources.nvml.wrapping import Unwrapped

LOG = logging.getLogger(__name__)


class _FastBoard:
    """One board, read in two parts, of which one can fail without the other."""

    def __init__(self, board: Board, fields: FastFields, gpm: FastGpm) -> None:
        self.board = board
        self._fields = fields
        self._gpm = gpm
        self._failing: set[str] = set()

    @property
    def has_pcie(self) -> bool:
        """Whether either part tells what passes over PCIe."""
        return self._fields.has_pcie or self._gpm.has_pcie

    def renew(self, board: Board) -> None:
        """Go on with the same board described anew."""
        if board is not self.board:
            self.board = board
            self._fields.renew(board)
            self._gpm.renew(board)

    def read(self) -> None:
        """Read both parts; a failure is logged when it begins and when it ends."""
        for part in (self._fields, self._gpm):
            try:
                part.read()
            except NvmlError as error:
                part.forget()
                self._fail(part.name, error)
            else:
                self._recover(part.name)

    def _fail(self, part: str, error: NvmlError) -> None:
        if part not in self._failing:
            self._failing.add(part)
            LOG.warning(
                "event=fast_loop_fault gpu_uuid=%s part=%s error=%s",
                self.board.uuid,
                part,
                error.name,
            )

    def _recover(self, part: str) -> None:
        if part in self._failing:
            self._failing.discard(part)
            LOG.info("event=fast_loop_recovered gpu_uuid=%s part=%s", self.board.uuid, part)


class FastReader:
    """Reads every watched board once a tick and gathers windows until they are taken.

    `watch`, `quiet`, `take` and `take_dropped` belong to the pass, `tick` and `look` to a thread
    each. Whoever has no threads (a simulation, a test) calls them in turn.

    Args:
        library: the one that the pass uses.
        interval_seconds: how often the threads are to call `tick` and `look`.
        monotonic: seconds.
        unwrapped: shared with the pass, whose byte counters so wrap unseen only when they do
            within one tick (43 GB/s at 100 ms; more can pass over 16 lanes of PCIe 5).
    """

    def __init__(
        self,
        library: NvmlLibrary,
        *,
        interval_seconds: float,
        monotonic: Callable[[], float],
        unwrapped: Unwrapped,
    ) -> None:
        self.interval_seconds = interval_seconds
        self.unwrapped = unwrapped
        self._library = library
        self._monotonic = monotonic
        self._store = FlowStore()
        self._driver = threading.Lock()
        self._watched: tuple[Board, ...] = ()
        self._boards: dict[str, _FastBoard] = {}
        self._throughput = ThroughputReader(library, self._store, monotonic=monotonic)
        self._blind = False

    def watch(self, boards: Sequence[Board]) -> None:
        """Read these boards from the next tick on; one described anew is asked for everything."""
        self._watched = tuple(boards)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep both loops from the driver, and forget the boards: handles are about to end."""
        with self._driver, self._throughput.driver:
            self._watched = ()
            self._boards.clear()
            yield

    def tick(self) -> None:
        """Read every board."""
        with self._driver:
            self._renew()
            for board in self._boards.values():
                board.read()

    def look(self) -> None:
        """Ask one board that tells nothing else of PCIe for its throughput: blocks for 20 ms."""
        try:
            self._throughput.step(self._without_pcie)
        except NvmlError as error:
            if not self._blind:
                LOG.warning("event=throughput_fault error=%s", error.name)
            self._blind = True
        else:
            self._blind = False

    def take(self) -> tuple[Flow, ...]:
        """The windows since the last time."""
        return self._store.take()

    def take_dropped(self) -> int:
        """How many windows were too old to keep, since the last time."""
        return self._store.take_dropped()

    def _renew(self) -> None:
        watched = self._watched
        known = self._boards
        self._boards = {board.uuid: known.get(board.uuid) or self._open(board) for board in watched}
        for board in watched:
            self._boards[board.uuid].renew(board)

    def _open(self, board: Board) -> _FastBoard:
        fields = FastFields(
            board,
            self._library,
            store=self._store,
            unwrapped=self.unwrapped,
            interval_seconds=self.interval_seconds,
            monotonic=self._monotonic,
        )
        gpm = FastGpm(
            board,
            self._library,
            store=self._store,
            interval_seconds=self.interval_seconds,
            monotonic=self._monotonic,
        )
        return _FastBoard(board, fields, gpm)

    def _without_pcie(self) -> list[Board]:
        return [board.board for board in tuple(self._boards.values()) if not board.has_pcie]
