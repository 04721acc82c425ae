"""How active a node's GPUs were from one probe to the next, by board and by account on it."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from seedance_obs.exporter.books.holders import BUSY
from seedance_obs.merge import MergedGpu


class OnBoards(Protocol):
    """An account that is on boards."""

    @property
    def activity(self) -> Mapping[str, float | None]:
        """By board's UUID: the share of that whole board's time, None where nobody can tell."""


@dataclass(slots=True)
class GpuActivity:
    """The highest of what was noted since a probe.

    A board or an account that one of the notes lacked, or could not tell of, is unknown.

    Attributes:
        boards: Every board that was noted.
        seats: The boards of each account at the last note.
    """

    boards: set[str] = field(default_factory=set)
    seats: Mapping[str, frozenset[str]] = field(default_factory=dict)
    notes: int = 0
    _told: Counter[Hashable] = field(default_factory=Counter)
    _highest: dict[Hashable, float] = field(default_factory=dict)

    def note(self, boards: Sequence[MergedGpu], accounts: Mapping[str, OnBoards]) -> None:
        """Take one look at all boards and at the accounts on them."""
        self.notes += 1
        self.boards.update(board.uuid for board in boards)
        self.seats = {account: frozenset(on.activity) for account, on in accounts.items()}
        whole = {board.uuid: board_activity(board) for board in boards}
        scale = {board.uuid: _scale(board) for board in boards}
        for uuid, ratio in whole.items():
            self._note(uuid, ratio)
        for account, on in accounts.items():
            for uuid, own in on.activity.items():
                # Nobody on a board is more active than the board is.
                known = whole.get(uuid) if own is None else min(1.0, own * scale.get(uuid, 1.0))
                self._note((account, uuid), known)

    def of_boards(self) -> float | None:
        """The highest share of its time that a board was active for; 0 where there is no board."""
        return self._of(self.boards)

    def of_account(self, account: str) -> float | None:
        """The same of an account on its boards; None where it is on none."""
        boards = self.seats.get(account)
        return self._of((account, uuid) for uuid in boards) if boards else None

    def _note(self, key: Hashable, ratio: float | None) -> None:
        if ratio is not None:
            self._told[key] += 1
            self._highest[key] = max(self._highest.get(key, 0.0), ratio)

    def _of(self, keys: Iterable[Hashable]) -> float | None:
        wanted = list(keys)
        if not self.notes or any(self._told[key] < self.notes for key in wanted):
            return None
        return max((self._highest[key] for key in wanted), default=0.0)


def board_activity(board: MergedGpu) -> float | None:
    """The share of its time that a board was active for, or the busiest of its MIG instances.

    Of a board that is not told itself, as most in MIG mode are not, all instances must be.
    """
    own = next((board.value(name) for name in BUSY if name in board.readings), None)
    parts = [
        next((instance.values[name] for name in BUSY if name in instance.values), None)
        for instance in board.mig
    ]
    if own is None and (not parts or None in parts):
        return None
    return max(ratio for ratio in (own, *parts) if ratio is not None)


def _scale(board: MergedGpu) -> float:
    """What makes of a share of the board the share of its smallest MIG instance.

    A small instance that is fully active is little of its board. Which one an account is on is
    not told here, so that an account on a larger one is rather thought more active than it is.
    """
    slices = [instance.slices or 1 for instance in board.mig]
    return max(board.mig_slices or 0, sum(slices)) / min(slices) if slices else 1.0
