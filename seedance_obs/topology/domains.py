"""NVLink domains: which GPUs reach each other over NVLink or NVSwitch, and each domain's name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FABRIC_COMPLETED = 3  # NVML_GPU_FABRIC_STATE_COMPLETED
FABRIC_SUCCESS = 0
HIDDEN_SWITCH = "hidden"


@dataclass(frozen=True, slots=True)
class LinkedGpu:
    """A GPU, the far ends of its active NVLinks, and its rack fabric if it has joined one.

    `peers` holds canonical PCI addresses of GPUs and switches, and `HIDDEN_SWITCH` for far ends
    that this host cannot see.
    """

    pci_bus_id: str
    peers: frozenset[str]
    rack: str | None = None


def rack_domain(cluster_uuid: str, clique_id: int, *, state: int, status: int) -> str | None:
    """`clusterUuid.cliqueId`, or None unless the GPU has joined a real fabric successfully.

    Single nodes report a completed fabric with a zero UUID: that names no rack.
    """
    digits = cluster_uuid.replace("-", "").lower()
    if state != FABRIC_COMPLETED or status != FABRIC_SUCCESS or not digits.strip("0"):
        return None
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{'-'.join(parts)}.{clique_id}"


def nvlink_domains(node: str, gpus: Sequence[LinkedGpu]) -> Mapping[str, str]:
    """The domain of each GPU that has NVLinks, by PCI address.

    GPUs belong together when a link joins them or when they reach the same switch; switches that
    the host cannot see count as one. A rack's domain is the fabric's own name, any other is the
    node (if it has a name) and its lowest GPU address, so it does not depend on the order of the
    GPUs.
    """
    roots = {gpu.pci_bus_id: gpu.pci_bus_id for gpu in gpus}

    def find(name: str) -> str:
        while roots.setdefault(name, name) != name:
            name = roots[name]
        return name

    for gpu in gpus:
        for peer in gpu.peers:
            roots[find(peer)] = find(gpu.pci_bus_id)
    members: dict[str, list[str]] = {}
    for gpu in gpus:
        members.setdefault(find(gpu.pci_bus_id), []).append(gpu.pci_bus_id)
    domains = {}
    for gpu in gpus:
        lowest = min(members[find(gpu.pci_bus_id)])
        if gpu.rack is not None:
            domains[gpu.pci_bus_id] = gpu.rack
        elif gpu.peers:
            prefix = f"{node}." if node else ""
            domains[gpu.pci_bus_id] = prefix + lowest.replace(":", "-")
    return domains
