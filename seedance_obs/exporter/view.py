"""What the collectors see: one immutable picture of the node, replaced as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.attribution.intensity import Evidence
from seedance_obs.attribution.tick import Balance
from seedance_obs.bandwidth.reading import NodeBandwidth
from seedance_obs.exporter.link_health import LinkHealth
from seedance_obs.leaks.held_memory import Held
from seedance_obs.leaks.suspect import Suspect
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import MigReadings
from seedance_obs.topology.model import Device, Topology, known
from seedance_obs.topology.naming import number_list
from seedance_obs.workload import Workload

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
    """What one tenant has used of one GPU; `metered`: the board's energy is known."""

    gpu_uuid: str
    tenant: str
    balance: Balance
    metered: bool


@dataclass(frozen=True, slots=True)
class WorkloadAccount:
    """What one workload has used of one GPU; `account_names` tells it and its tenant."""

    gpu_uuid: str
    account: str
    balance: Balance
    metered: bool
    intensity: float | None  # relative to the GPU's sharers, while it is learned and used
    memory_bytes: int | None = None  # held now; None for what has ended


@dataclass(frozen=True, slots=True)
class ShownWorkload:
    """A workload and who pays for it."""

    workload: Workload
    tenant: str


@dataclass(frozen=True, slots=True)
class BoardEvidence:
    """What the split of one board's energy rests on; `intensity` is None until it was shared."""

    gpu_uuid: str
    energy_source: str | None  # counter or integrated_power
    floor_watts: float | None
    floor_source: str | None  # measured or configured
    base_watts: float | None  # what holding it with nothing running adds, where that was seen
    estimators: Mapping[str, int]  # millijoules by how they were split
    counter_restarts: int
    implausible: int
    intensity: Evidence | None


@dataclass(frozen=True, slots=True)
class HostEnergyView:
    """Microjoules of the host by RAPL zone kind and tenant, and by kind and account."""

    tenants: Mapping[tuple[str, str], int] = field(default_factory=dict)
    workloads: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """What one workload may use of one GPU by one source; `at_limit`: seconds by limit."""

    gpu_uuid: str
    account: str
    source: str
    memory_bytes: int | None
    sm_ratio: float | None
    changed_at: float | None
    at_limit: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class AttributionView:
    """Who used what, as of one moment."""

    tenants: tuple[TenantAccount, ...] = ()
    workloads: tuple[ShownWorkload, ...] = ()
    workload_accounts: tuple[WorkloadAccount, ...] = ()
    hidden_workloads: int = 0
    evidence: tuple[BoardEvidence, ...] = ()
    dropped_claims: int = 0  # now
    shapley: bool = False
    host: HostEnergyView = field(default_factory=HostEnergyView)
    quotas: tuple[QuotaRow, ...] = ()


@dataclass(frozen=True, slots=True)
class IdleWindowView:
    """One idle window: of the node, whose `workload` is empty, or of a workload."""

    open: bool
    seconds: float  # that it has been open, over all times
    workload: str = ""
    tenant: str = ""
    reason: str = ""  # why it is closed, such as memory_in_use; empty while it is open


@dataclass(frozen=True, slots=True)
class LeakView:
    """What the leak probes see.

    `suspects` are all, the worst of each kind first; what is shown as series is cut to
    `most_shown` of a kind. `skipped` counts probes that no idle window was open in, by reason.
    `processes` counts those of the last probe by how it went: `read`, or why not. `gpu_seconds`
    and `gpu_energy_mj` are what suspects have cost so far, by kind, `held` is memory-time by the
    board's UUID. `unjudged` are kinds that the last probe could not judge, since a part of it
    broke; `probed_at` is of the last one in which nothing did. `judged_after_seconds` tells by kind
    for how long something must be watched before it can be suspect at all: five windows of the
    quickest rule where something grows. Prices are per kWh and per GPU-hour, None where none is
    set.
    """

    suspects: tuple[Suspect, ...] = ()
    unjudged: frozenset[str] = frozenset()
    most_shown: int = 0
    windows: tuple[IdleWindowView, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    probed_at: float | None = None  # monotonic; None before the first
    probed_in_window_at: float | None = None  # the last that an open window let pass
    watching_since: float | None = None  # monotonic, of the first probe
    judged_after_seconds: Mapping[str, float] = field(default_factory=dict)
    probe_seconds: float | None = None  # CPU time of the last
    processes: Mapping[str, int] = field(default_factory=dict)
    gpu_seconds: Mapping[str, float] = field(default_factory=dict)
    gpu_energy_mj: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, Held] = field(default_factory=dict)
    currency: str = ""
    kwh_price: float | None = None
    gpu_hour_price: float | None = None


@dataclass(frozen=True, slots=True)
class FreeGpus:
    """What nobody holds of a node's GPUs, and of what use it is.

    `gpus` may be a fraction; `whole` counts boards that are not cut and held by nobody. `gang` is
    by the size of a request how many of those can serve it, `island` by level how many of those
    are on the island with most of them. `unusable`, `stranded` and `fgd` are of `gpus`; they are
    None where nothing was placed here yet. The memory ratios are None where nothing is free, or
    its memory is not known.
    """

    gpus: float
    whole: int
    gang: Mapping[int, int] = field(default_factory=dict)
    island: Mapping[str, int] = field(default_factory=dict)  # nvlink_domain, pcie_switch, numa_node
    unusable: float | None = None
    stranded: float | None = None
    fgd: float | None = None
    memory_external: float | None = None
    memory_external_normalised: float | None = None


@dataclass(frozen=True, slots=True)
class FragmentationView:
    """How much of each board is free, by UUID from 0 to 1, and what that is worth together.

    `unknown` counts boards of which it cannot be told; while there are any, `free` is None, as it
    is where there is no board. `placements` is how many requests the measures go by.
    """

    boards: Mapping[str, float] = field(default_factory=dict)
    unknown: int = 0
    placements: int = 0
    free: FreeGpus | None = None


@dataclass(frozen=True, slots=True)
class WorkloadPlacement:
    """How a workload's GPUs are linked: its mean pair and that of the best set of its size.

    Bytes per second one way; the best is of all GPUs of the node, held or not.
    """

    workload: str
    tenant: str
    actual: float
    best: float

    @property
    def regret(self) -> float:
        """The share of the best that the workload lacks, 0 to 1."""
        return 1 - self.actual / self.best


@dataclass(frozen=True, slots=True)
class PlacementView:
    """What links between GPUs carry (bytes per second one way), and who sits how on them.

    `paths` is by the names of two GPUs, `classes` by link class, the nearest first.
    """

    paths: Mapping[tuple[str, str], float] = field(default_factory=dict)
    classes: Mapping[str, float] = field(default_factory=dict)
    workloads: tuple[WorkloadPlacement, ...] = ()


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
    # By the monotonic clock, as `taken_at` of the sources.
    xid_times: Mapping[tuple[tuple[str, ...], int], float] = field(default_factory=dict)
    attribution: AttributionView = field(default_factory=AttributionView)
    leaks: LeakView | None = None  # None where nothing is probed
    fragmentation: FragmentationView | None = None  # None before the first, and while it fails
    bandwidth: NodeBandwidth | None = None  # None where no fast loop runs
    placement: PlacementView | None = None  # None before the first, and while it fails
