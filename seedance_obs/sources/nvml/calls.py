"""The calls of every pass: refusals are remembered, faults counted, a lost board still raises."""

from collections import Counter
from collections.abc import Iterator

from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.asking import DRIVER_GONE, NEVER_AGAIN
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.gpm import LASTING
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.reads import Read


class Calls:
    """Asks boards and MIG devices; `dropped` counts by reason what a pass has lost."""

    def __init__(self, library: NvmlLibrary) -> None:
        self.library = library
        self.dropped: Counter[str] = Counter()

    def ask(self, board: Board, function: str, *args: int, device: str | None = None) -> Plain:
        """A call's answer, of the board or of a MIG device of it; None where there is none.

        Raises:
            NvmlError: the board is lost or the driver is gone.
        """
        name = device or board.name
        try:
            return self._ask(board, (function, name, args), args)
        except NvmlError as error:
            self._lose(error)
            return None

    def samples(self, board: Board, function: str, since: int) -> Plain:
        """The samples newer than a time stamp: an empty list where there are none.

        None where the board does not tell, at all or this time.

        Raises:
            NvmlError: the board is lost or the driver is gone.
        """
        try:
            return self._ask(board, (function, board.name, ()), (since,))
        except NvmlError as error:
            if error.code == nvml.NOT_FOUND:
                return []
            self._lose(error)
            return None

    def values(
        self, board: Board, reads: tuple[Read, ...], *, device: str | None = None
    ) -> Iterator[tuple[str, float]]:
        """The quantities that can be read, in base units and within their range.

        Raises:
            NvmlError: the board is lost or the driver is gone.
        """
        taken: set[str] = set()
        for read in reads:
            if taken.issuperset(read.quantities):
                continue  # an older spelling of what a newer call has already answered
            answer = self.ask(board, read.function, *read.args, device=device)
            if answer is None:
                continue
            for quantity, value in read.take(answer):
                if QUANTITIES[quantity].admits(value):
                    taken.add(quantity)
                    yield quantity, value
                else:
                    self.dropped["out_of_range"] += 1

    def _ask(
        self, board: Board, key: tuple[str, str | None, tuple[int, ...]], args: tuple[int, ...]
    ) -> Plain:
        if key in board.unsupported:
            return None
        function, name, _ = key
        try:
            return self.library.call(function, name, *args)
        except NvmlError as error:
            if error.code in (*NEVER_AGAIN, *LASTING.get(function, ())):
                board.unsupported.add(key)
            if error.code in NEVER_AGAIN:
                return None
            raise

    def _lose(self, error: NvmlError) -> None:
        if error.code in (nvml.GPU_IS_LOST, nvml.RESET_REQUIRED, *DRIVER_GONE):
            raise error
        self.dropped[error.name] += 1
