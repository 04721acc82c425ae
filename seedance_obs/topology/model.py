"""The topology of one host: its devices, the paths between them and the wires they run over.

A *path* says how two end devices reach each other: its PCIe level and its NVLinks are kept apart,
because tools that print one hide the other. An *edge* is a wire between two neighbours. A matrix
knows only paths; a live host or a tree knows edges, and paths follow from them.

A value that is not there is `Absent`: UNKNOWN where nobody could tell, UNSUPPORTED where the
device has no such thing. It is never a number in disguise.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from functools import cached_property
from typing import TypeVar


class Absent(Enum):
    """Why there is no value."""

    UNKNOWN = "unknown"
    UNSUPPORTED = "unsupported"


UNKNOWN = Absent.UNKNOWN
UNSUPPORTED = Absent.UNSUPPORTED

Value = TypeVar("Value")


def known(text: str | Absent) -> str | None:
    """The text, or None where there is none."""
    return None if isinstance(text, Absent) or not text else text


def all_known(values: Iterable[Value | Absent]) -> list[Value] | Absent:
    """All the values, or why the first one that is not there is not."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, Absent):
            return value
        found.append(value)
    return found


class PcieLevel(IntEnum):
    """How far apart two devices are on PCIe: nvmlGpuTopologyLevel_t under nvidia-smi's names.

    INTERNAL is one board with two GPUs, which nvidia-smi shows as PIX.
    """

    INTERNAL = 0
    PIX = 10
    PXB = 20
    PHB = 30
    NODE = 40
    SYS = 50


class NvLinkKind(StrEnum):
    """How the NVLinks of a path run.

    DIRECT from device to device, SWITCH through NVSwitches that the host sees, HIDDEN through
    switches that it cannot see (another tray, a hypervisor), C2C chip to chip (Grace).
    """

    DIRECT = "direct"
    SWITCH = "switch"
    HIDDEN = "hidden"
    C2C = "c2c"


class Kind(StrEnum):
    """The kinds of device; an NVLINK_FABRIC stands for the switches that a host cannot see."""

    GPU = "gpu"
    NIC = "nic"
    NVME = "nvme"
    NVSWITCH = "nvswitch"
    NVLINK_FABRIC = "nvlink_fabric"
    PCIE_SWITCH = "pcie_switch"
    PCIE_ROOT = "pcie_root"
    CPU = "cpu"
    NPU = "npu"
    HOST = "host"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PcieLink:
    """A PCIe link as negotiated (`generation`, `width` in lanes) and at its best."""

    generation: int | Absent = UNKNOWN
    width: int | Absent = UNKNOWN
    generation_max: int | Absent = UNKNOWN
    width_max: int | Absent = UNKNOWN


@dataclass(frozen=True, slots=True)
class NvLinkPort:
    """One NVLink port of a GPU.

    `mb_per_second` is what the driver states for one direction (1 MB = 10**6 bytes). `remote` is
    the far end's canonical PCI address, UNKNOWN where the host cannot see it; `remote_port` the
    port on that side, `p2p` whether the link carries traffic between GPUs.
    """

    port: int
    active: bool | Absent = UNKNOWN
    mb_per_second: float | Absent = UNKNOWN
    remote: str | Absent = UNKNOWN
    remote_kind: Kind | Absent = UNKNOWN
    remote_port: int | Absent = UNKNOWN
    p2p: bool | Absent = UNKNOWN


@dataclass(frozen=True, slots=True)
class FabricMembership:
    """What a GPU says of the NVLink fabric it belongs to, in NVML's numbers.

    `state`: 0 not supported, 1 not started, 2 in progress, 3 completed. `status`: an nvmlReturn_t,
    meaningful only when completed. `faults` names the conditions of the health mask that hold.
    """

    state: int
    status: int | Absent = UNKNOWN
    cluster_uuid: str | Absent = UNKNOWN  # 32 lower-case hex digits
    clique_id: int | Absent = UNKNOWN
    healthy: bool | Absent = UNKNOWN
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """A device; `name` is unique on its host.

    On a live host the name is the canonical PCI address, in a matrix it is the column's name.
    `numa` are the NUMA nodes with CPUs that are nearest, `memory_node` the NUMA node that is the
    GPU's own memory (Grace), `cpus` the logical CPUs nearest. `pcie_root` is the root complex
    (`pci0000:40`), `ports` the PCIe ports below it down to the device's parent, `pcie_switch`
    the upstream port of the switch nearest to the device, UNSUPPORTED where there is none.
    """

    name: str
    kind: Kind
    index: int | None = None
    label: str = ""  # what people call it: `mlx5_0`, a product name
    uuid: str | Absent = UNKNOWN
    bus_id: str | Absent = UNKNOWN
    model: str | Absent = UNKNOWN
    numa: frozenset[int] | Absent = UNKNOWN
    memory_node: int | Absent = UNKNOWN
    cpus: frozenset[int] | Absent = UNKNOWN
    pcie_root: str | Absent = UNKNOWN
    pcie_switch: str | Absent = UNKNOWN
    ports: tuple[str, ...] | Absent = UNKNOWN
    pcie: PcieLink = PcieLink()
    nvlinks: tuple[NvLinkPort, ...] | Absent = UNKNOWN
    c2c_links: int | Absent = UNKNOWN  # NVLink-C2C to the CPU of the same module
    c2c_mb_per_second: float | Absent = UNKNOWN  # of all of them together, one way
    c2c_mb_per_second_max: float | Absent = UNKNOWN  # the most that it ever was
    fabric: FabricMembership | Absent = UNKNOWN
    present: bool = True
    mig: bool | Absent = UNKNOWN  # whether MIG is on


@dataclass(frozen=True, slots=True)
class Path:
    """How two devices reach each other; the order of the two carries no meaning.

    `nvlinks` counts the links usable between them (0: none). `p2p` holds NVML's peer-to-peer
    status by capability: `read`, `write`, `nvlink`, `atomics`, `pcie`; `ok` or a reason.
    """

    source: str
    target: str
    pcie: PcieLevel | Absent = UNKNOWN
    nvlinks: int | Absent = UNKNOWN
    nvlink_kind: NvLinkKind | Absent = UNKNOWN
    p2p: Mapping[str, str] = field(default_factory=dict)

    @property
    def link_class(self) -> str | None:
        """`NV<n>`, `C2C`, or nvidia-smi's word for the PCIe level where there are no NVLinks.

        None where the PCIe level is not known, or whether there are NVLinks.
        """
        if self.nvlink_kind is NvLinkKind.C2C:
            return "C2C"
        if isinstance(self.nvlinks, int) and self.nvlinks > 0:
            return f"NV{self.nvlinks}"
        return None if self.nvlinks is UNKNOWN else self.pcie_class

    @property
    def pcie_class(self) -> str | None:
        """nvidia-smi's word for the PCIe level; None where that is not known."""
        if isinstance(self.pcie, Absent):
            return None
        return "PIX" if self.pcie is PcieLevel.INTERNAL else self.pcie.name


@dataclass(frozen=True, slots=True)
class Edge:
    """A wire between neighbours: `kind` is pcie (from the host down), nvlink or c2c.

    Bandwidths are one way, in bytes per second: `nominal` of everything that the edge should
    have, `current` of what is up now at the speed that it has now.
    """

    source: str
    target: str
    kind: str
    links: int = 1
    nominal: float | Absent = UNKNOWN
    current: float | Absent = UNKNOWN


@dataclass(frozen=True)
class Topology:
    """One host. `domains` holds the NVLink domain of each GPU that has one, by device name."""

    devices: tuple[Device, ...] = ()
    paths: tuple[Path, ...] = ()
    edges: tuple[Edge, ...] = ()
    domains: Mapping[str, str] = field(default_factory=dict)
    host: str = ""

    @cached_property
    def by_name(self) -> Mapping[str, Device]:
        """The devices by name."""
        return {device.name: device for device in self.devices}

    @cached_property
    def _paths(self) -> Mapping[frozenset[str], Path]:
        return {frozenset((path.source, path.target)): path for path in self.paths}

    def of_kind(self, *kinds: Kind) -> Iterator[Device]:
        """The devices of some kinds, in order."""
        return (device for device in self.devices if device.kind in kinds)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The GPUs in order, lost ones too, but not those that only a link's far end names."""
        gpus = self.of_kind(Kind.GPU)
        return tuple(gpu for gpu in gpus if gpu.present or isinstance(gpu.uuid, str))

    def path(self, one: str, other: str) -> Path:
        """The path between two devices, whichever comes first; all unknown where nobody told."""
        return self._paths.get(frozenset((one, other)), Path(one, other))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says of a topology; `warnings` name every place that could not be read."""

    topology: Topology
    warnings: tuple[str, ...] = ()
    format: str = ""
