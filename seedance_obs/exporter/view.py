"""What the collectors see: one immutable picture of the node, replaced as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.exporter.link_health import LinkHealth
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import MigReadings
from seedance_obs.topology.model import Device, Topology, known
from seedance_obs.topology.naming import number_list

GPU_LABELS = (
    "gpu",
    "gpu_uuid",
    "pci_bus_id",
    "numa_node",
    "pcie_root",
    "pcie_switch",
    "nvlink_domain",
)
MIG_LABELS = ("gpu_instance", "compute_instance", "mig_uuid", "profile")


def mig_labels(instance: MigReadings) -> tuple[str, ...]:
    """The values of `MIG_LABELS` for one instance, empty if unknown."""
    compute = instance.compute_instance
    return (
        str(instance.gpu_instance),
        "" if compute is None else str(compute),
        instance.uuid or "",
        instance.profile or "",
    )


def gpu_labels(gpu: Device, topology: Topology) -> tuple[str, ...]:
    """The values of `GPU_LABELS`, empty where unknown; several NUMA nodes read `0,5-11`."""
    return (
        "" if gpu.index is None else str(gpu.index),
        known(gpu.uuid) or "",
        known(gpu.bus_id) or "",
        number_list(gpu.numa) or "",
        known(gpu.pcie_root) or "",
        known(gpu.pcie_switch) or "",
        topology.domains.get(gpu.name, ""),
    )


@dataclass(frozen=True, slots=True)
class LocatedGpu:
    """A merged GPU and where it sits; `labels` are the values of `GPU_LABELS`."""

    merged: MergedGpu
    device: Device
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceState:
    """How a source fares: `taken_at` is the monotonic time of its last good reading."""

    up: bool
    taken_at: float | None = None
    read_seconds: float | None = None
    restarts: int | None = None
    abandoned: int | None = None


@dataclass(frozen=True, slots=True)
class TenantAccount:
    """What one tenant has used of one GPU since this exporter first saw it there."""

    gpu_uuid: str
    tenant: str
    held_us: int
    energy_mj: int | None


@dataclass(frozen=True, slots=True)
class NodeView:
    """The node as of one moment; `started_at` is the Unix time at which its accounts began."""

    node_name: str
    started_at: float | None = None
    gpus: tuple[LocatedGpu, ...] = ()
    missing: tuple[tuple[str, ...], ...] = ()  # labels of GPUs that were seen before
    topology: Topology = field(default_factory=Topology)
    links: Mapping[str, LinkHealth] = field(default_factory=dict)  # by UUID
    expected_gpus: int | None = None  # None before the first view
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[tuple[str, str], int] = field(default_factory=dict)
    xid_errors: Mapping[tuple[tuple[str, ...], int], int] = field(default_factory=dict)
    accounts: tuple[TenantAccount, ...] = ()
