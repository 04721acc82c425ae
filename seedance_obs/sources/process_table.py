"""Who descends from whom: all processes of a `/proc` by parent and by process group.

Reading `/proc/PID/stat` costs several times what listing `/proc` does, and a host has thousands
of processes. The listing tells the inode of each process's folder, which the kernel binds to the
process and not to its number; so only what is new is read, and what may have changed since: those
whose parent has gone, and the young, which choose a group and a session right after their start.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.sources.proc_mount import read_proc_mount
from seedance_obs.sources.small_files import read_bytes

_KERNEL_THREAD = 0x200000  # PF_KTHREAD of linux/sched.h, since Linux 2.6.27
_READ_BYTES = 4096
# Of proc(5) stat, counted from field 3, the first after the name.
_PARENT, _GROUP, _SESSION, _FLAGS, _START = (field - 3 for field in (4, 5, 6, 9, 22))


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What `/proc/PID/stat` says; `start_ticks` since boot, numbers of processes we see not are 0.

    Attributes:
        start_ticks: When it started; with the pid it names one process.
        comm: Its short name as it chose it: any characters.
        parent: The pid of its parent, or of who took it over.
        group: Its process group.
        session: Its session.
        kernel: Whether it is a thread of the kernel.
    """

    start_ticks: int
    comm: str
    parent: int
    group: int
    session: int
    kernel: bool


def read_stat(proc_root: str, pid: int) -> ProcessStat | None:
    """What a process is, by one read of one file; None when it is gone."""
    text = read_bytes(f"{proc_root}/{pid}/stat", _READ_BYTES) or b""
    head, _, tail = text.rpartition(b")")
    fields = tail.split(None, _START + 1)
    try:
        return ProcessStat(
            start_ticks=int(fields[_START]),
            comm=head.partition(b"(")[2].decode("utf-8", errors="replace"),
            parent=int(fields[_PARENT]),
            group=int(fields[_GROUP]),
            session=int(fields[_SESSION]),
            kernel=bool(int(fields[_FLAGS]) & _KERNEL_THREAD),
        )
    except (IndexError, ValueError):
        return None


class ProcessTable:
    """The processes under a host's root, as they were at the first question after `refresh`.

    Where they cannot be listed, for want of descriptors of our own, they are as they were before.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = root
        self._proc = os.path.join(root, "proc")
        self._stale = True
        self._inodes: dict[int, int] = {}
        self._young: set[int] = set()
        self._stats: dict[int, ProcessStat] = {}
        self._children: dict[int, list[int]] = {}
        self._groups: dict[int, list[int]] = {}

    def refresh(self) -> None:
        """Look again when next asked; nothing is read before."""
        self._stale = True

    def stat(self, pid: int) -> ProcessStat | None:
        """What a process is; None where there is none of this pid."""
        self._look()
        return self._stats.get(pid)

    def children(self, pid: int) -> Sequence[int]:
        """The pids whose parent a process is."""
        self._look()
        return self._children.get(pid, ())

    def group(self, number: int) -> Sequence[int]:
        """The pids of a process group; none of group 0, which is what hidden groups read as."""
        self._look()
        return self._groups.get(number, ()) if number else ()

    def _look(self) -> None:
        if not self._stale:
            return
        self._stale = False
        inodes = _listed(self._proc)
        if inodes is None:
            return
        same = self._same(inodes)
        stats = {pid: self._stats[pid] for pid in same - self._young if pid in self._stats}
        # Parent 0 is nobody's pid: nothing to go.
        orphans = [pid for pid, s in stats.items() if s.parent and s.parent not in same]
        for pid in [*(inodes.keys() - stats.keys()), *orphans]:
            read = read_stat(self._proc, pid)
            if read is not None:
                stats[pid] = read
            else:
                stats.pop(pid, None)
        self._young = inodes.keys() - same
        self._inodes, self._stats = inodes, stats
        self._index()

    def _same(self, inodes: dict[int, int]) -> set[int]:
        """The processes that were there before; of folders that are no real procfs, none."""
        if not read_proc_mount(self._root).procfs:
            return set()
        before = self._inodes
        return {pid for pid, inode in inodes.items() if before.get(pid) == inode}

    def _index(self) -> None:
        children, groups = defaultdict(list), defaultdict(list)
        for pid, stat in self._stats.items():
            children[stat.parent].append(pid)
            groups[stat.group].append(pid)
        self._children, self._groups = dict(children), dict(groups)


def _listed(proc: str) -> dict[int, int] | None:
    """The inodes of the pids that are listed, threads are not; None where they cannot be."""
    try:
        with os.scandir(proc) as entries:
            return {
                int(entry.name): entry.inode()
                for entry in entries
                if entry.name.isdecimal() and entry.name.isascii()
            }
    except OSError:
        return None
