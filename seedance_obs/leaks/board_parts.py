"""Which part a finding has of what its account, or nobody, is booked of a board.

The books have one balance of each account on a board, for all of its processes and MIG instances
there, and one of what nobody holds.
"""

from collections import Counter
from collections.abc import Iterable

from seedance_obs.leaks.board_detectors import Seen
from seedance_obs.leaks.board_sight import BoardSight

_OnBoard = tuple[str, str]  # a board and an account on it


class Parts:
    """The parts at places that were last seen so."""

    def __init__(self, sights: Iterable[BoardSight]) -> None:
        """Count the processes of each account on each board, and its slices."""
        pids: set[tuple[_OnBoard, int]] = set()
        self._slices: Counter[_OnBoard] = Counter()
        for sight in sights:
            contexts = sight.contexts or ()
            pids |= {((sight.gpu_uuid, each.account), each.process.pid) for each in contexts}
            for account in {*sight.idle_holders, *(each.account for each in contexts)}:
                self._slices[sight.gpu_uuid, account] += sight.slices
        self._processes = Counter(on_board for on_board, _ in pids)

    def of(self, kind: str, seen: Seen, sight: BoardSight) -> float:
        """The part (0 to 1) of one finding.

        A process has an equal part of its account's, an idle holder that of its instance; what was
        found of a place is a part of what nobody holds. Who spins does it with all of its account.
        """
        if seen.context is not None:
            return 1.0 / (self._processes[sight.gpu_uuid, seen.context.account] or 1)
        if seen.account:
            return sight.slices / (self._slices[sight.gpu_uuid, seen.account] or sight.slices)
        return 1.0 if kind == "spinning" else sight.free_ratio
