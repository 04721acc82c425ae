"""The kernel's own wording of a simulated machine: link speeds, /proc files, cgroup statistics."""

from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.pods import cgroup_path
from seedance_obs.sources.sim.programs import Program, busy_seconds, cpu_count, cpu_seconds

TICKS_PER_SECOND = 100
SYSTEM_RATIO = 0.1  # of all CPU time, the rest is the users'
_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
_STAT_FIELDS_BEFORE_TIMES, _STAT_FIELDS_AFTER_TIMES, _STAT_FIELDS_AFTER_START = 8, 6, 30


def link_speed(generation: int) -> str:
    """A PCIe generation as sysfs words it since Linux 5.10."""
    return f"{_SPEEDS[generation]} GT/s PCIe"


def start_ticks(machine: Machine, program: Program) -> int:
    """The start of a process in clock ticks since boot."""
    return round((machine.uptime_s + program.start_s) * TICKS_PER_SECOND)


def stat_text(machine: Machine, program: Program, t: float) -> str:
    """`/proc/PID/stat`: parent 1, its group, CPU time and start; 0 what is not simulated."""
    user, system = _split(cpu_seconds(program, t), TICKS_PER_SECOND)
    fields = [
        str(program.pid),
        f"({_comm(program)})",
        "R",
        "1",
        str(program.group),
        str(program.group),
        *["0"] * (_STAT_FIELDS_BEFORE_TIMES - 1),
        str(user),
        str(system),
        *["0"] * _STAT_FIELDS_AFTER_TIMES,
        str(start_ticks(machine, program)),
        *["0"] * _STAT_FIELDS_AFTER_START,
    ]
    return " ".join(fields) + "\n"


def status_text(program: Program, uid: int) -> str:
    """`/proc/PID/status`, with the lines a reader of processes wants."""
    lines = (
        f"Name:\t{_comm(program)}",
        "State:\tR (running)",
        f"Tgid:\t{program.pid}",
        f"Pid:\t{program.pid}",
        "PPid:\t1",
        f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}",
        f"Gid:\t{uid}\t{uid}\t{uid}\t{uid}",
        "Threads:\t1",
    )
    return "\n".join(lines) + "\n"


def cgroup_text(machine: Machine, program: Program) -> str:
    """`/proc/PID/cgroup` under cgroup v2: a pod's container, or the user's session."""
    return f"0::{cgroup_path(machine, program.workload, program.run)}\n"


def comm_text(program: Program) -> str:
    """`/proc/PID/comm`, which the kernel cuts at fifteen bytes."""
    return f"{_comm(program)}\n"


def cpu_stat_text(seconds: float) -> str:
    """`cpu.stat` of a cgroup that is not throttled."""
    user, system = _split(seconds, 1_000_000)
    return f"usage_usec {user + system}\nuser_usec {user}\nsystem_usec {system}\n"


def host_stat_text(machine: Machine, t: float, *, epoch_unix: float) -> str:
    """`/proc/stat`: the CPU time of the host by mode, and when it booted."""
    busy = busy_seconds(machine, t)
    user, system = _split(busy, TICKS_PER_SECOND)
    idle = int((cpu_count(machine) * (machine.uptime_s + t) - busy) * TICKS_PER_SECOND)
    btime = int(epoch_unix - machine.uptime_s)
    return f"cpu  {user} 0 {system} {idle} 0 0 0 0 0 0\nbtime {btime}\n"


def uptime_text(machine: Machine, t: float) -> str:
    """`/proc/uptime`: seconds since boot, and what all CPUs idled in them."""
    up = machine.uptime_s + t
    return f"{up:.2f} {up * cpu_count(machine) - busy_seconds(machine, t):.2f}\n"


def meminfo_text(machine: Machine) -> str:
    """`/proc/meminfo`: a tenth of the memory is in use."""
    total = machine.memory_gib * 2**20
    available = total * 9 // 10
    return f"MemTotal: {total} kB\nMemFree: {total // 2} kB\nMemAvailable: {available} kB\n"


def _comm(program: Program) -> str:
    return program.workload.name[:15]


def _split(seconds: float, per_second: int) -> tuple[int, int]:
    user = int(seconds * (1 - SYSTEM_RATIO) * per_second)
    return user, int(seconds * SYSTEM_RATIO * per_second)
