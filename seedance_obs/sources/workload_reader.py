"""What is known of a workload when its first process is seen: when it started, and whose it is."""

import os
from dataclasses import replace
from pathlib import Path

from seedance_obs.sources.cgroup_path import CgroupFacts
from seedance_obs.sources.cgroup_tree import CgroupTree, first_processes
from seedance_obs.sources.containers import Containers
from seedance_obs.sources.procfs import Process, read_start, user_name
from seedance_obs.sources.slurm import JobEnvironment, read_job_environment
from seedance_obs.workload import Workload

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_ENVIRONMENTS_READ = 8


class WorkloadReader:
    """Reads workloads under a host's root, such as `/host`."""

    def __init__(self, root: str | Path, containers: Containers) -> None:
        self._root = Path(root)
        self._proc = os.path.join(root, "proc")
        self._tree = CgroupTree(root)
        self._containers = containers

    def read(
        self, name: tuple[str, str], process: Process, facts: CgroupFacts, *, boot_unix: int
    ) -> Workload:
        """The workload of this kind and uid, which a process and its cgroup belong to.

        It starts with the oldest of its processes that can be seen, this one at the latest; starts
        are counted from `boot_unix` (Unix seconds).
        """
        kind, uid = name
        oldest = self._oldest(kind, uid, facts)
        ticks = min([process.start_ticks, *(start for start, _ in oldest)])
        started_at = boot_unix + ticks // _TICKS_PER_SECOND
        about = Workload(kind, uid, started_at, cgroup=facts.path)
        if kind == "pod":
            return self._pod(about, facts)
        if kind == "slurm":
            return self._job(about, process, facts, [pid for _, pid in oldest])
        if kind == "container":
            return self._container(about, process, facts)
        return replace(about, user=user_name(self._root, process.uid))

    def read_pod(self, uid: str, names: tuple[str, str, str], *, boot_unix: int) -> Workload | None:
        """A pod by UID and namespace, name and container, though none of its processes was seen.

        None while it has no process at all: then nothing tells when it started.
        """
        oldest = self._oldest("pod", uid, CgroupFacts())
        if not oldest:
            return None
        namespace, pod, container = names
        started_at = boot_unix + oldest[0][0] // _TICKS_PER_SECOND
        return Workload("pod", uid, started_at, namespace=namespace, pod=pod, container=container)

    def _oldest(self, kind: str, uid: str, facts: CgroupFacts) -> list[tuple[int, int]]:
        """Start ticks and pid of the first processes of a workload, the oldest first.

        A process group begins with its leader.
        """
        pids = [int(uid)] if kind == "process" else self._first_of_cgroup(kind, uid, facts)
        starts = ((read_start(self._proc, pid), pid) for pid in pids)
        return sorted((found.start_ticks, pid) for found, pid in starts if found)

    def _first_of_cgroup(self, kind: str, uid: str, facts: CgroupFacts) -> list[int]:
        if kind == "slurm" and not facts.slurm_job:
            return []  # known by its environment: the cgroup is the one of Slurm's daemon
        folder = self._tree.pod(uid) if kind == "pod" else None
        folder = folder or self._tree.folder(facts.path)
        return first_processes(folder) if folder else []

    def _pod(self, about: Workload, facts: CgroupFacts) -> Workload:
        """A pod; the users in it are its own, so none is told."""
        found = self._containers.container(facts.container_id)
        namespace, pod = found.namespace, found.pod
        if not pod:
            namespace, pod = self._containers.pod(about.uid) or ("", "")
        return replace(
            about,
            namespace=namespace,
            pod=pod,
            container=found.container,
            image=found.image,
            pod_labels=found.pod_labels,
        )

    def _container(self, about: Workload, process: Process, facts: CgroupFacts) -> Workload:
        """A container outside pods; the uids in a user's own are mapped, their slice is not."""
        found = self._containers.container(about.uid)
        uid = process.uid if facts.login_uid is None else facts.login_uid
        user = user_name(self._root, uid)
        return replace(about, container=found.container, image=found.image, user=user)

    def _job(
        self, about: Workload, process: Process, facts: CgroupFacts, oldest: list[int]
    ) -> Workload:
        """A job as its oldest processes were told; later ones a user starts in any environment."""
        pids = [*oldest[:_ENVIRONMENTS_READ], process.pid]
        read = filter(None, (read_job_environment(self._proc, pid) for pid in pids))
        told = next((said for said in read if said.is_of(about.uid)), JobEnvironment())
        uid = process.uid if facts.slurm_uid is None else facts.slurm_uid
        return replace(
            about,
            slurm_job=told.job or about.uid,
            slurm_account=told.account,
            user=told.user or user_name(self._root, uid),
        )
