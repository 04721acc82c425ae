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
_NAMES_OF_ONE = 10_000  # ext4 allows 65,000


def add_process(machine: Machine, staging: Staging, program: Program, t: float) -> None:
    """Make the folder of a process that is new.

    Each descriptor is a link in `fd`, which on a real host also says how many there are by its
    size: a plain folder is to be listed.
    """
    files = _changing(machine, program, t) | {
        "cgroup": cgroup_text(machine, program),
        "comm": comm_text(program),
        "limits": limits_text(program),
    }

    def fill(folder: Path) -> None:
        (folder / "fd").mkdir()
        _open(str(folder / "fd"), range(open_fds(program, t)))
        (folder / "ns").mkdir()
        for kind, inode in namespaces(machine, program.workload)._asdict().items():
            (folder / "ns" / kind).symlink_to(f"{kind}:[{inode}]")

    staging.folder(_name(program), files, fill)


def move_process(
    machine: Machine, root: Path, staging: Staging, program: Program, t: float
) -> None:
    """Bring the folder of a process that is there already to how it is at t.

    Its descriptors come and go one by one, as on a real host.
    """
    for name, text in _changing(machine, program, t).items():
        staging.file(f"{_name(program)}/{name}", text)
    if program.workload.host.fds_per_s:
        folder = str(root / _name(program) / "fd")
        present, wanted = len(os.listdir(folder)), open_fds(program, t)
        _open(folder, range(present, wanted))
        for number in range(wanted, present):
            os.unlink(f"{folder}/{number}")


def _open(folder: str, numbers: range) -> None:
    """Most are one inode under many names, which takes a file system a fifth of the time."""
    for number in numbers:
        first = number - number % _NAMES_OF_ONE
        if number == first:
            os.symlink(_OPENED, f"{folder}/{number}")
        else:
            os.link(f"{folder}/{first}", f"{folder}/{number}", follow_symlinks=False)


def _name(program: Program) -> str:
    return f"proc/{program.pid}"


def _changing(machine: Machine, program: Program, t: float) -> dict[str, str]:
    uid = machine.tenants[program.workload.tenant]
    return {
        "stat": stat_text(machine, program, t),
        "statm": statm_text(program, t),
        "status": status_text(program, uid, t),
    }
