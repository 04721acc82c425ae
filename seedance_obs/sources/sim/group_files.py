"""The cgroup folders (v2) and the pod logs of a simulated host."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from seedance_obs.sources.sim.kernel_text import cpu_stat_text
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.pods import cgroup_path, container_id, pod_of, pod_uid
from seedance_obs.sources.sim.programs import Program, busy_seconds, run_cpu_seconds
from seedance_obs.sources.sim.staging import Staging

GROUPS = "sys/fs/cgroup"
POD_LOGS, CONTAINER_LOGS = "var/log/pods", "var/log/containers"
CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc\n"


class GroupFiles:
    """The groups and logs of the processes alive at t; `add` before the processes, `prune` after.

    A group's `cpu.stat` is there for containers, pods, sessions and the whole host.
    """

    def __init__(self, machine: Machine, root: Path, alive: Iterable[Program], t: float) -> None:
        self._root = root
        self._pids: defaultdict[str, list[int]] = defaultdict(list)
        self._cpu: defaultdict[str, float] = defaultdict(float)
        self._logs: dict[str, str] = {}  # of each container, and the link to it
        runs = {(program.workload.index, program.run): program for program in alive}
        for program in runs.values():
            workload, run = program.workload, program.run
            path = cgroup_path(machine, workload, run)
            used = run_cpu_seconds(machine, workload, run, t)
            self._cpu[path] += used
            if pod_of(machine, workload):
                self._cpu[path.rpartition("/")[0]] += used
            self._logs |= dict(_log(machine, program))
        for program in alive:
            self._pids[cgroup_path(machine, program.workload, program.run)].append(program.pid)
        self._cpu[""] = busy_seconds(machine, t)

    def add(self, staging: Staging) -> None:
        """Make what is new and bring the rest up to date."""
        staging.file(f"{GROUPS}/cgroup.controllers", CONTROLLERS)
        for path, used in sorted(self._cpu.items()):  # a pod's folder before its containers'
            procs = "".join(f"{pid}\n" for pid in sorted(self._pids[path]))
            files = {"cgroup.procs": procs, "cpu.stat": cpu_stat_text(used)}
            if path and not (self._root / f"{GROUPS}{path}").is_dir():
                staging.folder(f"{GROUPS}{path}", files)
                continue
            for name, text in files.items():
                staging.file(f"{GROUPS}{path}/{name}", text)
        for folder, link in self._logs.items():
            if not (self._root / folder).is_dir():
                staging.folder(folder, {"0.log": ""})
                staging.link(link, f"/{folder}/0.log")

    def prune(self, staging: Staging) -> None:
        """Take away what nothing alive is in."""
        wanted = self._wanted()
        for folder in sorted(self._present()):
            name = str(folder.relative_to(self._root))
            if name not in wanted and folder.parent.exists():
                staging.remove(name)

    def _present(self) -> Iterator[Path]:
        yield from (self._root / GROUPS).glob("user.slice/*/*.scope")
        yield from (self._root / GROUPS).glob("kubepods.slice/*/*.slice")
        yield from (self._root / GROUPS).glob("kubepods.slice/*/*/*.scope")
        yield from (self._root / POD_LOGS).glob("*")
        yield from (self._root / CONTAINER_LOGS).glob("*")

    def _wanted(self) -> set[str]:
        groups = {f"{GROUPS}{path}" for path in self._cpu}
        pods = {folder.rpartition("/")[0] for folder in self._logs}
        return groups | pods | set(self._logs.values())


def _log(machine: Machine, program: Program) -> Iterator[tuple[str, str]]:
    workload, run = program.workload, program.run
    pod = pod_of(machine, workload)
    if pod is not None:
        folder = f"{pod.namespace}_{pod.pod}_{pod_uid(machine, workload, run)}/{pod.container}"
        name = f"{pod.pod}_{pod.namespace}_{pod.container}"
        container = container_id(machine, workload, run)
        yield f"{POD_LOGS}/{folder}", f"{CONTAINER_LOGS}/{name}-{container}.log"
