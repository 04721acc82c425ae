"""The folder of one simulated process in /proc: its files, its descriptors, its namespaces."""

import os
from pathlib import Path

from seedance_obs.sources.sim.host_use import open_fds
from seedance_obs.sources.sim.kernel_text import (
    cgroup_text,
    comm_text,
    limits_text,
    stat_text,
    statm_text,
    status_text,
)
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.pods import namespaces
from seedance_obs.sources.sim.programs import Program
from seedance_obs.sources.sim.staging import Staging

_OPENED = "/dev/null"


def add_process(machine: Machine, staging: Staging, program: Program, t: float) -> None:
    """Make the folder of a process that is new.

    Each descriptor is a link in `fd`, which on a real host also says how many there are by its
    size: a plain folder is to be listed.
    """
    mount, net = namespaces(machine, program.workload)
    files = _changing(machine, program, t) | {
        "cgroup": cgroup_text(machine, program),
        "comm": comm_text(program),
        "limits": limits_text(program),
    }
    links = {f"fd/{number}": _OPENED for number in range(open_fds(program, t))}
    links |= {"ns/mnt": f"mnt:[{mount}]", "ns/net": f"net:[{net}]"}
    staging.folder(_name(program), files, links)


def move_process(
    machine: Machine, root: Path, staging: Staging, program: Program, t: float
) -> None:
    """Bring the folder of a process that is there already to how it is at t."""
    for name, text in _changing(machine, program, t).items():
        staging.file(f"{_name(program)}/{name}", text)
    if program.workload.host.fds_per_s:
        _move_fds(str(root / _name(program) / "fd"), open_fds(program, t))


def _move_fds(folder: str, wanted: int) -> None:
    """Open or close the latest descriptors; each comes and goes at once, as on a real host."""
    present = len(os.listdir(folder))
    for number in range(present, wanted):
        os.symlink(_OPENED, f"{folder}/{number}")
    for number in range(wanted, present):
        os.unlink(f"{folder}/{number}")


def _name(program: Program) -> str:
    return f"proc/{program.pid}"


def _changing(machine: Machine, program: Program, t: float) -> dict[str, str]:
    uid = machine.tenants[program.workload.tenant]
    return {
        "stat": stat_text(machine, program, t),
        "statm": statm_text(program, t),
        "status": status_text(program, uid, t),
    }
