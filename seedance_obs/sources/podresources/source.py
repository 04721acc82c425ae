"""The kubelet as a source: which containers of this node hold an NVIDIA device, as it lists them.

What it lists may be late, or of pods that have ended; who compares it with living processes
decides what to believe.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources.call import KubeletSocket, PodUnknownError
from seedance_obs.sources.podresources.devices import HeldDevice
from seedance_obs.sources.podresources.pods import PodContainer, containers_of, devices_of, is_ours
from seedance_obs.sources.podresources.wire import decode, message_class
from seedance_obs.sources.readings import SourceSnapshot


class PodResourcesSource:
    """Asks one kubelet. It holds nothing between calls and may be used from any thread.

    Args:
        socket: the pod-resources socket, below the host's root.
        timeout_seconds: for one call, from connecting to the last byte.
        resource_names: names of resources to look at besides `nvidia.com/gpu`,
            `nvidia.com/gpu.shared` and `nvidia.com/mig-*`, for plugins that rename them.
        reply_limit_bytes: a larger reply is refused. 20,000 pods take about 5 MB.
        monotonic: the clock, in seconds.
    """

    name = "podresources"

    def __init__(
        self,
        socket: Path,
        *,
        timeout_seconds: float = 3.0,
        resource_names: tuple[str, ...] = (),
        reply_limit_bytes: int = 64 << 20,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = socket
        self._ours = is_ours(resource_names)
        self._monotonic = monotonic
        self._kubelet = KubeletSocket(
            socket, timeout_seconds=timeout_seconds, reply_limit_bytes=reply_limit_bytes
        )

    def read(self) -> SourceSnapshot:
        """Every container that holds an NVIDIA device now.

        Dropped under `device` are device ids and DRA devices in a spelling that nobody has seen.

        Raises:
            SourceUnavailableError: there is no kubelet, or it did not answer as it should.
        """
        reply = self._ask("List", "ListPodResources")
        containers, unreadable = containers_of(reply.pod_resources, self._ours)
        dropped = {"device": unreadable} if unreadable else {}
        return SourceSnapshot(self.name, self._monotonic(), containers=containers, dropped=dropped)

    def get(self, namespace: str, pod: str) -> tuple[PodContainer, ...] | None:
        """The containers of one pod that hold an NVIDIA device, None where there is no such pod.

        Raises:
            SourceUnavailableError: there is no kubelet, it did not answer as it should, or its
                version has no such call.
        """
        try:
            reply = self._ask("Get", "GetPodResources", pod_name=pod, pod_namespace=namespace)
        except PodUnknownError:
            return None
        containers, _ = containers_of([reply.pod_resources], self._ours)
        return containers

    def allocatable(self) -> tuple[HeldDevice, ...]:
        """The devices that the kubelet can hand out, held or not; those of DRA are not among them.

        Raises:
            SourceUnavailableError: there is no kubelet, it did not answer as it should, or its
                version has no such call.
        """
        reply = self._ask("GetAllocatableResources", "AllocatableResources")
        return tuple(device for device in devices_of(reply.devices, self._ours) if device)

    def close(self) -> None:
        """Nothing is held between calls."""

    def _ask(self, method: str, messages: str, **request: str) -> Any:
        self._kubelet.check()  # first: a node without a kubelet needs no library either
        question = message_class(f"{messages}Request")(**request).SerializeToString()
        reply = self._kubelet.ask(method, question)
        try:
            return decode(f"{messages}Response", reply)
        except ValueError as error:
            raise SourceUnavailableError(
                f"what listens at {self._path} speaks gRPC, and its answer to {method} is not "
                f"pod-resources v1 ({error}): check that the path is the pod-resources socket"
            ) from error
