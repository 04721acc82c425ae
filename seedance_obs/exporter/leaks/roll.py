"""Who is on the node's GPUs, as the leak probes need it: accounts with pids and boards."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.workload import Workload


@dataclass(slots=True)
class OnGpus:
    """An account that holds GPUs: its workload, those of its processes that are on them, and its
    boards; `activity` is by board, as a share of the board's time, None where unknown.
    """

    workload: Workload
    tenant: str
    pids: set[int] = field(default_factory=set)
    activity: dict[str, float | None] = field(default_factory=dict)


def roll_of(seats: Iterable[Seat]) -> Mapping[str, OnGpus]:
    """The accounts on the node's GPUs."""
    found: dict[str, OnGpus] = {}
    for seat in seats:
        account = found.setdefault(seat.account, OnGpus(seat.workload, tenant_of(seat.account)))
        account.pids.update(seat.pids)
        account.activity[seat.gpu.uuid] = seat.activity
    return found
