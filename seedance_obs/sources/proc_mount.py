"""What a `/proc` shows to us: the kernel's or a folder of files, and whether it hides processes."""

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.sources.small_files import read_text

_LIBC = ctypes.CDLL(None)
_PROC_SUPER_MAGIC = 0x9FA0
_STATFS_BYTES = 256  # it takes 120
_ROOT_INODE = 1  # PROC_ROOT_INO of linux/proc_ns.h
_CAP_SYS_PTRACE = 19  # a bit, see capabilities(7)
_WHOLE_UID_MAP = ["0", "0", "4294967295"]  # what the first user namespace shows
# As mount(8) takes them and as kernels before 5.8 print them.
_SPELLINGS = {"0": "off", "1": "noaccess", "2": "invisible", "4": "ptraceable"}


@dataclass(frozen=True, slots=True)
class ProcMount:
    """What a missing pid means in one `/proc`.

    Attributes:
        procfs: It is the kernel's. A folder of plain files, such as a simulated host's, is not.
        counts_fds: The size of `PID/fd` is the number of open file descriptors (Linux 6.2).
        hidepid: `off`, `noaccess`, `invisible` or `ptraceable`, as proc(5) names them, whichever
            way it was spelt; None where it cannot be told.
        shows_all: Whether a pid that is not there proves that no such process runs in this
            `/proc`'s pid namespace (which need not be the host's). False where `hidepid` hides
            processes from us, None where that cannot be told or there is no `/proc` at all.
    """

    procfs: bool
    counts_fds: bool = False
    hidepid: str | None = None
    shows_all: bool | None = None


def read_proc_mount(root: str | Path, own: str | Path = "/proc/self") -> ProcMount:
    """What `<root>/proc` shows to this process, whose mounts and rights are told below `own`."""
    try:
        found = os.stat(os.path.join(root, "proc"))
    except OSError:
        return ProcMount(procfs=False)
    if found.st_ino != _ROOT_INODE or not _is_procfs(os.path.join(root, "proc")):
        return ProcMount(procfs=False, hidepid="off", shows_all=True)
    options = _options(f"{own}/mountinfo", found.st_dev)
    hidepid = None if options is None else _hidepid(options)
    shows_all = _shows_all(hidepid, (options or {}).get("gid", "0"), f"{own}")
    return ProcMount(
        procfs=True, counts_fds=_counts_fds(f"{own}/fd"), hidepid=hidepid, shows_all=shows_all
    )


def _is_procfs(folder: str) -> bool:
    """By `f_type`, which `os.statvfs` leaves out; it comes first in the kernel's structure."""
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.statfs(os.fsencode(folder), answer) != 0:
        return False
    return ctypes.c_long.from_buffer(answer).value == _PROC_SUPER_MAGIC


def _options(mountinfo: str, device: int) -> dict[str, str] | None:
    """The options of a procfs by its device, which no path or bind mount can disguise.

    None where it is not among our mounts, as when the root is another process's, `/proc/1/root`.
    """
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in (read_text(mountinfo) or "").splitlines():
        mount, _, filesystem = line.partition(" - ")
        fields = filesystem.split()
        if mount.split()[2:3] == [wanted] and fields[:1] == ["proc"] and len(fields) > 2:
            pairs = (option.partition("=") for option in fields[2].split(","))
            return {name: value for name, _, value in pairs}
    return None


def _hidepid(options: dict[str, str]) -> str | None:
    told = options.get("hidepid", "off")
    name = _SPELLINGS.get(told, told)
    return name if name in _SPELLINGS.values() else None


def _shows_all(hidepid: str | None, gid: str, own: str) -> bool | None:
    """By the rules of `has_pid_permissions` of Linux's fs/proc/base.c.

    With `noaccess` nothing of another's process may be read, but its pid is seen.
    """
    if hidepid in ("off", "noaccess"):
        return True
    status = read_text(f"{own}/status") or ""
    if hidepid is None or not status:
        return None
    privileged = hidepid == "invisible" and gid in _groups(status)
    if not (privileged or _may_trace(status)):
        return False
    # Rights that a user namespace grants reach no process outside it.
    return True if (read_text(f"{own}/uid_map") or "").split() == _WHOLE_UID_MAP else None


def _groups(status: str) -> set[str]:
    """The groups that file access goes by: the last of the four in `Gid:`, and the others."""
    main = re.search(r"^Gid:.*\t(\d+)$", status, re.ASCII | re.MULTILINE)
    others = re.search(r"^Groups:[ \t]*(.*)$", status, re.MULTILINE)
    return {*(main.groups() if main else ()), *(others.group(1).split() if others else ())}


def _may_trace(status: str) -> bool:
    effective = re.search(r"^CapEff:\t([0-9a-f]{1,16})$", status, re.MULTILINE)
    return bool(effective and int(effective.group(1), 16) >> _CAP_SYS_PTRACE & 1)


def _counts_fds(folder: str) -> bool:
    """Asked of this process while it surely holds one."""
    try:
        held = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.stat(folder).st_size > 0
    except OSError:
        return False
    finally:
        os.close(held)
