"""Which account sits on which board or MIG instance at one tick, with its pids and what it used."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from seedance_obs.attribution.tick import Holder
from seedance_obs.exporter.books.residency import Occupancy
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import MigReadings
from seedance_obs.workload import Workload


@dataclass(frozen=True, slots=True)
class Seat:
    """A workload on a board (or on a MIG instance) at one tick, and what it used there."""

    account: str
    workload: Workload
    gpu: MergedGpu
    instance: MigReadings | None
    pids: tuple[int, ...]
    memory_bytes: int
    activity: float | None


def seats_of(
    gpu: MergedGpu,
    occupied: Occupancy,
    holders: Sequence[Holder],
    account_of: Callable[[Workload], str],
) -> Iterator[Seat]:
    """Every resident of a board, with the activity that its holder is booked by."""
    activity = {holder.account: holder.activity for holder in holders}
    for place, residents in occupied.places:
        for resident in residents:
            account = account_of(resident.workload)
            yield Seat(
                account=account,
                workload=resident.workload,
                gpu=gpu,
                instance=place.instance,
                pids=tuple(resident.pids),
                memory_bytes=resident.memory_bytes,
                activity=activity.get(account),
            )
