"""What the probes suspect: a kind, whose it is, and the numbers that say so."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.process_tree import ProcessName, Sandbox

# Every kind of suspect and what it means, in the order in which they are shown.
KINDS = {
    "fd_growth": "open file descriptors grow, by slope and by low-water mark",
    "fd_near_limit": "open file descriptors are close to the process's own limit",
    "anonymous_growth": "anonymous memory grows while the workload is idle",
    "pseudo_idle_context": "GPU memory held by a context that has done nothing for long",
    "dead_pid_memory": "GPU memory held in the name of a process that has ended",
    "memory_without_process": "GPU memory in use though no process is on the GPU",
    "busy_without_process": "a GPU is busy though no process is on it",
    "allocated_without_process": "a GPU is allocated, and its holder runs nothing on it",
    "spinning": "a GPU looks fully used and draws little more than an idle one",
    "sparse_residency": "little of a large anonymous memory is resident: for information",
}
PROCESS_KINDS = frozenset({"fd_growth", "fd_near_limit", "anonymous_growth", "sparse_residency"})
GPU_KINDS = frozenset(KINDS) - PROCESS_KINDS  # that hold or burn a GPU
# An outcome of a probe that counts nobody: how many may not be seen, nobody can tell.
OTHERS_HIDDEN = "others_hidden"
INFORMATIONAL = frozenset({"sparse_residency"})  # no reason to get up at night


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a detector found, before it is known whose it is.

    Attributes:
        kind: One of `KINDS`.
        since: Monotonic seconds at which what is found began, as far as it was observed.
        rule: The preset that found it, such as `fast`; empty where the kind has one only.
        process: The process, where it is one's.
        gpu_uuid: The board, where it is one's.
        gpu_instance: The MIG GPU instance of the board.
        account: What the board's time is booked to, as `account_names` spells it.
        owner: Whose it is, where that is another account.
        part: The part (0 to 1) of what the account is booked of the board that is the finding's.
        evidence: The numbers, by names that end in their unit: `open_fds`, `fd_limit`,
            `growth_fds_per_second`, `exhaustion_seconds`, `gpu_memory_bytes`. What is not known
            is absent.
    """

    kind: str
    since: float
    rule: str = ""
    process: ProcessName | None = None
    gpu_uuid: str = ""
    gpu_instance: int | None = None
    account: str = ""
    owner: str = ""
    part: float = 1.0
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A finding and whose it is. Findings of one kind in one tree of processes are one suspect.

    Attributes:
        name: What tells it from others for as long as it lasts, printable and without spaces.
        finding: The finding; of a tree, that of its worst process.
        processes: All processes of the tree that show it, the worst first.
        findings: All findings of the suspect, the worst first; empty where nobody kept them.
        sandbox: Where they run; None where nobody could look.
        sandboxes: Where each of the worst processes runs, as far as anybody looked: they have the
            first process in common.
        workload: The key of the workload, empty where unknown.
        tenant: Who pays, empty where unknown.
        started_unix: Unix seconds at which it was first seen so.
        power_watts: What it draws of the board, on average over the last two minutes, by the
            books: idle, its part of what its account reserves beside its own work; spinning, all
            that its account draws. Suspects of one account on one board share it, so that they add
            up. None where unknown.
        gpu_share: The part of the board's time (0 to 1) that is booked to it, in the same way.
        user: Whose the worst process is by the host's users; empty where unknown.
        cgroup: Where the worst process is, such as `/system.slice/sshd.service`; empty where
            unknown.
    """

    name: str
    finding: Finding
    processes: tuple[ProcessName, ...] = ()
    findings: tuple[Finding, ...] = ()
    sandbox: Sandbox | None = None
    sandboxes: tuple[Sandbox, ...] = ()
    workload: str = ""
    tenant: str = ""
    started_unix: float = 0.0
    power_watts: float | None = None
    gpu_share: float | None = None
    user: str = ""
    cgroup: str = ""
