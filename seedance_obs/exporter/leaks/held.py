"""How much GPU memory is held while its board does nothing, board by board."""

from collections import defaultdict
from collections.abc import Mapping

from seedance_obs.leaks.board_detectors import BoardLimits
from seedance_obs.leaks.board_sight import BoardSight, Place
from seedance_obs.leaks.held_memory import Held, HeldMemory


class HeldOnBoards:
    """Adds up memory-time by board and MIG instance; a gap between two sights counts nothing."""

    def __init__(self, limits: BoardLimits) -> None:
        self._gap_seconds = limits.gap_seconds
        self._memory = HeldMemory(
            idle_below_ratio=limits.context_activity_ratio, least_bytes=limits.gpu_memory_bytes
        )
        self._seen_at: dict[Place, float] = {}

    def note(self, sight: BoardSight) -> None:
        """Take in a sight of one place, which stands for the time since the one before."""
        before = self._seen_at.get(sight.place)
        self._seen_at[sight.place] = sight.at
        if before is not None and 0 < sight.at - before <= self._gap_seconds:
            seconds = sight.at - before
            used = sight.memory_used_bytes
            self._memory.note(sight.place, sight.activity, used, seconds=seconds)

    def by_board(self) -> Mapping[str, Held]:
        """What was held of each board, by UUID, all of its MIG instances together."""
        found: defaultdict[str, Held] = defaultdict(Held)
        for place in self._seen_at:
            found[place[0]].add(self._memory.of(place))
        return found
