"""The processes of a node that the leak probes are for, whose they are, and what they hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from seedance_obs.exporter.leaks.listed import Alive
from seedance_obs.exporter.leaks.roll import OnGpus, Roll
from seedance_obs.leaks.suspect import OTHERS_HIDDEN
from seedance_obs.process_tree import ProcessName
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_probe import ProbeReading, ProcessProbe
from seedance_obs.sources.procfs import read_comm, read_start


@dataclass(frozen=True, slots=True)
class Count:
    """What one census found.

    Attributes:
        members: The processes of those that hold GPUs, by account.
        account_of: The account of each of these, by pid.
        reading: What they hold, and how reading them went.
        on_gpus: The processes that drivers list, by pid, as far as anything is known of them.
    """

    members: Mapping[str, frozenset[int]] = field(default_factory=dict)
    account_of: Mapping[int, str] = field(default_factory=dict)
    reading: ProbeReading = field(default_factory=ProbeReading)
    on_gpus: Mapping[int, Alive] = field(default_factory=dict)


class Census:
    """Counts the trees of those that hold GPUs; `every_process`: also all others of the host.

    `proc` is the folder of processes.
    """

    def __init__(
        self, proc: str, probe: ProcessProbe, members: ProcessMembers, *, every_process: bool
    ) -> None:
        self._proc = proc
        self._probe = probe
        self._members = members
        self._every_process = every_process
        self._starts: dict[int, int] = {}  # of processes on GPUs, as they were read last

    def take(self, roll: Roll, *, host_pids: bool) -> Count:
        """Read each process once.

        Without `host_pids` the pids of drivers are other processes' here, or may be: these are not
        read, and count as `no_host_pids`. Where all are asked for and some may not be seen at all,
        `OTHERS_HIDDEN` says so: how many they are nobody can tell.
        """
        if not host_pids:
            reading = self._read(set(), host_pids=False)
            if roll.pids:
                reading.outcomes["no_host_pids"] = len(roll.pids)
            return Count(reading=reading)
        accounts = self._still(roll)
        self._members.refresh()
        members = {name: self._members.of(on.workload, on.pids) for name, on in accounts.items()}
        account_of = {pid: account for account, pids in members.items() for pid in pids}
        # Of two that have a process in their trees it is the one's that has it on a GPU.
        account_of |= {pid: account for account, on in accounts.items() for pid in on.pids}
        reading = self._read({*account_of, *roll.pids}, host_pids=True)
        self._note_starts(roll, reading)
        return Count(members, account_of, reading, self._alive(roll.pids, reading))

    def _note_starts(self, roll: Roll, reading: ProbeReading) -> None:
        """Keep the starts of processes on GPUs; one that cannot be read now is as it was."""
        read = roll.pids & reading.counts.keys()
        kept = {pid: start for pid, start in self._starts.items() if pid in roll.pids}
        self._starts = kept | {pid: reading.counts[pid].start_ticks for pid in read}

    def _still(self, roll: Roll) -> Mapping[str, OnGpus]:
        """The accounts, without the pids of silent boards that may be other processes' by now.

        One that had no other pids is left out: its process group may be another by now, too.
        """
        lost = {pid for pid in roll.remembered if not self._is_same(pid)}
        return {
            name: replace(on, pids=on.pids - lost)
            for name, on in roll.accounts.items()
            if not on.pids or on.pids - lost
        }

    def _is_same(self, pid: int) -> bool:
        found = read_start(self._proc, pid)
        return found is not None and found.start_ticks == self._starts.get(pid)

    def _read(self, pids: set[int], *, host_pids: bool) -> ProbeReading:
        probe = self._probe
        if not self._every_process:
            return probe.read(pids)
        reading = probe.read({*pids, *probe.all_pids()})
        if not (host_pids and probe.mount.shows_all):
            reading.outcomes[OTHERS_HIDDEN] = 1
        return reading

    def _alive(self, pids: Iterable[int], reading: ProbeReading) -> Mapping[int, Alive]:
        found = {}
        for pid in pids:
            if pid in reading.gone:
                found[pid] = Alive(ProcessName(pid, None), alive=False)
            elif pid in reading.counts:
                start_ticks = reading.counts[pid].start_ticks
                name = ProcessName(pid, start_ticks, read_comm(self._proc, pid))
                found[pid] = Alive(name, alive=True)
        return found
