"""The kernel's own wording of a simulated machine: link speeds and the files of /proc."""

from seedance_obs.sources.sim.machine import Machine, PodNames, digest
from seedance_obs.sources.sim.physics import Process

TICKS_PER_SECOND = 100
STAT_FIELDS_AFTER_START = 30
_SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}


def link_speed(generation: int) -> str:
    """A PCIe generation as sysfs words it since Linux 5.10."""
    return f"{_SPEEDS[generation]} GT/s PCIe"


def start_ticks(machine: Machine, process: Process) -> int:
    """The start of a process in clock ticks since boot."""
    return round((machine.uptime_s + process.start_s) * TICKS_PER_SECOND)


def stat_text(machine: Machine, process: Process) -> str:
    """`/proc/PID/stat`: parent 1, everything the simulator does not model is 0."""
    comm = process.workload.name[:15]
    pid = process.pid
    before = [str(pid), f"({comm})", "R", "1", str(pid), str(pid)] + ["0"] * 15
    after = ["0"] * STAT_FIELDS_AFTER_START
    return " ".join([*before, str(start_ticks(machine, process)), *after]) + "\n"


def status_text(process: Process, uid: int) -> str:
    """`/proc/PID/status`, with the lines a reader of processes wants."""
    lines = (
        f"Name:\t{process.workload.name[:15]}",
        "State:\tR (running)",
        f"Tgid:\t{process.pid}",
        f"Pid:\t{process.pid}",
        "PPid:\t1",
        f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}",
        f"Gid:\t{uid}\t{uid}\t{uid}\t{uid}",
        "Threads:\t1",
    )
    return "\n".join(lines) + "\n"


def cgroup_text(machine: Machine, process: Process, uid: int) -> str:
    """`/proc/PID/cgroup` under cgroup v2: a pod's container, or the user's session."""
    pod = process.workload.pod
    if pod is None or not machine.kubernetes:
        return f"0::/user.slice/user-{uid}.slice/session-{process.workload.index + 1}.scope\n"
    return f"0::{_pod_path(machine, pod, process)}\n"


def _pod_path(machine: Machine, pod: PodNames, process: Process) -> str:
    text = digest(machine.name, pod.namespace, pod.pod).hex()
    uid = "_".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:32]))
    container = digest(machine.name, pod.pod, pod.container, process.start_s).hex()
    return (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
        f"/cri-containerd-{container}.scope"
    )


def meminfo_text(machine: Machine) -> str:
    """`/proc/meminfo`: a tenth of the memory is in use."""
    total = machine.memory_gib * 2**20
    available = total * 9 // 10
    return f"MemTotal: {total} kB\nMemFree: {total // 2} kB\nMemAvailable: {available} kB\n"
