"""The last placements on a node: what each workload was given when it first held anything.

They are not kept over a restart: what runs then is counted again, as it is first seen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.fragmentation.units import Unit, milli
from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import Request
from seedance_obs.workload import Workload


@dataclass(frozen=True, slots=True)
class Asked:
    """The request mix as FGD takes it, and all of it, in which the rare large requests are too."""

    frequent: Mix
    whole: Mix


class Placements:
    """Remembers `most` placements at most; the oldest make room.

    A workload is one placement for as long as it holds anything: one that opens its GPUs one by
    one, or whose limits are read late, is corrected. How much CPU it asked for is not known here.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._placed: dict[str, Request] = {}  # by workload, the oldest first
        self._holding: dict[str, Workload] = {}  # at the last tick
        self._asked: Asked | None = None

    def __len__(self) -> int:
        return len(self._placed)

    @property
    def asked(self) -> Asked:
        """What was asked for; empty before the first placement."""
        if self._asked is None:
            counts = Counter(self._placed.values())
            whole = Mix.of_counts(counts, percent_kept=100)
            self._asked = Asked(frequent=Mix.of_counts(counts), whole=whole)
        return self._asked

    def note(self, units: Iterable[Unit]) -> None:
        """Take in who holds what now. Processes that nobody could look up are no placement."""
        holding: dict[str, Workload] = {}
        shares: defaultdict[str, list[float]] = defaultdict(list)
        for unit in units:
            for workload, share in unit.holds:
                holding[workload.key] = workload
                shares[workload.key].append(share)
        holding.pop(UNKNOWN_WORKLOAD.key, None)
        for key, workload in holding.items():
            request = Request(gpus=len(shares[key]), gpu_milli=milli(max(shares[key])))
            self._place(workload, request, holding)
        self._holding = holding

    def _place(self, workload: Workload, request: Request, holding: dict[str, Workload]) -> None:
        before = self._known_as(workload, holding)
        if before in self._placed:
            known = self._placed[before]
            if before != workload.key:
                self._placed[workload.key] = self._placed.pop(before)
            if request == known or request.gpus < known.gpus:
                return  # one that gives back a part was placed on all of it
        elif before is not None:
            return  # its placement was forgotten
        self._placed[workload.key] = request
        self._asked = None
        while len(self._placed) > self._most:
            del self._placed[next(iter(self._placed))]

    def _known_as(self, workload: Workload, holding: dict[str, Workload]) -> str | None:
        """The key it had at the last tick: a pod or job has no start until a process of it is seen.

        None for one that held nothing then; whoever is still remembered keeps its place.
        """
        if workload.key in self._holding or workload.key in self._placed:
            return workload.key
        name = _name(workload)
        for key, other in self._holding.items():
            if other.started_at == 0 and key not in holding and name and _name(other) == name:
                return key
        return None


def _name(workload: Workload) -> tuple[str, ...]:
    """By what an allocator names a workload; empty for those that it names by nothing."""
    if workload.pod:
        return (workload.namespace, workload.pod)
    return (workload.slurm_job,) if workload.slurm_job else ()
