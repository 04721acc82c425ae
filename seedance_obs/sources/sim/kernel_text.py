"""The kernel's own wording of a simulated machine: link speeds, /proc files, cgroup statistics."""

from collections.abc import Iterable

from seedance_obs.sources.sim.host_use import PAGE_KB, Memory, available_memory_kb, memory
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.pods import cgroup_path
from seedance_obs.sources.sim.programs import Program, busy_seconds, cpu_count, cpu_seconds

TICKS_PER_SECOND = 100
SYSTEM_RATIO = 0.1  # of all CPU time, the rest is the users'
_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
_STAT_FIELDS_BEFORE_TIMES, _STAT_FIELDS_AFTER_TIMES, _STAT_FIELDS_AFTER_MEMORY = 8, 6, 28


def link_speed(generation: int) -> str:
    """A PCIe generation as sysfs words it since Linux 5.10."""
    return f"{_SPEEDS[generation]} GT/s PCIe"


def start_ticks(machine: Machine, program: Program) -> int:
    """The start of a process in clock ticks since boot."""
    return round((machine.uptime_s + program.start_s) * TICKS_PER_SECOND)


def stat_text(machine: Machine, program: Program, t: float) -> str:
    """`/proc/PID/stat`: parent, group, CPU time, start, memory; 0 what is not simulated."""
    user, system = _split(cpu_seconds(program, t), TICKS_PER_SECOND)
    held = memory(program, t)
    fields = [
        str(program.pid),
        f"({_comm(program)})",
        "R",
        str(program.parent(t)),
        str(program.group),
        str(program.group),
        *["0"] * (_STAT_FIELDS_BEFORE_TIMES - 1),
        str(user),
        str(system),
        *["0"] * _STAT_FIELDS_AFTER_TIMES,
        str(start_ticks(machine, program)),
        str(held.mapped * 1024),
        str(held.resident // PAGE_KB),
        *["0"] * _STAT_FIELDS_AFTER_MEMORY,
    ]
    return " ".join(fields) + "\n"


def status_text(program: Program, uid: int, t: float) -> str:
    """`/proc/PID/status`, with the lines a reader of processes wants."""
    lines = (
        f"Name:\t{_comm(program)}",
        "State:\tR (running)",
        f"Tgid:\t{program.pid}",
        f"Pid:\t{program.pid}",
        f"PPid:\t{program.parent(t)}",
        f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}",
        f"Gid:\t{uid}\t{uid}\t{uid}\t{uid}",
        *_memory_lines(memory(program, t)),
        "Threads:\t1",
    )
    return "\n".join(lines) + "\n"


def _memory_lines(held: Memory) -> Iterable[str]:
    amounts = {
        "VmSize": held.mapped,
        "VmRSS": held.resident,
        "RssAnon": held.anonymous,
        "RssFile": held.file,
        "RssShmem": held.shared,
        "VmData": held.data,
        "VmStk": held.stack,
        "VmExe": held.code,
        "VmSwap": held.swapped,
        "HugetlbPages": 0,
    }
    return (f"{name}:\t{amount:8d} kB" for name, amount in amounts.items())


def statm_text(program: Program, t: float) -> str:
    """`/proc/PID/statm`: size, resident, shared, code, 0, data with stack, 0; in pages."""
    held = memory(program, t)
    amounts = (
        held.mapped,
        held.resident,
        held.file + held.shared,
        held.code,
        0,
        held.data + held.stack,
        0,
    )
    return " ".join(str(amount // PAGE_KB) for amount in amounts) + "\n"


def limits_text(program: Program) -> str:
    """`/proc/PID/limits`, with the lines a reader of descriptors and memory wants."""
    files = program.workload.host.fd_limit
    rows = (
        ("Limit", "Soft Limit", "Hard Limit", "Units"),
        ("Max data size", "unlimited", "unlimited", "bytes"),
        ("Max open files", str(files), str(max(files, 1_048_576)), "files"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
    )
    return "".join(
        f"{name:<25} {soft:<20} {hard:<20} {unit:<10}\n" for name, soft, hard, unit in rows
    )


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


def meminfo_text(machine: Machine, alive: Iterable[Program], t: float) -> str:
    """`/proc/meminfo`: what the system and the processes use; half of the rest caches files."""
    total = machine.memory_gib * 2**20
    available = available_memory_kb(machine, alive, t)
    return f"MemTotal: {total} kB\nMemFree: {available // 2} kB\nMemAvailable: {available} kB\n"


def _comm(program: Program) -> str:
    return program.workload.name[:15]


def _split(seconds: float, per_second: int) -> tuple[int, int]:
    user = int(seconds * (1 - SYSTEM_RATIO) * per_second)
    return user, int(seconds * SYSTEM_RATIO * per_second)
