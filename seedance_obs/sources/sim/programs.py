"""The processes of a simulated host, from before they open a GPU, and the CPU time they use."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from seedance_obs.sources.sim.machine import GHOST, Machine, Workload
from seedance_obs.sources.sim.physics import integral, run_at, run_start

CONTEXT_AFTER_S = 2.0
CORES_IDLE, CORES_BUSY = 0.1, 1.0  # of a process, while its GPU waits and while it works
INIT = 1
BACKGROUND_CORES = 1.5  # the system's own


@dataclass(frozen=True, slots=True)
class Program:
    """A process of the host: one rank of one run of a workload; times are as in `Machine`."""

    pid: int
    group: int  # the process group, which is the pid of rank 0
    workload: Workload
    run: int
    rank: int
    start_s: float
    end_s: float
    leader_end_s: float  # when the process of rank 0 ends, the parent of the others

    def parent(self, t: float) -> int:
        """The pid of its parent: rank 0 while it lives, else init."""
        return INIT if self.rank == 0 or t >= self.leader_end_s else self.group


def programs(machine: Machine, t: float) -> list[Program]:
    """The processes alive at t.

    A process is there up to `CONTEXT_AFTER_S` before its run opens a context on the GPU (less
    where the run before has only just ended), and until its run ends or its board is lost.
    """
    found = []
    for workload in _of_host(machine):
        run = run_at(_on_host(workload), t)
        if run is not None:
            found += [each for each in _of_run(machine, workload, run) if t < each.end_s]
    return found


def lead_s(workload: Workload) -> float:
    """How long a process of this workload lives before it opens its context."""
    if workload.repeat_every_s is None or workload.duration_s is None:
        return CONTEXT_AFTER_S
    return min(CONTEXT_AFTER_S, workload.repeat_every_s - workload.duration_s)


def cores(activity: float) -> float:
    """How many cores a process keeps busy while its GPU is active by this ratio."""
    return CORES_IDLE + (CORES_BUSY - CORES_IDLE) * activity


def cpu_seconds(program: Program, t: float) -> float:
    """The CPU time of one process up to t or to its end; none before it opens its context."""
    until = min(t, program.end_s)
    begin = run_start(program.workload, program.run)
    if until <= begin:
        return 0.0
    used = integral(program.workload, program.rank, until, cores)
    return max(0.0, used - integral(program.workload, program.rank, begin, cores))


def run_cpu_seconds(machine: Machine, workload: Workload, run: int, t: float) -> float:
    """The CPU time of all processes of one run, those that have ended included."""
    return sum(cpu_seconds(program, t) for program in _of_run(machine, workload, run))


def busy_seconds(machine: Machine, t: float) -> float:
    """The CPU time of the whole host since it booted: all runs up to t, and the system."""
    busy = BACKGROUND_CORES * (machine.uptime_s + t)
    for workload in _of_host(machine):
        for rank, held in enumerate(workload.devices):
            busy += integral(workload, rank, min(t, machine.lost_at(held.gpu)), cores)
    return busy


def cpu_count(machine: Machine) -> int:
    """The CPUs of all NUMA nodes; at least one."""
    lists = (part for cpus in machine.numa_cpus for part in cpus.split(",") if part)
    return max(1, sum(_count(part) for part in lists))


def _count(part: str) -> int:
    first, _, last = part.partition("-")
    return int(last or first) - int(first) + 1


def _of_host(machine: Machine) -> Iterator[Workload]:
    return (workload for workload in machine.workloads if workload.guise != GHOST)


def _on_host(workload: Workload) -> Workload:
    lead = lead_s(workload)
    life = None if workload.duration_s is None else workload.duration_s + lead
    return replace(workload, start_s=workload.start_s - lead, duration_s=life)


def _of_run(machine: Machine, workload: Workload, run: int) -> Iterator[Program]:
    begin = run_start(workload, run)
    end = float("inf") if workload.duration_s is None else begin + workload.duration_s
    ends = [min(end, machine.lost_at(held.gpu)) for held in workload.devices]
    for rank, end_s in enumerate(ends):
        yield Program(
            pid=machine.pid(workload, run, rank),
            group=machine.pid(workload, run, 0),
            workload=workload,
            run=run,
            rank=rank,
            start_s=begin - lead_s(workload),
            end_s=end_s,
            leader_end_s=ends[0],
        )
