"""A process by its name, and where in a tree of processes it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process: its pid, its start in clock ticks since boot, and its short name.

    The start is None where nobody can look any more: a driver may go on listing who has ended.
    """

    pid: int
    start_ticks: int | None
    comm: str = ""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where a process runs, rebuilt from what the kernel shows.

    Attributes:
        chain: The process, its parent, and so on up to the first process of its container, job or
            session, which comes last. Never empty.
        mount_namespace: The inode of its mount namespace; None where it may not be read.
        net_namespace: The same of its network namespace.
    """

    chain: tuple[ProcessName, ...]
    mount_namespace: int | None = None
    net_namespace: int | None = None
