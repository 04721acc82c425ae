"""What a simulated process holds of its host at a moment, in closed form: descriptors, memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.programs import Program

PAGE_KB = 4
SYSTEM_MEMORY_RATIO = 0.1  # of the host's: what is in use without any workload
_CODE_KB, _STACK_KB = 2_800, 132
_DATA_PER_ANONYMOUS = 1.2  # what allocators map is a little more than what programs touch


def open_fds(program: Program, t: float) -> int:
    """How many descriptors a process has open, never more than its limit."""
    host = program.workload.host
    age = max(0.0, t - program.start_s)
    if host.fds_reset_s is not None:
        age %= host.fds_reset_s
    return min(host.fd_limit, host.fds + int(host.fds_per_s * age))


@dataclass(frozen=True, slots=True)
class Memory:
    """A process's memory in kB, as the kernel counts it: whole pages."""

    anonymous: int
    file: int
    shared: int
    swapped: int
    data: int  # mapped for data, without the stack
    stack: int = _STACK_KB
    code: int = _CODE_KB

    @property
    def resident(self) -> int:
        """All that is in memory now."""
        return self.anonymous + self.file + self.shared

    @property
    def mapped(self) -> int:
        """All of the address space."""
        return self.data + self.stack + self.code + self.file + self.shared


def memory(program: Program, t: float) -> Memory:
    """What a process has mapped and resident at t."""
    host = program.workload.host
    hours = max(0.0, t - program.start_s) / 3600
    anonymous = host.anonymous_mb + host.anonymous_mb_per_h * hours
    data = _DATA_PER_ANONYMOUS * anonymous if host.data_mb is None else host.data_mb
    return Memory(
        anonymous=_pages_kb(anonymous),
        file=_pages_kb(host.file_mb),
        shared=_pages_kb(host.shared_mb),
        swapped=_pages_kb(host.swapped_mb),
        data=_pages_kb(data),
    )


def available_memory_kb(machine: Machine, alive: Iterable[Program], t: float) -> int:
    """What programs could still have: mapped files can be dropped, the rest of them cannot."""
    held = [memory(program, t) for program in alive]
    taken = sum(each.anonymous + each.shared for each in held)
    return max(0, round(machine.memory_gib * 2**20 * (1 - SYSTEM_MEMORY_RATIO)) - taken)


def _pages_kb(megabytes: float) -> int:
    return int(megabytes * 1e6 / 1024 / PAGE_KB) * PAGE_KB
