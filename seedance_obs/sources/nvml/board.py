"""What NVML says of a board that stays as it is: identity, firmware, place, NVLinks, fabric."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from seedance_obs.identity import canonical_bus_id, canonical_uuid
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.asking import integer, number, optional
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.nvlinks import read_nvlinks
from seedance_obs.sources.nvml.place import read_place
from seedance_obs.sources.readings import Fabric, GpuPlace, NvLink

_HOST_VGPU = 3  # NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU
_MEMORY_CLOCK = 2  # NVML_CLOCK_MEM
_FACTS: dict[str, tuple[str, tuple[int, ...]]] = {
    "serial": ("nvmlDeviceGetSerial", ()),
    "vbios_version": ("nvmlDeviceGetVbiosVersion", ()),
    "minor_number": ("nvmlDeviceGetMinorNumber", ()),
    "compute_capability": ("nvmlDeviceGetCudaComputeCapability", ()),
    "memory_bus_width_bits": ("nvmlDeviceGetMemoryBusWidth", ()),
    "pcie_generation_board": ("nvmlDeviceGetGpuMaxPcieLinkGeneration", ()),
    "memory_clock_max_mhz": ("nvmlDeviceGetMaxClockInfo", (_MEMORY_CLOCK,)),
}
_PLATFORM_FACTS = {
    "chassis_serial": "chassisSerialNumber",
    "slot_number": "slotNumber",
    "tray_index": "trayIndex",
    "host_id": "hostId",
    "peer_type": "peerType",
    "module_id": "moduleId",
}
_MAXIMA = {
    "pcie_generation_max": "nvmlDeviceGetMaxPcieLinkGeneration",
    "pcie_width_max": "nvmlDeviceGetMaxPcieLinkWidth",
}


@dataclass(slots=True)
class Board:
    """What is remembered of one board between passes."""

    name: str  # gpu0, as the library boundary calls it
    uuid: str
    pci_bus_id: str | None
    model: str | None
    facts: dict[str, str]
    maxima: dict[str, float]
    nvlinks: tuple[NvLink, ...] | None = None
    fabric: Fabric | None = None
    place: GpuPlace | None = None
    hosts_vgpus: bool = False
    mig: bool = False
    mig_slices: int | None = None  # of the whole board, once asked for
    slices: dict[tuple[str, str | None], int | None] = field(default_factory=dict)
    unsupported: set[tuple[str, str | None, tuple[int, ...]]] = field(default_factory=set)


def describe(library: NvmlLibrary, index: int) -> Board:
    """Everything lasting about the board at an NVML index.

    Raises:
        NvmlError: the board is lost, has no UUID, or the driver is gone.
    """
    name = f"gpu{index}"
    uuid = canonical_uuid(str(library.call("nvmlDeviceGetUUID", name)))
    if uuid is None:
        raise NvmlError(nvml.NOT_FOUND)
    pci = optional(library, "nvmlDeviceGetPciInfo_v3", name)
    model = optional(library, "nvmlDeviceGetName", name)
    return Board(
        name=name,
        uuid=uuid,
        pci_bus_id=canonical_bus_id(str(pci["busId"])) if isinstance(pci, dict) else None,
        model=model if isinstance(model, str) else None,
        facts={**dict(_facts(library, name)), **dict(_platform(library, name))},
        maxima=dict(_maxima(library, name)),
        nvlinks=read_nvlinks(library, name),
        fabric=_fabric(library, name),
        place=read_place(library, name),
        hosts_vgpus=number(library, "nvmlDeviceGetVirtualizationMode", name) == _HOST_VGPU,
    )


def _facts(library: NvmlLibrary, name: str) -> Iterator[tuple[str, str]]:
    for fact, (function, args) in _FACTS.items():
        answer = optional(library, function, name, *args)
        if isinstance(answer, list):
            yield fact, ".".join(str(part) for part in answer)
        elif answer is not None:
            yield fact, str(answer)


def _platform(library: NvmlLibrary, name: str) -> Iterator[tuple[str, str]]:
    """Where in its rack the board is, which no driver before Blackwell knows."""
    answer = optional(library, "nvmlDeviceGetPlatformInfo", name)
    for fact, member in _PLATFORM_FACTS.items():
        value = answer.get(member) if isinstance(answer, dict) else None
        if value not in (None, ""):
            yield fact, str(value)


def _maxima(library: NvmlLibrary, name: str) -> Iterator[tuple[str, float]]:
    for quantity, function in _MAXIMA.items():
        answer = optional(library, function, name)
        if isinstance(answer, int) and QUANTITIES[quantity].admits(answer):
            yield quantity, answer


def _fabric(library: NvmlLibrary, name: str) -> Fabric | None:
    answer = optional(library, "nvmlDeviceGetGpuFabricInfoV", name)
    if not isinstance(answer, dict):
        return None
    return Fabric(
        cluster_uuid=str(answer["clusterUuid"]).lower(),
        clique_id=integer(answer["cliqueId"]),
        state=integer(answer["state"]),
        status=integer(answer["status"]),
        health_mask=_known(answer.get("healthMask")),
        health_summary=_known(answer.get("healthSummary")),
    )


def _known(value: Plain) -> int | None:
    return value if isinstance(value, int) else None
