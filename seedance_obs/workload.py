"""What a scheduler placed on this node: a pod, a Slurm job, a container or a process group."""

from dataclasses import dataclass, field

KINDS = ("pod", "slurm", "container", "service", "process", "vgpu")


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload and what is known of whose it is; what nobody knows is empty.

    `uid` is the pod's UID, the Slurm job id, the container id, the systemd unit, the process
    group id or the VM's UUID. With `started_at` (Unix seconds) it is the key: a restarted pod of
    the same name has another UID, a reused pid and a requeued job another start. `key` is the one
    word that names it in labels and accounts: `pod-8d2f...-1732961000`.
    """

    kind: str  # one of KINDS
    uid: str
    started_at: int
    namespace: str = ""
    pod: str = ""
    container: str = ""
    image: str = ""
    pod_labels: tuple[tuple[str, str], ...] = ()
    slurm_job: str = ""
    slurm_account: str = ""
    user: str = ""
    cgroup: str = ""
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the key once: it is asked for several times a tick."""
        object.__setattr__(self, "key", f"{self.kind}-{self.uid}-{self.started_at}")
