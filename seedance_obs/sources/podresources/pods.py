"""From the kubelet's messages to the containers that hold an NVIDIA device."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from seedance_obs.sources.podresources.devices import HeldDevice, device_of_claim, device_of_id

RESOURCE_NAMES = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
MIG_RESOURCE_PREFIX = "nvidia.com/mig-"
DRA_DRIVER = "gpu.nvidia.com"

IsOurs = Callable[[str], bool]  # of a resource's name


@dataclass(frozen=True, slots=True)
class DraClaim:
    """A device that came by Dynamic Resource Allocation, by the names of its ResourceSlice."""

    name: str
    namespace: str
    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container that holds NVIDIA devices, by device plugin or by claim.

    `devices` has what is known of each, in the kubelet's order; one whose spelling says nothing is
    missing there, so that a container may have a claim and no device.
    """

    namespace: str
    pod: str
    container: str
    devices: tuple[HeldDevice, ...]
    claims: tuple[DraClaim, ...] = ()


def is_ours(extra_names: tuple[str, ...]) -> IsOurs:
    """Tells NVIDIA's resources (and the extra ones, by exact name) from everybody else's."""
    names = frozenset(RESOURCE_NAMES + extra_names)
    return lambda name: name in names or name.startswith(MIG_RESOURCE_PREFIX)


def containers_of(pods: Iterable[Any], ours: IsOurs) -> tuple[tuple[PodContainer, ...], int]:
    """The containers of `PodResources` messages that hold our devices.

    The number is how many held devices had a spelling that nobody has seen.
    """
    found = []
    unreadable = 0
    for pod in pods:
        for container in pod.containers:
            if container.devices or container.dynamic_resources:
                one, lost = _container(pod, container, ours)
                unreadable += lost
                found += [] if one is None else [one]
    return tuple(found), unreadable


def devices_of(entries: Iterable[Any], ours: IsOurs) -> Iterator[HeldDevice | None]:
    """Each of our devices in `ContainerDevices` messages, None for an unreadable id."""
    for entry in entries:
        if ours(entry.resource_name):
            numa = _numa(entry)
            for text in entry.device_ids:
                yield device_of_id(text, numa=numa)


def _container(pod: Any, container: Any, ours: IsOurs) -> tuple[PodContainer | None, int]:
    held = list(devices_of(container.devices, ours))
    claims = []
    for claim, device in _claims(container.dynamic_resources):
        claims.append(claim)
        held.append(device)
    if not held:
        return None, 0
    devices = tuple(device for device in held if device is not None)
    lost = len(held) - len(devices)
    if not devices and not claims:
        return None, lost
    return PodContainer(pod.namespace, pod.name, container.name, devices, tuple(claims)), lost


def _claims(dynamic_resources: Iterable[Any]) -> Iterator[tuple[DraClaim, HeldDevice | None]]:
    for resource in dynamic_resources:
        for part in resource.claim_resources:
            if part.driver_name == DRA_DRIVER:
                cdi_names = tuple(device.name for device in part.cdi_devices)
                claim = DraClaim(
                    resource.claim_name,
                    resource.claim_namespace,
                    part.driver_name,
                    part.pool_name,
                    part.device_name,
                )
                yield claim, device_of_claim(part.device_name, cdi_names)


def _numa(entry: Any) -> frozenset[int] | None:
    """The nodes nearest to an entry's devices: proto3 sends no zero, so a bare node is node 0."""
    return frozenset(node.ID for node in entry.topology.nodes if node.ID >= 0) or None
