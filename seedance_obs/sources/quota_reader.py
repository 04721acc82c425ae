"""Reads what the processes of a host may use of its GPUs, from files under any root.

`cgroup.gpu-quota` files are looked for at the cgroup of a process and at all above it; the
smallest limit on the way holds, as for other cgroup limits. Where no such file is, a look costs one
failed open for each cgroup on the way, and cgroups above are shared. What is told of a file is five
seconds old at most. An environment holds secrets: it is read once for each process, and of it only
the limits are kept. Reading it waits for a process whose memory map is locked.
"""

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from seedance_obs.sources.cgroup_tree import hierarchies
from seedance_obs.sources.hami_region import HEAD_BYTES, parse_region
from seedance_obs.sources.quota_variables import hami_quotas, limiting_variables, mps_quotas
from seedance_obs.sources.quotas import Quota, parse_gpu_quota

QUOTA_FILE = "cgroup.gpu-quota"
HAMI_CONTAINERS = "usr/local/vgpu/containers"  # HAMi's default, below the host's root
_FILE_SECONDS = 2.5  # half of what is promised: a quota is put together of files read before it
_LARGEST_QUOTA_BYTES = 4096
_LARGEST_ENVIRON_BYTES = 2**20
_REMEMBERED = 4096
_MOST_ENTRIES = 16  # of a HAMi folder, which its container can fill
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ENODEV)

LOG = logging.getLogger(__name__)

Value = TypeVar("Value")


class _Memory(Generic[Value]):
    """The last few thousand things read, each with the moment it was read."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[Value, float]] = {}

    def get(self, key: object) -> Value | None:
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    def fresh(self, key: object, since: float) -> Value | None:
        """What was read at `since` or later."""
        kept = self._kept.get(key)
        return None if kept is None or kept[1] < since else kept[0]

    def keep(self, key: object, value: Value, now: float) -> Value:
        self._kept.pop(key, None)
        if len(self._kept) >= _REMEMBERED:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (value, now)
        return value


@dataclass(frozen=True, slots=True)
class _Level:
    """What the file of one cgroup says; `changed_at` is None where there is no file."""

    memory_bytes: int | None = None
    sm_ratio: float | None = None
    changed_at: float | None = None
    fault: str = ""


class QuotaReader:
    """The quotas of processes, read from a host's files."""

    def __init__(self, root: str | Path, *, clock: Callable[[], float]) -> None:
        """Remember where to look; nothing is read yet.

        Args:
            root: The host's root, such as `/host`.
            clock: Monotonic seconds.
        """
        below = str(root).rstrip("/")
        self._proc = f"{below}/proc"
        self._cgroups = f"{below}/sys/fs/cgroup"
        self._hami = f"{below}/{HAMI_CONTAINERS}"
        self._clock = clock
        self._bases: _Memory[tuple[str, ...]] = _Memory()
        self._levels: _Memory[_Level] = _Memory()
        self._by_cgroup: _Memory[tuple[Quota, ...]] = _Memory()
        self._by_process: _Memory[tuple[Quota, ...]] = _Memory()
        self._by_container: _Memory[tuple[Quota, ...]] = _Memory()

    def quotas(
        self,
        pid: int,
        start_ticks: int,
        cgroup: str | None,
        *,
        pod_uid: str = "",
        container: str = "",
    ) -> tuple[Quota, ...]:
        """What limits a process: cgroup files, MPS, and HAMi by its file or else by environment.

        Args:
            pid: As the host's `/proc` has it.
            start_ticks: When the process was started; with the pid it names one process.
            cgroup: Its path in the cgroup hierarchy, None where it is not known.
            pod_uid: The UID of its pod, and with `container` the name that HAMi knows it by.
            container: The container's name in its pod.

        What cannot be read limits nothing here and costs nothing else.
        """
        now = self._clock()
        found = self._of_cgroup(cgroup, now) if cgroup else ()
        started = self._of_process(pid, start_ticks, now)
        shared = self._of_container(f"{pod_uid}_{container}", now) if pod_uid and container else ()
        own = (quota for quota in started if not (shared and quota.source == "hami"))
        return (*found, *own, *shared)

    def _of_cgroup(self, cgroup: str, now: float) -> tuple[Quota, ...]:
        known = self._by_cgroup.fresh(cgroup, now - _FILE_SECONDS)
        if known is not None:
            return known
        files = [self._level(folder, now) for folder in self._folders(cgroup, now)]
        told = [level for level in files if level.changed_at is not None]
        quota = Quota(
            "gpu-quota",
            min(
                (each.memory_bytes for each in told if each.memory_bytes is not None), default=None
            ),
            min((each.sm_ratio for each in told if each.sm_ratio is not None), default=None),
            max((each.changed_at for each in told if each.changed_at is not None), default=None),
        )
        return self._by_cgroup.keep(cgroup, (quota,) if told else (), now)

    def _folders(self, cgroup: str, now: float) -> Iterator[str]:
        """The cgroup and all above it, in each hierarchy.

        A path with `..` is one that a cgroup namespace hides; it names no place here.
        """
        parts = [part for part in cgroup.split("/") if part]
        if ".." in parts:
            return
        for base in self._hierarchies(now):
            for depth in range(len(parts), -1, -1):
                yield "/".join((base, *parts[:depth]))

    def _hierarchies(self, now: float) -> tuple[str, ...]:
        """The unified hierarchy; on hosts with cgroup v1 also that of each controller."""
        known = self._bases.fresh(None, now - _FILE_SECONDS)
        if known is not None:
            return known
        return self._bases.keep(None, hierarchies(self._cgroups), now)

    def _level(self, folder: str, now: float) -> _Level:
        known = self._levels.fresh(folder, now - _FILE_SECONDS)
        if known is not None:
            return known
        before = self._levels.get(folder)
        level = _read_level(f"{folder}/{QUOTA_FILE}")
        if level.fault != (before.fault if before else ""):
            if level.fault:
                LOG.warning("event=gpu_quota_unreadable folder=%s fault=%r", folder, level.fault)
            else:
                LOG.info("event=gpu_quota_recovered folder=%s", folder)
        return self._levels.keep(folder, level, now)

    def _of_process(self, pid: int, start_ticks: int, now: float) -> tuple[Quota, ...]:
        known = self._by_process.get((pid, start_ticks))
        if known is not None:
            return known
        try:
            environ = _read(f"{self._proc}/{pid}/environ", _LARGEST_ENVIRON_BYTES)[0]
        except OSError as error:
            LOG.debug("event=environment_unreadable pid=%d error=%r", pid, error.strerror)
            environ = b""
        variables = limiting_variables(environ)
        quotas = (*mps_quotas(variables), *hami_quotas(variables))
        return self._by_process.keep((pid, start_ticks), quotas, now)

    def _of_container(self, name: str, now: float) -> tuple[Quota, ...]:
        known = self._by_container.fresh(name, now - _FILE_SECONDS)
        if known is not None:
            return known
        quotas = () if "/" in name else _read_container(f"{self._hami}/{name}")
        return self._by_container.keep(name, quotas, now)


def _read_level(file: str) -> _Level:
    try:
        content, changed_at = _read(file, _LARGEST_QUOTA_BYTES)
        memory, share = parse_gpu_quota(content.decode("utf-8"))
    except OSError as error:
        absent = error.errno in _ABSENT
        return _Level() if absent else _Level(fault=error.strerror or str(error))
    except ValueError as error:
        return _Level(fault=str(error))
    return _Level(memory, share, changed_at)


def _read_container(folder: str) -> tuple[Quota, ...]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.path for entry in islice(entries, _MOST_ENTRIES))
    except OSError:
        return ()
    for name in names:
        if name.endswith(".cache"):
            try:
                quotas = parse_region(_read(name, HEAD_BYTES)[0])
            except OSError:
                continue
            if quotas:
                return quotas
    return ()


def _read(file: str, most_bytes: int) -> tuple[bytes, float]:
    """The beginning of a plain file, and when it was last changed (Unix seconds).

    A container may have put anything there: no link is followed, and a pipe is not waited for.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", file)
        chunks = []
        while most_bytes > 0 and (chunk := os.read(descriptor, most_bytes)):
            chunks.append(chunk)
            most_bytes -= len(chunk)
        return b"".join(chunks), found.st_mtime
    finally:
        os.close(descriptor)
