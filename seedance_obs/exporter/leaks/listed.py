"""What is known of the processes on a board for as long as its driver lists them, and after a gap.

A probe may fail to read a process once, the books lose whose a dead one was, and its pid may soon
be another's: none of that changes who is on the board while the driver's list goes on without a
change. Only a probe that finds a process gone, or its pid taken, says that it is dead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seedance_obs.merge import MergedGpu
from seedance_obs.process_tree import ProcessName

FORGOTTEN_SECONDS = 600.0  # after so long without a list whoever is listed may be another


@dataclass(frozen=True, slots=True)
class Alive:
    """A process on a GPU as the last probe found it; `alive` is None where nobody can tell."""

    name: ProcessName
    alive: bool | None


@dataclass(slots=True)
class Listed:
    """A process in the list of a board.

    Attributes:
        name: The process, with the latest start and short name that are known to be its own.
        alive: False where it is certain that it has ended; None where nobody can tell.
        owner: The account that it was booked to while it lived; empty where unknown.
    """

    name: ProcessName
    alive: bool | None = None
    owner: str = ""

    def hear(self, told: Alive | None, account: str) -> None:
        """Take what a probe found and the books say. Who has died is dead, whoever has its pid."""
        if self.alive is False:
            return
        if told is not None:
            if told.alive is False or self._is_another(told.name):
                self.alive = False
                return
            if told.name.start_ticks is not None:
                self.name = told.name
            self.alive = self.alive if told.alive is None else told.alive
        self.owner = account or self.owner

    def _is_another(self, name: ProcessName) -> bool:
        return None not in (self.name.start_ticks, name.start_ticks) and (
            self.name.start_ticks != name.start_ticks
        )


class ListedProcesses:
    """Remembers the processes of each board's list, and nobody who left it."""

    def __init__(self) -> None:
        self._boards: dict[str, tuple[float, dict[int, Listed]]] = {}  # with when it was listed

    def note(
        self, gpu: MergedGpu, told: Mapping[int, Alive], accounts: Mapping[int, str]
    ) -> Mapping[int, Listed]:
        """Take a board's list, what a probe told, and the known accounts; all by pid.

        A list that cannot be had changes nothing.
        """
        at, before = self._boards.get(gpu.uuid, (gpu.listed_at, {}))
        if gpu.processes is None:
            return before
        if gpu.listed_at - at > FORGOTTEN_SECONDS:
            before = {}
        pids = [process.pid for process in gpu.processes]
        now = {pid: before.get(pid) or Listed(ProcessName(pid, None)) for pid in pids}
        for pid, listed in now.items():
            listed.hear(told.get(pid), accounts.get(pid, ""))
        self._boards[gpu.uuid] = gpu.listed_at, now
        return now
