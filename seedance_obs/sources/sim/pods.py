"""The names under which the host knows one run of a workload: its pod, container and cgroup."""

from typing import NamedTuple
from uuid import UUID

from seedance_obs.sources.sim.machine import Machine, PodNames, Workload, digest


def pod_of(machine: Machine, workload: Workload) -> PodNames | None:
    """The pod of a workload; None where it has none, or its machine is no Kubernetes node."""
    return workload.pod if machine.kubernetes else None


def pod_uid(machine: Machine, workload: Workload, run: int) -> str | None:
    """The UID of the pod that one run is in; None outside Kubernetes.

    All containers of a pod have it, and the next run, a pod of the same name, has another.
    """
    pod = pod_of(machine, workload)
    if pod is None:
        return None
    return str(UUID(bytes=digest(machine.name, pod.namespace, pod.pod, run)[:16], version=4))


def container_id(machine: Machine, workload: Workload, run: int) -> str | None:
    """The 64 hex digits of the container that one run is in; None outside Kubernetes."""
    pod = pod_of(machine, workload)
    if pod is None:
        return None
    return digest(machine.name, pod.namespace, pod.pod, pod.container, run).hex()


class Namespaces(NamedTuple):
    """The inodes of a process's mount and network namespaces."""

    mnt: int
    net: int


_HOST_NAMESPACES = Namespaces(4_026_531_841, 4_026_531_840)
_FIRST_NAMESPACE = 4_026_532_001


def namespaces(machine: Machine, workload: Workload) -> Namespaces:
    """Of a container: a mount namespace of its own, and its pod's network; else the host's."""
    pod = pod_of(machine, workload)
    if pod is None:
        return _HOST_NAMESPACES
    first = next(
        other.index
        for other in machine.workloads
        if other.pod and (other.pod.namespace, other.pod.pod) == (pod.namespace, pod.pod)
    )
    return Namespaces(_FIRST_NAMESPACE + 2 * workload.index, _FIRST_NAMESPACE + 2 * first + 1)


def cgroup_path(machine: Machine, workload: Workload, run: int) -> str:
    """The cgroup v2 path of one run: its container in its pod, or a session of the user."""
    uid = pod_uid(machine, workload, run)
    if uid is None:
        user = machine.tenants[workload.tenant]
        return f"/user.slice/user-{user}.slice/session-{workload.index + 1}.scope"
    return (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid.replace('-', '_')}"
        f".slice/cri-containerd-{container_id(machine, workload, run)}.scope"
    )
