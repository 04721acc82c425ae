"""What a suspect's memory is made of, its limit of open files, and how much of it is in use."""

import os
import re
import subprocess
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.processes import kill_process
from seedance_obs.sources.procfs import read_start
from seedance_obs.sources.small_files import read_bytes, read_text

_KB = 1024
_LIMIT_SECONDS = 300.0
_MAX_OPEN_FILES = re.compile(rb"^Max open files +(\d{1,19}) ", re.MULTILINE)
_LEFT_ALONE = 1024  # processes that took too long, remembered
_GRACE_SECONDS = 0.1
_MOST_BYTES = 16_384
_COPY = "import sys; sys.stdout.write(open(sys.argv[1]).read())"


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """The memory of one process in bytes, by `/proc/PID/status`; None where it is not told.

    Attributes:
        resident: VmRSS: anonymous, file and shared memory together.
        rss_anon: RssAnon, as the next two since Linux 4.5.
        rss_file: RssFile: mapped files.
        rss_shmem: RssShmem: System V and POSIX shared memory, tmpfs, shared anonymous mappings.
        swap: VmSwap: anonymous memory that was swapped out.
        data: VmData: private writable mappings, touched or not.
        stack: VmStk.
        hugetlb: HugetlbPages, private and shared; in none of the above but `data`, if private.
    """

    resident: int | None
    rss_anon: int | None
    rss_file: int | None
    rss_shmem: int | None
    swap: int | None
    data: int | None
    stack: int | None
    hugetlb: int | None

    @property
    def residency(self) -> float | None:
        """RssAnon / (VmData + VmStk): how much of its anonymous memory is resident.

        What was reserved and never touched counts as not resident, and so does what was swapped
        out or lies in private huge pages of hugetlbfs; mapped files and shared memory do not count
        at all. A little over 1 is possible: pages that a process changed in mappings which it has
        made read-only since are anonymous and in no VmData.
        """
        if self.rss_anon is None or self.data is None or self.stack is None:
            return None
        reserved = self.data + self.stack
        return self.rss_anon / reserved if reserved else None


def read_memory(root: str | Path, pid: int) -> MemoryDetail | None:
    """What the memory of a process is made of; None when it is gone or may not be read."""
    text = read_text(f"{root}/proc/{pid}/status")
    if not text:
        return None
    told = _kilobytes(text)
    return MemoryDetail(
        resident=told.get("VmRSS"),
        rss_anon=told.get("RssAnon"),
        rss_file=told.get("RssFile"),
        rss_shmem=told.get("RssShmem"),
        swap=told.get("VmSwap"),
        data=told.get("VmData"),
        stack=told.get("VmStk"),
        hugetlb=told.get("HugetlbPages"),
    )


def read_fd_limit(root: str | Path, pid: int) -> int | None:
    """The soft limit of a process's open files; None where it has none, is gone or unreadable."""
    match = _MAX_OPEN_FILES.search(read_bytes(f"{root}/proc/{pid}/limits") or b"")
    return int(match.group(1)) if match else None


class FdLimits:
    """The soft limits of the open files of many processes, each read every few minutes only.

    A limit is seldom set after a start, and reading one costs as much as counting descriptors does.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = root
        self._known: dict[tuple[int, int], tuple[float, int]] = {}  # the period it was read in

    def of(self, pid: int, start_ticks: int, now: float) -> int | None:
        """As `read_fd_limit`, as of five minutes ago at most; `now` is monotonic seconds."""
        key = (pid, start_ticks)
        period = (now + pid) // _LIMIT_SECONDS  # others begin theirs at other times
        known = self._known.get(key)
        if known is not None and known[0] == period:
            return known[1]
        limit = read_fd_limit(self._root, pid)
        if limit is None:
            self._known.pop(key, None)
        else:
            self._known[key] = (period, limit)
        return limit

    def keep(self, keys: Container[tuple[int, int]]) -> None:
        """Forget every process but these, by pid and start."""
        self._known = {key: known for key, known in self._known.items() if key in keys}


class ReferencedMemory:
    """Reads how much of a suspect's memory was used lately, from `smaps_rollup` (Linux 4.14).

    The kernel walks the page tables of the process for it and may hold it up meanwhile: 4.5 s have
    been seen for 210 GB. A thread cannot be stopped in that, so a child process reads, is killed at
    the deadline, and is not waited for if even that does not end it. One reading runs at a time.
    """

    def __init__(self, root: str | Path, *, most_bytes: int, seconds: float) -> None:
        """Take the most resident memory that is walked, and how long a reading may take."""
        self._proc = os.path.join(root, "proc")
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._left_alone: dict[tuple[int, int], None] = {}  # pid and start of who took too long
        self._stuck: subprocess.Popen[bytes] | None = None

    def referenced_ratio(self, pid: int) -> float | None:
        """Referenced / Anonymous of a process, at most 1; None where it is not to be had.

        That is: gone, no right to trace it, nothing anonymous, more memory than is walked, took
        too long now or earlier, or an earlier reading has not ended.

        A page is referenced if it was used since the kernel last looked whether it can be evicted
        (or since somebody wrote `clear_refs`); on a machine that is not short of memory this may
        never have been, and what was used once at start-up still counts. So a low ratio means that
        much memory was left untouched for long, and a high one means nothing. Referenced counts
        mapped files too: with many of them the ratio is too high, never too low.
        """
        start = read_start(self._proc, pid)
        if start is None or (pid, start.start_ticks) in self._left_alone or self._is_stuck():
            return None
        resident = _kilobytes(read_text(f"{self._proc}/{pid}/status") or "").get("VmRSS")
        if resident is None or resident > self._most_bytes:
            return None
        text = self._read(f"{self._proc}/{pid}/smaps_rollup")
        if text is None:
            self._leave_alone((pid, start.start_ticks))
            return None
        return _referenced(_kilobytes(text))

    def _is_stuck(self) -> bool:
        if self._stuck is not None and self._stuck.poll() is not None:
            self._stuck = None
        return self._stuck is not None

    def _leave_alone(self, name: tuple[int, int]) -> None:
        self._left_alone[name] = None
        if len(self._left_alone) > _LEFT_ALONE:
            del self._left_alone[next(iter(self._left_alone))]

    def _read(self, file: str) -> str | None:
        """What a file holds, nothing where it cannot be read; None at the deadline."""
        try:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _COPY, file],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:  # short of processes, memory or descriptors
            return ""
        try:
            text, _ = child.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            if not kill_process(child, grace_seconds=_GRACE_SECONDS):
                self._stuck = child
            return None
        finally:
            if child.stdout is not None:
                child.stdout.close()
        return text[:_MOST_BYTES].decode("ascii", errors="replace")


def _kilobytes(text: str) -> Mapping[str, int]:
    """The lines of `status` and `smaps_rollup` that are in kB, which is 1024 bytes, in bytes."""
    lines = re.findall(r"^(\w+):[ \t]+(\d{1,16}) kB$", text, re.ASCII | re.MULTILINE)
    return {name: int(value) * _KB for name, value in lines}


def _referenced(rollup: Mapping[str, int]) -> float | None:
    referenced, anonymous = rollup.get("Referenced"), rollup.get("Anonymous")
    return min(1.0, referenced / anonymous) if referenced is not None and anonymous else None
