"""Where a process runs: its namespaces, and who started it up to the first process of its place.

A chain goes from parent to parent, and ends below the first that lies in another mount namespace,
or in another cgroup of those that pods, containers, Slurm jobs and services get; or that starts
what others ask for: init, a shim of a container, `slurmstepd`, `sshd`, a service manager. Whoever
is lied to by a process that calls itself such a name sees a shorter chain, no worse.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.process_tree import ProcessName, Sandbox
from seedance_obs.sources.cgroup_path import CgroupFacts, read_cgroup_path
from seedance_obs.sources.process_table import ProcessStat, read_stat
from seedance_obs.sources.procfs import read_cgroups

INIT = 1
_LONGEST = 64
_TRIES = 4  # a parent that ends while it is looked at hands its children on
# Whoever starts the first process of a container, a job or a session, by name; the kernel keeps 15
# characters of it.
_STARTERS = frozenset(
    [
        *("init", "systemd", "systemd-nspawn", "slurmd", "slurmstepd", "login", "cron", "crond"),
        *("atd", "conmon", "dockerd", "docker-proxy", "docker-containe", "lxc-start", "screen"),
        "tmux: server",
    ]
)
_STARTERS_OF_A_KIND = ("containerd-shim", "conmon-", "sshd")  # sshd-session since OpenSSH 9.8

Place = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Seen:
    pid: int
    stat: ProcessStat
    mount_namespace: int | None
    place: Place | None


class Sandboxes:
    """Looks up where processes run, under a host's root such as `/host`.

    Thousands may be suspect at once, most of them in one tree. So between two refreshes every
    ancestor is looked at once.
    """

    def __init__(self, root: str | Path) -> None:
        self._proc = os.path.join(root, "proc")
        self._ancestors: dict[int, _Seen] = {}
        self._parents: dict[tuple[int, int], _Seen | None] = {}  # by pid and start of the child

    def refresh(self) -> None:
        """Begin a new probe, in which every ancestor is looked at anew."""
        self._ancestors, self._parents = {}, {}

    def of(self, pid: int) -> Sandbox | None:
        """Where a process runs; None when it is gone, or went while being looked at.

        A namespace that may not be read (that takes the right to trace the process) is None.
        """
        seen = self._see(pid)
        if seen is None:
            return None
        net = _namespace(self._proc, pid, "net")
        chain = self._chain(seen)
        if self._start(pid) != seen.stat.start_ticks:
            return None
        names = (ProcessName(each.pid, each.stat.start_ticks, each.stat.comm) for each in chain)
        return Sandbox(tuple(names), seen.mount_namespace, net)

    def _chain(self, first: _Seen) -> list[_Seen]:
        chain = [first]
        while len(chain) < _LONGEST:
            parent = self._parent(chain[-1])
            if parent is None or parent in chain or _is_outside(parent, chain[-1]):
                break
            chain.append(parent)
        return chain

    def _parent(self, child: _Seen) -> _Seen | None:
        key = (child.pid, child.stat.start_ticks)
        if key not in self._parents:
            self._parents[key] = self._look_for_parent(child)
        return self._parents[key]

    def _look_for_parent(self, child: _Seen) -> _Seen | None:
        """The parent, which the child names before and after it is looked at; None: none is seen.

        Between two looks its pid may come to be another's. Whoever started later is no parent.
        """
        number = child.stat.parent
        for _ in range(_TRIES):
            parent = self._ancestor(number) if number > INIT else None
            again = read_stat(self._proc, child.pid)
            if again is None or again.start_ticks != child.stat.start_ticks:
                return None
            if again.parent == number:
                return parent if parent and _is_older(parent, child) else None
            number = again.parent
        return None

    def _ancestor(self, pid: int) -> _Seen | None:
        seen = self._ancestors.get(pid) or self._see(pid)
        if seen is not None:
            self._ancestors[pid] = seen
        return seen

    def _see(self, pid: int) -> _Seen | None:
        stat = read_stat(self._proc, pid)
        if stat is None:
            return None
        mount = _namespace(self._proc, pid, "mnt")
        seen = _Seen(pid, stat, mount, read_place(self._proc, pid))
        return seen if self._start(pid) == stat.start_ticks else None

    def _start(self, pid: int) -> int | None:
        stat = read_stat(self._proc, pid)
        return None if stat is None else stat.start_ticks


def tree_of(sandbox: Sandbox) -> ProcessName:
    """The first process of where a process runs: those that share it are one suspect."""
    return sandbox.chain[-1]


def read_place(proc_root: str, pid: int) -> Place | None:
    """Where a process was placed by its cgroups: pod, container, Slurm job, service; each or ''.

    None where its cgroups cannot be read. With cgroup v1 the first that tells counts.
    """
    paths = read_cgroups(proc_root, pid)
    facts = [read_cgroup_path(path) for path in paths]
    told = next(filter(_is_placed, facts), None) or next((f for f in facts if f.unit), None)
    if told is None:
        return ("", "", "", "") if paths else None
    return (told.pod_uid, told.container_id, told.slurm_job, told.unit)


def _starts_others(comm: str) -> bool:
    """Whether a process of this name starts the first process of a container, job or session."""
    return comm in _STARTERS or comm.startswith(_STARTERS_OF_A_KIND)


def _is_outside(parent: _Seen, child: _Seen) -> bool:
    apart = (
        None not in (parent.mount_namespace, child.mount_namespace)
        and parent.mount_namespace != child.mount_namespace
    )
    moved = None not in (parent.place, child.place) and parent.place != child.place
    return apart or moved or parent.stat.kernel or _starts_others(parent.stat.comm)


def _is_older(parent: _Seen, child: _Seen) -> bool:
    return parent.stat.start_ticks <= child.stat.start_ticks


def _is_placed(facts: CgroupFacts) -> bool:
    return bool(facts.pod_uid or facts.slurm_job or facts.container_id)


def _namespace(proc_root: str, pid: int, kind: str) -> int | None:
    """The inode of a namespace of a process; None where it may not be read."""
    try:
        target = os.readlink(f"{proc_root}/{pid}/ns/{kind}")
    except OSError:
        return None
    match = re.fullmatch(rf"{kind}:\[(\d{{1,20}})\]", target, re.ASCII)
    return int(match.group(1)) if match else None
