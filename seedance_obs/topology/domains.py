"""NVLink domains: which GPUs reach each other over NVLink or NVSwitch, and each domain's name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seedance_obs.topology.model import (
    UNSUPPORTED,
    Absent,
    Device,
    Edge,
    FabricMembership,
    Kind,
    Topology,
)
from seedance_obs.topology.nvlinks import HIDDEN_SWITCH, Links, nvlinks

FABRIC_COMPLETED = 3  # NVML_GPU_FABRIC_STATE_COMPLETED
FABRIC_SUCCESS = 0


@dataclass(frozen=True, slots=True)
class LinkedGpu:
    """A GPU by name, the far ends of its active NVLinks, and its rack if it has joined one.

    `peers` holds names of GPUs and switches, and `HIDDEN_SWITCH` for far ends that this host
    cannot see.
    """

    name: str
    peers: frozenset[str]
    rack: str | None = None


def domains(
    devices: Iterable[Device], edges: Iterable[Edge] = (), *, node: str = ""
) -> Mapping[str, str]:
    """The NVLink domain of each GPU that has one, by name; see `nvlink_domains`.

    A GPU whose NVLinks are not known has one only where its fabric names a rack.
    """
    devices = tuple(devices)
    gpus = {device.name: device for device in devices if device.kind is Kind.GPU}
    links = nvlinks(devices, edges)
    linked = [
        LinkedGpu(name, _peers(links.get(name, Links({})), gpus), rack_domain(gpu.fabric))
        for name, gpu in gpus.items()
    ]
    return nvlink_domains(node, linked)


def rack_domain(fabric: FabricMembership | Absent) -> str | None:
    """`clusterUuid.cliqueId`, or None unless the GPU has joined a real fabric successfully.

    Single nodes report a completed fabric with a zero UUID: that names no rack.
    """
    if isinstance(fabric, Absent) or isinstance(fabric.cluster_uuid, Absent):
        return None
    digits = fabric.cluster_uuid.replace("-", "").lower()
    joined = fabric.state == FABRIC_COMPLETED and fabric.status == FABRIC_SUCCESS
    if not joined or isinstance(fabric.clique_id, Absent) or not digits.strip("0"):
        return None
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{'-'.join(parts)}.{fabric.clique_id}"


def nvlink_domains(node: str, gpus: Sequence[LinkedGpu]) -> Mapping[str, str]:
    """The domain of each GPU that has NVLinks, by name.

    GPUs belong together when a link joins them or when they reach the same switch; switches that
    the host cannot see count as one. A rack's domain is the fabric's own name, any other is the
    node (if it has a name) and its lowest GPU's, so it does not depend on the order of the GPUs.
    """
    roots = {gpu.name: gpu.name for gpu in gpus}

    def find(name: str) -> str:
        while roots.setdefault(name, name) != name:
            name = roots[name]
        return name

    for gpu in gpus:
        for peer in gpu.peers:
            roots[find(peer)] = find(gpu.name)
    members: dict[str, list[str]] = {}
    for gpu in gpus:
        members.setdefault(find(gpu.name), []).append(gpu.name)
    found = {}
    for gpu in gpus:
        if gpu.rack is not None:
            found[gpu.name] = gpu.rack
        elif gpu.peers:
            prefix = f"{node}." if node else ""
            found[gpu.name] = prefix + min(members[find(gpu.name)]).replace(":", "-")
    return found


def domain_is_known(topology: Topology, gpu: Device) -> bool:
    """Whether it is certain which NVLink domain the GPU is in, or that it is in none."""
    if gpu.name in topology.domains or gpu.nvlinks is UNSUPPORTED:
        return True
    if not isinstance(gpu.nvlinks, Absent):
        return all(port.active is False for port in gpu.nvlinks)
    others = [other for other in topology.gpus if other.name != gpu.name]
    return bool(others) and are_apart(topology, [gpu], others)


def are_apart(topology: Topology, some: Iterable[Device], others: Iterable[Device]) -> bool:
    """Whether it is certain that no GPU of the one side has an NVLink to one of the other."""
    others = tuple(others)
    counts = (topology.path(one.name, other.name).nvlinks for one in some for other in others)
    return all(links is UNSUPPORTED or links == 0 for links in counts)


def _peers(links: Links, gpus: Mapping[str, Device]) -> frozenset[str]:
    return frozenset(
        links.peers.keys() & gpus.keys() | ({HIDDEN_SWITCH} if links.fabric else set())
    )
