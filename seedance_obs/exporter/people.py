"""Whose the processes and pods of this node are, as of the last pass over the driver."""

import threading
from collections.abc import Mapping

from seedance_obs.sources.process_owners import ProcessOwners
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.workload import Workload

# An ended process may still have activity to book: samples of its end come a pass later.
REMEMBERED_SECONDS = 10.0


class People:
    """Looks processes up while they live, on the thread that reads the driver."""

    def __init__(self, owners: ProcessOwners) -> None:
        self._owners = owners
        self._lock = threading.Lock()
        self._owned: dict[int, tuple[Workload, float]] = {}
        self._pods: dict[tuple[str, str], Workload] = {}  # that run something now

    @property
    def host_pids(self) -> bool | None:
        """Whether the host's processes can be looked up; None where that cannot be told."""
        return self._owners.host_pids

    @property
    def boot_unix(self) -> int | None:
        """The boot time by which the starts of workloads are told."""
        return self._owners.boot_unix

    def observe(self, snapshot: SourceSnapshot) -> None:
        """Look up every process that a pass lists; one that has just ended keeps its owner."""
        pids = {process.pid for gpu in snapshot.gpus for process in gpu.processes or ()}
        pids |= {use.pid for gpu in snapshot.gpus for use in gpu.process_use or ()}
        with self._lock:
            before = self._owned
            found = {pid: self._owners.owner(pid) for pid in pids}
            self._owners.keep(pids)
            running = sorted(
                {owner.key: owner for owner in found.values() if owner and owner.pod}.values(),
                key=lambda owner: owner.started_at,
            )
            self._pods = {(owner.namespace, owner.pod): owner for owner in running}
            self._owned = {
                pid: known
                for pid, known in before.items()
                if snapshot.taken_at - known[1] <= REMEMBERED_SECONDS
            } | {pid: (owner, snapshot.taken_at) for pid, owner in found.items() if owner}

    def owned(self) -> Mapping[int, Workload]:
        """The workload of each process that lives, or has ended a moment ago."""
        with self._lock:
            owned = self._owned
        return {pid: workload for pid, (workload, _) in owned.items()}

    def has_ended(self, workload: Workload) -> bool:
        """Whether a workload that runs nothing here is known to be over: its cgroup is gone."""
        return workload.kind == "pod" and self._owners.pod_alive(workload.uid) is False

    def pod(self, namespace: str, pod: str, container: str) -> Workload | None:
        """The workload of a pod by name; None where it is known to have ended."""
        with self._lock:
            running = self._pods.get((namespace, pod))
            return running or self._owners.pod(namespace, pod, container)
