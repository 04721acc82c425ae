"""How much GPU memory is held for how long while nothing runs: bytes times seconds, by key.

This is how public traces of serving fleets describe their waste: the share of samples at no
activity, and the share of memory-time held meanwhile.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields

from seedance_obs.leaks.board_sight import Activity


@dataclass(slots=True)
class Held:
    """What was held, over all samples of which the activity is known.

    Attributes:
        samples: How many they are.
        seconds: For how long they stand.
        busy_seconds: The integral of SM activity over that time.
        zero_samples: Those without any activity.
        zero_holding_samples: Those of them that held memory that is worth a word.
        byte_seconds: The integral of memory held, as far as it is known.
        zero_byte_seconds: The part of it without any activity.
        idle_byte_seconds: The part of it that counts as idle, which is a little activity at most.
    """

    samples: int = 0
    seconds: float = 0.0
    busy_seconds: float = 0.0
    zero_samples: int = 0
    zero_holding_samples: int = 0
    byte_seconds: float = 0.0
    zero_byte_seconds: float = 0.0
    idle_byte_seconds: float = 0.0

    def add(self, other: "Held") -> None:
        """Add what another holder held."""
        for column in fields(self):
            name = column.name
            setattr(self, name, getattr(self, name) + getattr(other, name))


def held_together(each: Iterable[Held]) -> Held:
    """What several holders held."""
    total = Held()
    for held in each:
        total.add(held)
    return total


class HeldMemory:
    """Adds up memory held, by what holds it (a process, a workload, a board)."""

    def __init__(self, *, idle_below_ratio: float, least_bytes: int) -> None:
        """Idle is below that activity; memory from `least_bytes` on is worth a word."""
        self._idle_below_ratio = idle_below_ratio
        self._least_bytes = least_bytes
        self._held: dict[Hashable, Held] = {}

    def note(
        self, key: Hashable, activity: Activity, memory_bytes: int | None, *, seconds: float
    ) -> None:
        """Take in a sample that stands for so many seconds; none if its activity is unknown."""
        highest = activity.highest
        if highest is None:
            return
        held = self._held.setdefault(key, Held())
        held.samples += 1
        held.seconds += seconds
        held.busy_seconds += (activity.sm_ratio or 0.0) * seconds
        held.zero_samples += highest == 0
        if memory_bytes is None:
            return
        held.byte_seconds += memory_bytes * seconds
        if activity.idle(self._idle_below_ratio):
            held.idle_byte_seconds += memory_bytes * seconds
        if highest == 0:
            held.zero_holding_samples += memory_bytes >= self._least_bytes
            held.zero_byte_seconds += memory_bytes * seconds

    def of(self, key: Hashable) -> Held:
        """What one holder held; nothing if it was never seen."""
        return self._held.get(key, Held())
