"""What a source says about a node, in the one shape that every source fills.

Quantities are in base units (see `quantities`); energy alone stays in integer millijoules,
because attribution adds it up exactly. A key that is absent means "no reading": no source
ever writes a zero, a NaN or a sentinel for something it does not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.flow import Flow
from seedance_obs.sources.podresources.pods import PodContainer


@dataclass(frozen=True, slots=True)
class MigReadings:
    """One MIG GPU instance (or compute instance) of a board."""

    gpu_instance: int
    compute_instance: int | None = None
    uuid: str | None = None
    profile: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    slices: int | None = None  # compute slices, of the board's `GpuReadings.mig_slices`


@dataclass(frozen=True, slots=True)
class NvLink:
    """One NVLink port of a board.

    `remote_bus_id` is canonical, or None where the far end is hidden. A port that sleeps to save
    power is active; of one that is not, nothing but its number is known.
    """

    link: int
    remote_kind: str  # gpu, switch, ibm_npu or unknown
    remote_bus_id: str | None = None
    active: bool | None = True  # None: the driver does not say
    mb_per_second: float | None = None  # one way, 1 MB = 10**6 bytes
    version: str | None = None  # the generation, `4.0`
    remote_link: int | None = None  # the port on the far side
    p2p: bool | None = None  # whether the link carries peer-to-peer traffic


@dataclass(frozen=True, slots=True)
class Fabric:
    """What NVML says of the NVLink fabric (`nvmlDeviceGetGpuFabricInfoV`), undecoded.

    The health is None where the driver is too old to know it; `topology.fabric` decodes it.
    """

    cluster_uuid: str  # 32 lower-case hex digits
    clique_id: int
    state: int
    status: int
    health_mask: int | None = None
    health_summary: int | None = None


@dataclass(frozen=True, slots=True)
class GpuPlace:
    """Where a board sits: the NUMA nodes and CPUs nearest to it, and its way to the CPU's memory.

    `memory_node` is the NUMA node that the board's own memory is (Grace). `c2c_links` are the
    NVLink-C2C links that are up, `c2c_mb_per_second` what they carry together, one way.
    """

    memory_node: int | None = None
    numa: frozenset[int] | None = None
    cpus: frozenset[int] | None = None
    c2c_links: int | None = None
    c2c_mb_per_second: float | None = None
    addressing_mode: str | None = None  # none, hmm or ats


@dataclass(frozen=True, slots=True)
class GpuPair:
    """How two boards reach each other; each pair is there once, the lower index first.

    `level` is an nvmlGpuTopologyLevel_t (0 to 50). `p2p` has a word for each capability (read,
    write, nvlink) that the driver answered: ok, chipset_not_supported, gpu_not_supported,
    topology_not_supported, disabled_by_regkey, not_supported or unknown.
    """

    uuid: str
    other_uuid: str
    level: int | None = None
    p2p: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process with a context on a GPU, as its driver lists it."""

    pid: int
    memory_bytes: int | None = None
    gpu_instance: int | None = None
    graphics: bool = False  # a display server or the like, not a computation
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process used of a whole board since the pass before, as shares (0 to 1) of its time.

    A process that has ended since may be among them. Zero is a reading: the process was idle.
    """

    pid: int
    sm_ratio: float
    memory_ratio: float | None = None
    encoder_ratio: float | None = None
    decoder_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class VgpuInstance:
    """A virtual GPU that a VM holds of a board, as the board's host sees it.

    `memory_bytes` is what the VM uses of the board's memory, `sm_ratio` the share (0 to 1) of the
    whole board's time that it kept busy since the pass before. Zero is a reading: it was idle.
    """

    vgpu_uuid: str
    vm_id: str | None = None  # the VM's UUID or its domain's number, as the hypervisor has it
    memory_bytes: int | None = None
    sm_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """A Kubernetes container that holds a GPU."""

    namespace: str
    pod: str
    container: str
    gpu_instance: int | None = None  # of MIG


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
    place: GpuPlace | None = None
    processes: tuple[GpuProcess, ...] | None = None  # None: this source cannot list them
    process_use: tuple[ProcessUse, ...] | None = None  # None: this source cannot tell
    mig_slices: int | None = None  # compute slices of the whole board in MIG mode, 7 or 4
    vgpus: tuple[VgpuInstance, ...] | None = None  # None: no vGPU host, or it cannot tell
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
    pairs: tuple[GpuPair, ...] = ()
    containers: tuple[PodContainer, ...] = ()  # of pods that hold devices
    flows: tuple[Flow, ...] = ()  # since the snapshot before
