"""Who a process is: what `/proc` and `/etc/passwd` say, under any root."""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from seedance_obs.sources.small_files import read_text

# With cgroup v1 and hybrid hosts a process has one path per controller. Container runtimes and
# Slurm always place it in these; the unified one (empty name) may only hold the service.
_CONTROLLERS = ("memory", "pids", "devices", "cpu", "", "name=systemd")
# Of proc(5) stat, counted from field 3, the first after the name.
_PROCESS_GROUP, _STARTTIME = 5 - 3, 22 - 3
_READ_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Process:
    """One process. (`pid`, `start_ticks`) names it for as long as the machine is up.

    `start_ticks` is in clock ticks since boot, `uid` the real user, `cgroup` the path in the
    hierarchy its container runtime uses (None where it cannot be read).
    """

    pid: int
    start_ticks: int
    uid: int
    comm: str
    cgroup: str | None


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """What tells a process from the next one with its pid: `start_ticks` since boot; its group."""

    start_ticks: int
    process_group: int


def read_start(proc_root: str | Path, pid: int) -> ProcessStart | None:
    """When a process started, by one read of one file; None when it is gone."""
    try:
        descriptor = os.open(f"{proc_root}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fields = os.read(descriptor, _READ_BYTES).rpartition(b")")[2].split()
        return ProcessStart(int(fields[_STARTTIME]), int(fields[_PROCESS_GROUP]))
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(descriptor)


def read_comm(proc_root: str | Path, pid: int) -> str:
    """The short name of a process, 15 bytes at most; empty when it is gone."""
    return (read_text(f"{proc_root}/{pid}/comm") or "").removesuffix("\n")


def read_cgroups(proc_root: str | Path, pid: int) -> tuple[str, ...]:
    """Every cgroup path of a process, each once; cgroup v1 may have one per controller."""
    text = read_text(f"{proc_root}/{pid}/cgroup") or ""
    paths = (line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2)
    return tuple(dict.fromkeys(paths))


def boot_time(proc_root: str | Path) -> int | None:
    """When the machine started, in Unix seconds by its clock now; None where it is not told.

    It moves when the clock is set, so a caller who names things by it reads it once.
    """
    match = re.search(r"^btime (\d{1,12})$", read_text(f"{proc_root}/stat") or "", re.A | re.M)
    return int(match.group(1)) if match else None


def boot_id(proc_root: str | Path) -> str:
    """The random name of this boot of the machine; empty where it is not told."""
    return (read_text(f"{proc_root}/sys/kernel/random/boot_id") or "").strip()


def read_process(proc_root: str | Path, pid: int) -> Process | None:
    """The process with this pid; None when it is gone, or went while being read."""
    folder = f"{proc_root}/{pid}"
    before = _stat(folder)
    uid = _uid(folder)
    if before is None or uid is None:
        return None
    process = Process(pid, before[1], uid, before[0], _cgroup(folder))
    # The pid may have been handed to another process in between.
    return process if _stat(folder) == before else None


def user_name(root: str | Path, uid: int) -> str:
    """The name of a user by `<root>/etc/passwd`; the number as text where it has none."""
    file = Path(root) / "etc/passwd"
    try:
        found = os.stat(file)
        names = _user_names(str(file), found.st_mtime_ns, found.st_size)
    except OSError:
        return str(uid)
    return names.get(uid, str(uid))


@lru_cache(maxsize=8)
def _user_names(file: str, _mtime_ns: int, _size: int) -> dict[int, str]:
    names: dict[int, str] = {}
    for line in Path(file).read_text("utf-8", errors="replace").splitlines():
        fields = line.split(":")
        if len(fields) >= 4 and fields[0] and re.fullmatch(r"\d{1,10}", fields[2], re.ASCII):
            names.setdefault(int(fields[2]), fields[0])
    return names


def _stat(folder: str) -> tuple[str, int] | None:
    """Name and start of a process; the name may itself hold spaces and parentheses."""
    text = read_text(f"{folder}/stat") or ""
    head, closing, tail = text.rpartition(")")
    fields = tail.split()
    if not closing or "(" not in head or len(fields) <= _STARTTIME:
        return None
    if not fields[_STARTTIME].isdecimal():
        return None
    return head.partition("(")[2], int(fields[_STARTTIME])


def _uid(folder: str) -> int | None:
    match = re.search(
        r"^Uid:\s+(\d+)", read_text(f"{folder}/status") or "", re.ASCII | re.MULTILINE
    )
    return int(match.group(1)) if match else None


def _cgroup(folder: str) -> str | None:
    paths: dict[str, str] = {}
    for line in (read_text(f"{folder}/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        paths.update(dict.fromkeys(controllers.split(","), path))
    known = [paths[name] for name in _CONTROLLERS if paths.get(name)]
    return next((path for path in known if path != "/"), known[0] if known else None)
