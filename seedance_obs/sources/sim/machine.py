"""A simulated machine as plain frozen values, with the identities that follow from its name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from seedance_obs.sources.sim.models import MODELS, MigProfile, Model

PIDS_PER_WORKLOAD = 4096


def digest(*parts: object) -> bytes:
    """Thirty-two bytes that depend on nothing but the parts."""
    return sha256("/".join(str(part) for part in parts).encode()).digest()


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A PCI function: its canonical address, its NUMA node and the bridges above it."""

    pci: str
    path: tuple[str, ...]  # host bridge (`pci0000:15`), root port, switch ports; top down
    numa: int | None = None  # None: the kernel reports -1


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG GPU instance with its one compute instance."""

    profile: str
    gpu_instance: int


@dataclass(frozen=True, slots=True)
class Gpu:
    """A board in NVML's order, which is PCI order."""

    index: int
    model_key: str
    device: PciDevice
    mig: tuple[MigInstance, ...] = ()
    inactive_links: tuple[int, ...] = ()  # wired, and down

    @property
    def model(self) -> Model:
        """The product this board is one of."""
        return MODELS[self.model_key]

    def profile(self, instance: int) -> MigProfile:
        """The size of the MIG instance at a MIG index."""
        return self.model.mig_profiles[self.mig[instance].profile]


@dataclass(frozen=True, slots=True)
class NvSwitch:
    """An NVSwitch that the host can see, and the links that each of its GPUs has to it."""

    device: PciDevice
    links: int
    gpus: tuple[int, ...] = ()  # those that are wired to it; empty: all


@dataclass(frozen=True, slots=True)
class Named:
    """A network adapter or a disk, under Linux's name for it."""

    name: str
    device: PciDevice


@dataclass(frozen=True, slots=True)
class NetworkAdapter(Named):
    """A network adapter with one port; its name is that of its RDMA device or its interface."""

    rdma: bool = True  # InfiniBand; else Ethernet
    gbits: int = 400  # per second, one way


@dataclass(frozen=True, slots=True)
class DirectNvLinks:
    """A bundle of NVLinks between two GPUs."""

    gpus: tuple[int, int]
    links: int


@dataclass(frozen=True, slots=True)
class HiddenSwitches:
    """NVSwitches outside this host: every GPU has `links` to far ends without a PCI address."""

    links: int
    remote_type: int  # nvmlIntNvLinkDeviceType_t: 2 switch, 255 unknown


@dataclass(frozen=True, slots=True)
class FabricState:
    """What `nvmlDeviceGetGpuFabricInfoV` answers on every GPU of this host."""

    cluster_uuid: str  # 32 lower-case hex digits
    clique_id: int
    state: int
    status: int
    health_mask: int = 0
    health_summary: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """A board (`mig` is None) or one MIG instance of it, by MIG index."""

    gpu: int
    mig: int | None = None


@dataclass(frozen=True, slots=True)
class PodNames:
    """The Kubernetes names of a workload."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class HostUse:
    """What each process of a workload holds of its host. A megabyte is 10**6 bytes."""

    fds: int = 24  # open at its start
    fds_per_s: float = 0.0
    fds_reset_s: float | None = None  # how often it closes those it came by; None: never
    fd_limit: int = 1_048_576  # soft; once there, it opens no more
    anonymous_mb: float = 400.0  # resident at its start
    anonymous_mb_per_h: float = 0.0
    file_mb: float = 300.0  # resident pages of mapped files
    shared_mb: float = 100.0  # resident shared memory
    swapped_mb: float = 0.0
    data_mb: float | None = None  # mapped for data and stack; None: little more than is resident


ZOMBIE, GHOST, HOLDER = GUISES = ("zombie", "ghost", "holder")


@dataclass(frozen=True, slots=True)
class Workload:
    """A program that holds devices for a while: one process per device, the same phases in each.

    Most are what they seem. A `zombie` is listed by the driver, memory and all, also after its
    processes have ended. A `ghost` uses its devices though nothing lists a process of it. A
    `holder` is a pod that was given its devices and opens no context on them.
    """

    index: int
    name: str
    tenant: str
    kind: str
    devices: tuple[Held, ...]
    phases: tuple[tuple[float, float], ...]  # seconds, activity 0..1; repeats
    memory_mib: int  # in every process
    start_s: float = 0.0
    duration_s: float | None = None  # None: forever
    repeat_every_s: float | None = None  # None: once
    intensity: float = 1.0  # how much of the board's power range full activity uses
    share: float = 1.0  # of the device, where several workloads hold it at once
    load_s: float = 0.0  # idle at the start of each run, as while weights are loaded
    stagger_s: float = 0.0  # each process runs this much ahead of the one before
    pod: PodNames | None = None
    guise: str = ""  # one of GUISES; empty: none
    host: HostUse = HostUse()

    @property
    def has_contexts(self) -> bool:
        """Whether its living processes have contexts that the driver lists."""
        return self.guise not in (GHOST, HOLDER)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that breaks at a moment; `gpu` None means the whole driver, or an NVSwitch."""

    at_s: float
    gpu: int | None = None
    nvswitch: int | None = None  # by its place in the description; its links are down
    until_s: float | None = None  # when the switch is back; None: never
    xid: int | None = None
    lost: bool = False
    hang_s: float | None = None
    ecc_uncorrected: int = 0
    ecc_corrected: int = 0
    pcie_replays: int = 0
    recovery_action: str | None = None  # the driver's wish from now on, of recovery.ACTIONS


@dataclass(frozen=True, slots=True)
class Machine:
    """One simulated host. Times are seconds since its epoch; it booted `uptime_s` before that."""

    name: str
    driver_version: str | None  # None: no NVIDIA driver on this host
    cuda_version: int  # as NVML gives it: 12080 is 12.8
    uptime_s: float
    memory_gib: int
    numa_cpus: tuple[str, ...]  # one CPU list per NUMA node
    dcgm_interval_s: float | None  # None: no dcgm-exporter on this host
    kubernetes: bool
    rapl_packages: int = 0  # CPU packages whose energy the host shows; 0: none
    tenants: Mapping[str, int] = field(default_factory=dict)  # user name to uid
    gpus: tuple[Gpu, ...] = ()
    nvswitches: tuple[NvSwitch, ...] = ()
    nics: tuple[NetworkAdapter, ...] = ()
    nvme: tuple[Named, ...] = ()
    nvlinks: tuple[DirectNvLinks, ...] = ()
    hidden_switches: HiddenSwitches | None = None
    fabric: FabricState | None = None
    p2p: str | None = None  # between all GPUs; None: as their model and links have it
    numa_memory_nodes: tuple[int, ...] = ()  # of each GPU's own memory, where it is one
    workloads: tuple[Workload, ...] = ()
    faults: tuple[Fault, ...] = ()

    def pci_devices(self) -> tuple[PciDevice, ...]:
        """Every described PCI device: GPUs, NVSwitches, network adapters, disks."""
        boards = tuple(gpu.device for gpu in self.gpus)
        switches = tuple(switch.device for switch in self.nvswitches)
        return boards + switches + tuple(named.device for named in self.nics + self.nvme)

    def gpu_uuid(self, gpu: int) -> str:
        """The board's `GPU-...` identifier."""
        return f"GPU-{UUID(bytes=digest(self.name, 'gpu', gpu)[:16])}"

    def mig_uuid(self, gpu: int, instance: int) -> str:
        """The `MIG-...` identifier of the instance at a MIG index."""
        return f"MIG-{UUID(bytes=digest(self.name, 'gpu', gpu, 'mig', instance)[:16])}"

    def serial(self, gpu: int) -> str:
        """The board's thirteen-digit serial number."""
        return f"{int.from_bytes(digest(self.name, 'serial', gpu)[:8], 'big') % 10**12:013d}"

    def spread(self, gpu: int, what: str) -> float:
        """A number in [-1, 1] that tells this board from its sisters."""
        return digest(self.name, gpu, what)[0] / 127.5 - 1.0

    def pid(self, workload: Workload, run: int, rank: int) -> int:
        """The process of one run on the device at place `rank` of the workload's list."""
        base = 10_000 + int.from_bytes(digest(self.name, "pid")[:2], "big") % 10_000
        offset = (run * len(workload.devices) + rank) % PIDS_PER_WORKLOAD
        return base + workload.index * PIDS_PER_WORKLOAD + offset

    def switch_is_down(self, switch: int, t: float) -> bool:
        """Whether an NVSwitch, by its place in the description, is out of order at t."""
        return any(
            fault.nvswitch == switch
            and fault.at_s <= t < (float("inf") if fault.until_s is None else fault.until_s)
            for fault in self.faults
        )

    def lost_at(self, gpu: int) -> float:
        """When the board falls off its bus, in seconds; infinity when it never does."""
        return min((f.at_s for f in self.faults if f.lost and f.gpu == gpu), default=float("inf"))
