"""Whose a process is: its pod, else its Slurm job, container, service or process group."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from seedance_obs.sources.cgroup_path import CgroupFacts, read_cgroup_path
from seedance_obs.sources.containers import Containers
from seedance_obs.sources.procfs import (
    Process,
    boot_time,
    read_cgroups,
    read_process,
    read_start,
)
from seedance_obs.sources.slurm import read_job_environment
from seedance_obs.sources.workload_reader import WorkloadReader
from seedance_obs.workload import Workload

_HOST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h
_WORKLOADS_KEPT = 4096
_PROCESSES_KEPT = 65_536
_SLURM_DAEMON = "slurmd.service"


@dataclass(slots=True)
class _Known:
    """A workload, and those of its processes that were asked for: start ticks by pid."""

    workload: Workload
    members: dict[int, int] = field(default_factory=dict)


class ProcessOwners:
    """The workloads of a host's processes, read under its root, such as `/host`.

    A workload starts with the oldest process of its cgroup when it is first seen, and keeps that
    start whichever of its processes end: a pod for good, anything else, whose name may come again
    (a requeued job, a restarted service or container), while one of its processes is known.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        containers: Containers | None = None,
        boot_unix: int | None = None,
    ) -> None:
        """Take the boot time (Unix seconds) that accounts were kept by, else the machine's own."""
        self._proc = os.path.join(root, "proc")
        self._containers = containers or Containers(root)
        self._reader = WorkloadReader(root, self._containers)
        self._boot_unix = boot_unix
        self._host_pids: bool | None = None
        self._owners: dict[int, tuple[int, _Known]] = {}  # by pid: start ticks, whose it is
        self._known: dict[tuple[str, str], _Known] = {}  # by kind and uid

    @property
    def boot_unix(self) -> int | None:
        """The boot time that every start is counted from, read once; None where nobody tells."""
        if self._boot_unix is None:
            self._boot_unix = boot_time(self._proc)
        return self._boot_unix

    @property
    def host_pids(self) -> bool | None:
        """Whether this /proc shows the host's processes; None where that cannot be told.

        Drivers name processes by the host's pids, which in a container's own /proc are others'.
        """
        if self._host_pids is None:
            self._host_pids = _shows_host_pids(self._proc)
        return self._host_pids

    def owner(self, pid: int) -> Workload | None:
        """The workload of a process.

        None when the process is gone, or went while being read, and where this /proc is known not
        to be the host's.
        """
        found = read_start(self._proc, pid)
        if found is None:
            return None
        ticks = found.start_ticks
        owned = self._owners.get(pid)
        if owned is None or owned[0] != ticks:
            self._forget(pid)
            known = self._find(pid, ticks, found.process_group)
            if known is None:
                return None
            known.members[pid] = ticks
            owned = self._owners[pid] = (ticks, known)
            self._bound()
        return owned[1].workload

    def pod(self, namespace: str, pod: str, container: str = "") -> Workload | None:
        """The workload of a pod by its names, with or without processes; None: it has ended.

        One that this host has no logs or no process of is told by its name alone.
        """
        uids = self._containers.pod_uids(namespace, pod)
        if uids is not None and not uids:
            return None
        names = (namespace, pod, container)
        found = [
            self._pod(uid, names) or Workload("pod", uid, 0, *names) for uid in sorted(uids or ())
        ]
        by_name = Workload("pod", f"{namespace}.{pod}", 0, *names)
        return max(found, key=lambda workload: workload.started_at, default=by_name)

    def pod_alive(self, uid: str) -> bool | None:
        """Whether a pod has a cgroup now; None where no pods' cgroups can be seen, or its UID."""
        return self._containers.pod_alive(uid) if "." not in uid else None

    def _pod(self, uid: str, names: tuple[str, str, str]) -> Workload | None:
        known = self._known.get(("pod", uid))
        if known is None and self.boot_unix is not None:
            workload = self._reader.read_pod(uid, names, boot_unix=self.boot_unix)
            if workload is not None:
                known = self._known["pod", uid] = _Known(workload)
                self._bound()
        return None if known is None else known.workload

    def keep(self, pids: Iterable[int]) -> None:
        """Forget every process but these, and the workloads that only the others belonged to."""
        for pid in self._owners.keys() - set(pids):
            self._forget(pid)
        for name in [n for n, known in self._known.items() if not known.members and n[0] != "pod"]:
            del self._known[name]

    def _forget(self, pid: int) -> None:
        owned = self._owners.pop(pid, None)
        if owned is not None:
            owned[1].members.pop(pid, None)

    def _find(self, pid: int, ticks: int, group: int) -> _Known | None:
        process = None if self.host_pids is False else read_process(self._proc, pid)
        boot_unix = self.boot_unix
        if process is None or process.start_ticks != ticks or boot_unix is None:
            return None
        facts = self._facts(process)
        told = read_job_environment(self._proc, pid) if facts.unit == _SLURM_DAEMON else None
        # A group whose leader this /proc does not show is numbered 0, as if all were one.
        name = _name(facts, group or pid, told.job if told else "")
        known = self._known.get(name)
        if known is None or not (name[0] == "pod" or self._lives(known)):
            known = _Known(self._reader.read(name, process, facts, boot_unix=boot_unix))
        if not self._runs(pid, ticks):
            return None
        self._known[name] = known
        return known

    def _facts(self, process: Process) -> CgroupFacts:
        """What the process's cgroups say; with cgroup v1 Slurm's may be any controller's."""
        facts = read_cgroup_path(process.cgroup or "/")
        if not _is_placed(facts):
            paths = read_cgroups(self._proc, process.pid)
            facts = next(filter(_is_placed, map(read_cgroup_path, paths)), facts)
        if facts.container_id and not facts.pod_uid:
            # Seen from another cgroup namespace, a path may begin below the pod.
            pod_uid = self._containers.container(facts.container_id).pod_uid
            facts = replace(facts, pod_uid=pod_uid)
        return facts

    def _runs(self, pid: int, ticks: int) -> bool:
        found = read_start(self._proc, pid)
        return found is not None and found.start_ticks == ticks

    def _lives(self, known: _Known) -> bool:
        return any(self._runs(pid, ticks) for pid, ticks in known.members.items())

    def _bound(self) -> None:
        if len(self._owners) > _PROCESSES_KEPT:
            self._forget(next(iter(self._owners)))
        if len(self._known) > _WORKLOADS_KEPT:
            idle = (name for name, known in self._known.items() if not known.members)
            self._known.pop(next(idle, ("", "")), None)


def _is_placed(facts: CgroupFacts) -> bool:
    return bool(facts.pod_uid or facts.slurm_job or facts.container_id)


def _name(facts: CgroupFacts, group: int, job: str) -> tuple[str, str]:
    """Kind and uid of the workload that a process belongs to."""
    for kind, uid in (
        ("pod", facts.pod_uid),
        ("slurm", facts.slurm_job),
        ("container", facts.container_id),
        ("slurm", job),
        ("service", facts.unit),
    ):
        if uid:
            return kind, uid
    return "process", str(group)


def _shows_host_pids(proc: str) -> bool | None:
    """By the pid namespace of pid 1, which only root may ask, else by this process's own.

    This one's own says nothing where it is another: this `/proc` may be the host's all the same.
    Then the kernel's own thread tells, unless a mount with `hidepid` shows none of root's.
    """
    first = _pid_namespace(proc, "1")
    if first is not None:
        return first == _HOST_PID_NAMESPACE
    if _pid_namespace(proc, "self") == _HOST_PID_NAMESPACE:
        return True
    if read_process(proc, 1) is None:
        return None
    second = read_process(proc, 2)
    return second is not None and second.comm == "kthreadd"


def _pid_namespace(proc: str, process: str) -> str | None:
    try:
        return os.readlink(f"{proc}/{process}/ns/pid")
    except OSError:
        return None
