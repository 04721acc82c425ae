"""Who is on the node's GPUs, as the leak probes need it: accounts with pids and boards.

A driver that hangs, or is let go for an upgrade, says nothing of who is on its boards. Those who
were there are taken to be there still, for some minutes: what the probes know of them would begin
anew otherwise, hours of it for one reading that did not come.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.merge import MergedGpu
from seedance_obs.workload import Workload

PATIENCE_SECONDS = 300.0


@dataclass(slots=True)
class OnGpus:
    """An account that holds GPUs: its workload, those of its processes that are on them, and its
    boards; `activity` is by board, as a share of the board's time, None where unknown.
    """

    workload: Workload
    pids: set[int] = field(default_factory=set)
    activity: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Roll:
    """Who is on the node's GPUs at one tick.

    Attributes:
        accounts: Those that hold GPUs, without that of processes nobody could look up.
        pids: Every process that a driver lists, and those of boards that are silent.
        remembered: Those of them that were listed before and are not now, their board being silent.
    """

    accounts: Mapping[str, OnGpus] = field(default_factory=dict)
    pids: frozenset[int] = frozenset()
    remembered: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Told:
    """What was last told of who is on a board, and when."""

    at: float
    seats: Sequence[Seat]
    pids: frozenset[int]


class RollCall:
    """Calls the roll at each tick."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def call(self, boards: Iterable[MergedGpu], seats: Iterable[Seat], now: float) -> Roll:
        """Who is on GPUs now.

        A board is silent while it is missing, has no list of processes, or has one of which nobody
        can say whose they are. Then those who were on it last are still, how active is unknown;
        beside them is who is known to have been given it.
        """
        here: defaultdict[str, list[Seat]] = defaultdict(list)
        for seat in seats:
            here[seat.gpu.uuid].append(seat)
        listed: set[int] = set()
        told: dict[str, _Told] = {}
        for board in boards:
            pids = frozenset(process.pid for process in board.processes or ())
            listed |= pids
            if _is_told(board, here[board.uuid]):
                told[board.uuid] = _Told(now, here[board.uuid], pids)
        silent = {
            uuid: last
            for uuid, last in self._told.items()
            if uuid not in told and 0 <= now - last.at <= PATIENCE_SECONDS
        }
        self._told = {**silent, **told}
        before = {pid for last in silent.values() for pid in last.pids}
        remembered = [replace(s, activity=None) for last in silent.values() for s in last.seats]
        current = [seat for found in here.values() for seat in found]
        return Roll(
            accounts=roll_of([*remembered, *current]),
            pids=frozenset(listed | before),
            remembered=frozenset(before - listed),
        )


def roll_of(seats: Iterable[Seat]) -> Mapping[str, OnGpus]:
    """The accounts on the node's GPUs, without that of processes nobody could look up."""
    found: dict[str, OnGpus] = {}
    for seat in seats:
        if seat.workload == UNKNOWN_WORKLOAD:
            continue
        account = found.setdefault(seat.account, OnGpus(seat.workload))
        account.pids.update(seat.pids)
        account.activity[seat.gpu.uuid] = seat.activity
    return found


def _is_told(board: MergedGpu, seats: Sequence[Seat]) -> bool:
    """Whether it is known who is on a board: where processes compute, someone sits."""
    if board.processes is None:
        return False
    return bool(seats) or all(process.graphics for process in board.processes)
