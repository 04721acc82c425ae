"""All processes of a workload, of which only some are on a GPU.

Loaders and helpers hold file descriptors and memory without a GPU context, so a driver never names
them. A workload with a cgroup of its own has what is in it. Another has a tree:

- its process group, where it is known by one; the processes on GPUs; of a Slurm job that has no
  cgroup, from the ones on GPUs up to below `slurmstepd`;
- and all that descend from these.

A tree ends where a session begins that is another user's or was placed elsewhere (a pod, container,
job or service): someone came in through a server of this tree. `sudo` in the same session leaves
none. Neither threads of the kernel nor init, and what it adopted, are ever in a tree.
"""

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from seedance_obs.sources.cgroup_path import CgroupFacts, read_cgroup_path
from seedance_obs.sources.cgroup_tree import CgroupTree, all_processes
from seedance_obs.sources.process_table import ProcessStat, ProcessTable
from seedance_obs.sources.procfs import read_process
from seedance_obs.sources.sandbox import INIT, Place, read_place
from seedance_obs.workload import Workload

_SLURM_STEP = "slurmstepd"
_MOST_PROCESSES = 65_536
_DEEPEST = 1024


class ProcessMembers:
    """Finds the processes of workloads under a host's root, such as `/host`.

    Trees are cut from one look at all processes, which is taken when the first one is asked for
    and kept until `refresh`.
    """

    def __init__(self, root: str | Path) -> None:
        self._proc = os.path.join(root, "proc")
        self._cgroups = CgroupTree(root)
        self._table = ProcessTable(root)
        self._owners: dict[int, tuple[int, Place] | None] = {}

    def refresh(self) -> None:
        """Begin a new probe: look at all processes again when a tree is next asked for."""
        self._table.refresh()
        self._owners.clear()

    def of(self, workload: Workload, pids: Iterable[int]) -> frozenset[int]:
        """All processes of a workload, given those that are on GPUs, which are in the answer.

        A workload that began inside another's tree is in that one's answer too.
        """
        given = frozenset(pids)
        return given | (self._of_cgroup(workload) or self._of_tree(workload, given))

    def _of_cgroup(self, workload: Workload) -> frozenset[int]:
        """What runs in a workload's own cgroup; empty where it has none that can be seen."""
        found = map(all_processes, self._folders(workload))
        return next(filter(None, found), frozenset()) - {INIT}

    def _folders(self, workload: Workload) -> Iterator[str]:
        """A workload's own cgroup in every hierarchy; v1 may place processes in some of them only.

        The cgroup of a workload is that of one process, a container of a pod or a step of a job;
        the path of what it says is the pod's or job's.
        """
        facts = read_cgroup_path(workload.cgroup)
        pods = self._cgroups.pods(workload.uid) if workload.kind == "pod" else ()
        own = self._cgroups.folders(facts.path) if _has_cgroup(workload, facts) else ()
        return itertools.chain(pods, own)

    def _of_tree(self, workload: Workload, given: frozenset[int]) -> frozenset[int]:
        roots = set(given)
        if workload.kind == "process" and workload.uid.isdecimal():
            roots |= set(self._table.group(int(workload.uid)))
        elif workload.kind == "slurm":
            roots = {self._first_of_step(pid) for pid in given}
        return self._below(roots)

    def _first_of_step(self, pid: int) -> int:
        """The process that Slurm started a step with, above one; itself where there is none."""
        above = itertools.islice(self._ancestors(pid), _DEEPEST)
        for child, parent in itertools.pairwise([pid, *above]):
            stat = self._table.stat(parent)
            if stat is not None and stat.comm == _SLURM_STEP:
                return child
        return pid

    def _ancestors(self, pid: int) -> Iterator[int]:
        while (stat := self._table.stat(pid)) is not None and stat.parent > INIT:
            pid = stat.parent
            yield pid

    def _below(self, roots: Iterable[int]) -> frozenset[int]:
        """Processes and all that descend from them, as far as a tree reaches."""
        found = {pid for pid in roots if pid > INIT and self._is_user(self._table.stat(pid))}
        waiting = list(found)
        while waiting and len(found) < _MOST_PROCESSES:
            below = [pid for pid in self._children(waiting.pop()) if pid not in found]
            waiting += below
            found.update(below)
        return frozenset(found)

    def _children(self, parent: int) -> list[int]:
        """The children of a process that are in its tree."""
        children = self._table.children(parent)
        above = self._table.stat(parent) if children else None
        if above is None:
            return []
        return [pid for pid in children if self._stays(pid, parent, above)]

    def _is_user(self, stat: ProcessStat | None) -> bool:
        return stat is not None and not stat.kernel

    def _stays(self, pid: int, parent: int, above: ProcessStat) -> bool:
        child = self._table.stat(pid)
        if child is None or child.kernel or child.start_ticks < above.start_ticks:
            return False
        if child.session == above.session:
            return True
        owner = self._owner(pid)
        return owner is not None and owner == self._owner(parent)

    def _owner(self, pid: int) -> tuple[int, Place] | None:
        """Whose a process is, by user and place; None where that cannot be read."""
        if pid not in self._owners:
            process, place = read_process(self._proc, pid), read_place(self._proc, pid)
            self._owners[pid] = None if process is None or place is None else (process.uid, place)
        return self._owners[pid]


def _has_cgroup(workload: Workload, facts: CgroupFacts) -> bool:
    """Whether a path names a cgroup of this workload alone."""
    return {
        "pod": bool(facts.pod_uid or facts.container_id),
        "container": bool(facts.container_id),
        "slurm": bool(facts.slurm_job),
        "service": bool(facts.unit),
    }.get(workload.kind, False)
