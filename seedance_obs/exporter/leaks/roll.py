"""Who is on the node's GPUs, as the leak probes need it: accounts with pids and boards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.workload import Workload


@dataclass(slots=True)
class OnGpus:
    """An account that holds GPUs: its workload, those of its processes that are on them, and its
    boards; `activity` is by board, as a share of the board's time, None where unknown.
    """

    workload: Workload
    pids: set[int] = field(default_factory=set)
    activity: dict[str, float | None] = field(default_factory=dict)


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
