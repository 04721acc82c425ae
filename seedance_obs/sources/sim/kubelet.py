"""The kubelet of a simulated machine: pod-resources v1 on a unix socket, served by real gRPC.

Device ids are those of NVIDIA's device plugin with MIG strategy `mixed`. A device that workloads
share has one replica for each of them (`::0`, `::1`, ...), as its time slicing hands them out.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import floor
from pathlib import Path
from typing import Any, Self

from seedance_obs.sources.podresources.wire import SERVICE, decode, grpc_library, message_class
from seedance_obs.sources.sim.machine import Held, Machine, Workload

_THREADS = 2


class SimulatedKubelet:
    """Serves the pods of a machine while its `with` block runs.

    A pod is listed while its workload runs, also when a board of it is lost: a kubelet does not
    see that. A machine without Kubernetes answers with no pod.

    Args:
        machine: whose pods.
        socket: where to listen; its folder must exist.
        now: seconds since the machine's epoch.
        lag_s: how long after its start a pod is first listed.
        stale_s: how long after its end a pod is still listed.

    Raises:
        SourceUnavailableError: grpcio or protobuf is not installed.
    """

    def __init__(
        self,
        machine: Machine,
        socket: Path,
        *,
        now: Callable[[], float],
        lag_s: float = 0.0,
        stale_s: float = 0.0,
    ) -> None:
        self._machine = machine
        self._socket = socket
        self._now = now
        self._lag_s = lag_s
        self._stale_s = stale_s
        self._grpc = grpc_library()
        self._executor = ThreadPoolExecutor(_THREADS, "simulated-kubelet")
        self._server = self._grpc.server(self._executor)

    def __enter__(self) -> Self:
        answer = self._grpc.unary_unary_rpc_method_handler
        handlers = {
            "List": answer(self._list),
            "Get": answer(self._get),
            "GetAllocatableResources": answer(self._allocatable),
        }
        service = self._grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((service,))
        self._server.add_insecure_port(f"unix:{self._socket.resolve()}")
        self._server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.stop(None).wait()
        self._executor.shutdown()

    def _list(self, _request: bytes, _context: Any) -> bytes:
        pods = self._pods()
        return _bytes(message_class("ListPodResourcesResponse")(pod_resources=pods))

    def _get(self, request: bytes, context: Any) -> bytes:
        asked = decode("GetPodResourcesRequest", request)
        for pod in self._pods():
            if (pod.namespace, pod.name) == (asked.pod_namespace, asked.pod_name):
                return _bytes(message_class("GetPodResourcesResponse")(pod_resources=pod))
        context.set_code(self._grpc.StatusCode.UNKNOWN)
        context.set_details(f"pod {asked.pod_name} in namespace {asked.pod_namespace} not found")
        return b""

    def _allocatable(self, _request: bytes, _context: Any) -> bytes:
        devices = [
            _devices(self._machine, held, replica)
            for held in _every_device(self._machine)
            for replica in range(max(1, len(_sharers(self._machine, held))))
        ]
        return _bytes(message_class("AllocatableResourcesResponse")(devices=devices))

    def _pods(self) -> list[Any]:
        """A `PodResources` message for each pod that is listed now."""
        pods: dict[tuple[str, str], Any] = {}
        if not self._machine.kubernetes:
            return []
        for workload in self._machine.workloads:
            if workload.pod is not None and self._is_listed(workload):
                key = (workload.pod.namespace, workload.pod.pod)
                if key not in pods:
                    pods[key] = message_class("PodResources")(namespace=key[0], name=key[1])
                devices = [_held_by(self._machine, workload, held) for held in workload.devices]
                pods[key].containers.add(name=workload.pod.container, devices=devices)
        return list(pods.values())

    def _is_listed(self, workload: Workload) -> bool:
        since = self._now() - self._lag_s - workload.start_s  # the first run was first listed
        if since < 0:
            return False
        if workload.duration_s is None:
            return True
        period = workload.repeat_every_s
        into = since if period is None else since - floor(since / period) * period
        return into + self._lag_s < workload.duration_s + self._stale_s


def _held_by(machine: Machine, workload: Workload, held: Held) -> Any:
    sharers = _sharers(machine, held)
    return _devices(machine, held, sharers.index(workload.index) if sharers else 0)


def _sharers(machine: Machine, held: Held) -> list[int]:
    """The workloads that share a device, by index; none where it goes to one at a time."""
    holders = [each for each in machine.workloads if held in each.devices and each.pod is not None]
    shared = len(holders) > 1 and any(each.share < 1.0 for each in holders)
    return [each.index for each in holders] if shared else []


def _devices(machine: Machine, held: Held, replica: int) -> Any:
    """A `ContainerDevices` message; a board on NUMA node 0 sends a node without a number."""
    numa = machine.gpus[held.gpu].device.numa
    topology = {} if numa is None else {"topology": {"nodes": [{"ID": numa}]}}
    device_id = _device_id(machine, held)
    if _sharers(machine, held):
        device_id += f"::{replica}"
    return message_class("ContainerDevices")(
        resource_name=_resource_name(machine, held), device_ids=[device_id], **topology
    )


def _device_id(machine: Machine, held: Held) -> str:
    if held.mig is None:
        return machine.gpu_uuid(held.gpu)
    return machine.mig_uuid(held.gpu, held.mig)


def _resource_name(machine: Machine, held: Held) -> str:
    if held.mig is None:
        return "nvidia.com/gpu"
    profile = machine.gpus[held.gpu].mig[held.mig].profile
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def _every_device(machine: Machine) -> Iterator[Held]:
    for gpu in machine.gpus:
        if gpu.mig:
            yield from (Held(gpu.index, mig) for mig in range(len(gpu.mig)))
        else:
            yield Held(gpu.index)


def _bytes(message: Any) -> bytes:
    serialized: bytes = message.SerializeToString()
    return serialized
