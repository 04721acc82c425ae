"""What a source says about a node, in the one shape that every source fills.

Quantities are in base units (see `quantities`); energy alone stays in integer millijoules,
because attribution adds it up exactly. A key that is absent means "no reading": no source
ever writes a zero, a NaN or a sentinel for something it does not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MigReadings:
    """One MIG GPU instance (or compute instance) of a board."""

    gpu_instance: int
    compute_instance: int | None = None
    uuid: str | None = None
    profile: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NvLink:
    """One active NVLink; `remote_bus_id` is canonical, or None where the far end is hidden."""

    link: int
    remote_kind: str  # gpu, switch, ibm_npu or unknown
    remote_bus_id: str | None = None


@dataclass(frozen=True, slots=True)
class Fabric:
    """What NVML says of the NVLink fabric (`nvmlDeviceGetGpuFabricInfoV`), undecoded."""

    cluster_uuid: str  # 32 lower-case hex digits
    clique_id: int
    state: int
    status: int


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process with a context on a GPU, as its driver lists it."""

    pid: int
    memory_bytes: int | None = None
    gpu_instance: int | None = None
    graphics: bool = False  # a display server or the like, not a computation


@dataclass(frozen=True, slots=True)
class Pod:
    """A Kubernetes container that holds a GPU."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class GpuReadings:
    """One board as one source sees it."""

    uuid: str
    index: int | None = None
    pci_bus_id: str | None = None  # canonical, see identity.canonical_bus_id
    model: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    mig: tuple[MigReadings, ...] = ()
    nvlinks: tuple[NvLink, ...] | None = None  # None: this source cannot tell
    fabric: Fabric | None = None
    processes: tuple[GpuProcess, ...] | None = None  # None: this source cannot list them
    pods: tuple[Pod, ...] | None = None  # None: this source cannot tell


@dataclass(frozen=True, slots=True)
class Xid:
    """One XID event of one board."""

    uuid: str
    code: int


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """Everything one source read in one pass."""

    source: str
    taken_at: float  # monotonic seconds
    gpus: tuple[GpuReadings, ...] = ()
    xids: tuple[Xid, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)  # by reason, in this pass
