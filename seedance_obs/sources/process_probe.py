"""Open file descriptors and anonymous memory of many processes, at two small readings each."""

import errno
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from seedance_obs.sources.proc_mount import read_proc_mount
from seedance_obs.sources.procfs import read_start

# How the reading of one process may go; each process counts once.
OUTCOMES = {
    "read": "descriptors and memory were read, or it has no memory of its own",
    "fds_unknown": "its memory was read, its descriptors could not be",
    "memory_unknown": "its descriptors were read, its memory could not be",
    "no_permission": "it is there, and we may read nothing of it",
    "unreadable": "it is there, and what should tell is missing or garbled",
    "hidden": "it is not there, which does not prove that it has ended: see hidepid of proc(5)",
    "gone": "it has ended",
}
_STATM_BYTES = 256
_NO_MEMORY = b"0 0 0 "


class Counts(NamedTuple):
    """What one process holds. (pid, `start_ticks`) names it for as long as the machine is up.

    `resident_bytes` is all memory that is resident, `anonymous_bytes` what is anonymous of it
    (RssAnon); neither has the pages of hugetlbfs. None is unknown; of memory also that it has none,
    being a kernel thread or a zombie.
    """

    start_ticks: int
    fds: int | None
    anonymous_bytes: int | None
    resident_bytes: int | None


@dataclass(frozen=True, slots=True)
class ProbeReading:
    """What was read, by pid, and how it went with each process asked for, by `OUTCOMES`.

    `gone` are those that have certainly ended.
    """

    counts: dict[int, Counts] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    gone: set[int] = field(default_factory=set)


class _Place:
    """Where a process is read, spelt once, and who was there last."""

    __slots__ = ("fd", "inode", "pid", "start_ticks", "statm")

    def __init__(self, proc: str, pid: int) -> None:
        self.pid = pid
        self.fd = f"{proc}/{pid}/fd"
        self.statm = f"{proc}/{pid}/statm"
        self.inode = -1
        self.start_ticks = 0


class ProcessProbe:
    """Reads processes under a root such as `/host`; remembers those of the last reading.

    In the kernel's `/proc` the inode of `PID/fd` is one process's: whoever has the pid next has
    another, so that a start is read only with a new inode. A kernel that does not count open
    descriptors (before Linux 6.2) has them listed, which takes the right to trace the process.
    Anonymous memory is resident less shared pages of `statm`, which anyone may read.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        page_bytes: int = os.sysconf("SC_PAGE_SIZE"),
        own: str | Path = "/proc/self",
    ) -> None:
        """Take the root, and where this process's own mounts and rights are told."""
        self._root = root
        self._own = own
        self._proc = os.path.join(root, "proc")
        self._page_bytes = page_bytes
        self._places: dict[int, _Place] = {}
        self.mount = read_proc_mount(root, own)

    def all_pids(self) -> list[int]:
        """Every process that `/proc` lists, kernel threads too; empty where it cannot be listed.

        Threads of a process are not listed, nor are others' processes that `hidepid` hides. While
        we are ourselves short of descriptors they are those that were read last.
        """
        try:
            return [int(name) for name in os.listdir(self._proc) if name.isdecimal()]
        except OSError as error:
            return [] if _is_missing(error) else list(self._places)

    def read(self, pids: Iterable[int]) -> ProbeReading:
        """Read each of these processes once, and forget all others."""
        reading = ProbeReading()
        before, self._places = self._places, {}
        look = self._look_procfs if self.mount.procfs else self._look_folder
        went = []
        for pid in dict.fromkeys(pids):
            place = before.get(pid) or _Place(self._proc, pid)
            try:
                outcome, counts = look(place)
            except OSError as error:
                outcome = _why(error)
                if outcome == "gone":
                    reading.gone.add(pid)
                went.append(outcome)
            else:
                went.append(outcome)
                self._places[pid] = place
                if outcome != "unreadable":
                    reading.counts[pid] = counts
        reading.outcomes.update(went)
        self._judge_missing(reading)
        return reading

    def _look_procfs(self, place: _Place) -> tuple[str, Counts]:
        found = os.stat(place.fd)
        if found.st_ino != place.inode:
            self._identify(place, found.st_ino)
        fds: int | None = found.st_size
        if not fds and not self.mount.counts_fds:
            fds = _listed(place.fd)
        try:
            text = _statm(place.statm)
        except OSError as error:
            if _is_missing(error):
                raise
            text = b""
        return self._judge(place, fds, text)

    def _look_folder(self, place: _Place) -> tuple[str, Counts]:
        """Without the kernel's inodes nothing tells who is there but the start itself."""
        start = read_start(self._proc, place.pid)
        if start is None:
            os.stat(f"{self._proc}/{place.pid}")  # gone, or there and garbled
            return "unreadable", Counts(0, None, None, None)
        place.start_ticks = start.start_ticks
        try:
            text = _statm(place.statm)
        except OSError:
            text = b""
        return self._judge(place, _listed(place.fd), text)

    def _identify(self, place: _Place, inode: int) -> None:
        start = read_start(self._proc, place.pid)
        if os.stat(place.fd).st_ino != inode:  # the pid was handed on between the readings
            raise ProcessLookupError(errno.ESRCH, "another process by now", place.fd)
        if start is None:
            raise OSError(errno.EIO, "no start", place.fd)
        place.inode, place.start_ticks = inode, start.start_ticks

    def _judge(self, place: _Place, fds: int | None, statm: bytes) -> tuple[str, Counts]:
        anonymous, resident = self._memory_bytes(statm)
        counts = Counts(place.start_ticks, fds, anonymous, resident)
        memory_unknown = anonymous is None and not statm.startswith(_NO_MEMORY)
        if fds is None:
            return ("unreadable" if memory_unknown else "fds_unknown"), counts
        return ("memory_unknown" if memory_unknown else "read"), counts

    def _memory_bytes(self, statm: bytes) -> tuple[int, int] | tuple[None, None]:
        """Anonymous and resident bytes."""
        fields = statm.split(b" ", 3)
        try:
            size, resident, shared = int(fields[0]), int(fields[1]), int(fields[2])
        except (ValueError, IndexError):
            return None, None
        if not size or resident < shared:
            return None, None
        return (resident - shared) * self._page_bytes, resident * self._page_bytes

    def _judge_missing(self, reading: ProbeReading) -> None:
        """A mount's options and our rights are asked for when they matter: they may change."""
        if reading.gone:
            self.mount = read_proc_mount(self._root, self._own)
            if not self.mount.shows_all:
                reading.outcomes["hidden"] = reading.outcomes.pop("gone")
                reading.gone.clear()


def _why(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "no_permission"
    return "gone" if _is_missing(error) else "unreadable"


def _is_missing(error: OSError) -> bool:
    """Whether what was asked for is not there: we may ourselves be short of descriptors."""
    return error.errno in (errno.ENOENT, errno.ESRCH)


def _statm(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _STATM_BYTES)
    finally:
        os.close(descriptor)


def _listed(folder: str) -> int | None:
    try:
        return len(os.listdir(folder))
    except OSError:
        return None
