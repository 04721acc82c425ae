"""Whose the processes and pods of this node are, as of the last pass over the driver."""

import threading
from collections.abc import Mapping
from dataclasses import replace

from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.workload import Workload

# An ended process may still have activity to book: samples of its end come a pass later.
REMEMBERED_SECONDS = 10.0
PODS_REMEMBERED = 4096


class People:
    """Looks processes up while they live, and pods by their names.

    `observe` runs on the thread that reads the driver, all else on the one that assembles. Neither
    waits for a file that the other reads, so each has owners of its own to ask.
    """

    def __init__(self, owners: ProcessOwners, finder: ProcessOwners) -> None:
        self._owners = owners  # asked for processes
        self._finder = finder  # asked for pods by name
        self._lock = threading.Lock()
        self._owned: dict[int, tuple[Workload, float]] = {}
        self._pods: dict[tuple[str, str], Workload] = {}  # that run something now
        self._starts: dict[str, int] = {}  # of pods, by UID, whoever saw them first

    @property
    def host_pids(self) -> bool | None:
        """Whether the host's processes can be looked up; None where that cannot be told."""
        return self._finder.host_pids

    @property
    def boot_unix(self) -> int | None:
        """The boot time by which the starts of workloads are told."""
        return self._finder.boot_unix

    def observe(self, snapshot: SourceSnapshot) -> None:
        """Look up every process that a pass lists; one that has just ended keeps its owner.

        Raises:
            Exception: the last that a look-up raised; it costs that process's owner alone.
        """
        pids = {process.pid for gpu in snapshot.gpus for process in gpu.processes or ()}
        pids |= {use.pid for gpu in snapshot.gpus for use in gpu.process_use or ()}
        found: dict[int, Workload] = {}
        fault = None
        for pid in pids:
            try:
                owner = self._owners.owner(pid)
            except Exception as error:
                fault = error
            else:
                found |= {pid: self._as_first_seen(owner)} if owner else {}
        self._owners.keep(pids)
        self._publish(found, snapshot.taken_at)
        if fault is not None:
            raise fault

    def owned(self) -> Mapping[int, Workload]:
        """The workload of each process that lives, or has ended a moment ago."""
        with self._lock:
            owned = self._owned
        return {pid: workload for pid, (workload, _) in owned.items()}

    def has_ended(self, workload: Workload) -> bool:
        """Whether a workload that runs nothing here is known to be over: its cgroup is gone."""
        return workload.kind == "pod" and self._finder.pod_alive(workload.uid) is False

    def pod(self, namespace: str, pod: str, container: str) -> Workload | None:
        """The workload of a pod by name; None where it is known to have ended."""
        with self._lock:
            running = self._pods.get((namespace, pod))
        if running is not None:
            return running
        found = self._finder.pod(namespace, pod, container)
        return self._as_first_seen(found) if found else None

    def _publish(self, found: Mapping[int, Workload], now: float) -> None:
        pods = {owner.key: owner for owner in found.values() if owner.pod}.values()
        running = sorted(pods, key=lambda owner: owner.started_at)
        recent = {
            pid: known for pid, known in self._owned.items() if now - known[1] <= REMEMBERED_SECONDS
        }
        with self._lock:
            self._pods = {(owner.namespace, owner.pod): owner for owner in running}
            self._owned = recent | {pid: (owner, now) for pid, owner in found.items()}

    def _as_first_seen(self, workload: Workload) -> Workload:
        """One pod, one start: by its name and by a process it may be read at other times."""
        if workload.kind != "pod" or not workload.started_at:
            return workload
        with self._lock:
            start = self._starts.setdefault(workload.uid, workload.started_at)
            if len(self._starts) > PODS_REMEMBERED:
                del self._starts[next(iter(self._starts))]
        if start == workload.started_at:
            return workload
        return replace(workload, started_at=start)
