"""What a scheduler placed on this node: a pod, a Slurm job, a container or a process group."""

from dataclasses import dataclass

KINDS = ("pod", "slurm", "container", "service", "process", "vgpu")


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload and what is known of whose it is; what nobody knows is empty.

    `uid` is the pod's UID, the Slurm job id, the container id, the systemd unit, the process
    group id or the VM's UUID. With `started_at` (Unix seconds) it is the key: a restarted pod of
    the same name has another UID, a reused pid and a requeued job another start.
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

    @property
    def key(self) -> str:
        """The one word that names it in labels and accounts: `pod-8d2f...-1732961000`."""
        return f"{self.kind}-{self.uid}-{self.started_at}"
