"""What NVML says of a board that stays as it is: identity, firmware, NVLinks, fabric."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from seedance_obs.identity import canonical_bus_id, canonical_uuid
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.readings import Fabric, NvLink

MAX_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
LINK_ACTIVE = 1  # NVML_FEATURE_ENABLED
NEVER_AGAIN = (nvml.NOT_SUPPORTED, nvml.FUNCTION_NOT_FOUND)
DRIVER_GONE = (nvml.UNINITIALIZED, nvml.DRIVER_NOT_LOADED, nvml.LIB_RM_VERSION_MISMATCH)
_REMOTE_KINDS = {0: "gpu", 1: "ibm_npu", 2: "switch"}
_FACTS = {
    "serial": "nvmlDeviceGetSerial",
    "vbios_version": "nvmlDeviceGetVbiosVersion",
    "minor_number": "nvmlDeviceGetMinorNumber",
    "compute_capability": "nvmlDeviceGetCudaComputeCapability",
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
    mig: bool = False
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
        facts=dict(_facts(library, name)),
        maxima=dict(_maxima(library, name)),
        nvlinks=_nvlinks(library, name),
        fabric=_fabric(library, name),
    )


def optional(library: NvmlLibrary, function: str, device: str | None = None, *args: int) -> Plain:
    """A call's answer, or None where NVML refuses; a lost board or driver still raises."""
    try:
        return library.call(function, device, *args)
    except NvmlError as error:
        if error.code in (nvml.GPU_IS_LOST, *DRIVER_GONE):
            raise
        return None


def integer(answer: Plain) -> int:
    """An answer that must be an integer.

    Raises:
        NvmlError: it is not.
    """
    if not isinstance(answer, int):
        raise NvmlError(nvml.UNKNOWN)
    return answer


def _facts(library: NvmlLibrary, name: str) -> Iterator[tuple[str, str]]:
    for fact, function in _FACTS.items():
        answer = optional(library, function, name)
        if isinstance(answer, list):
            yield fact, ".".join(str(part) for part in answer)
        elif answer is not None:
            yield fact, str(answer)


def _maxima(library: NvmlLibrary, name: str) -> Iterator[tuple[str, float]]:
    for quantity, function in _MAXIMA.items():
        answer = optional(library, function, name)
        if isinstance(answer, int) and QUANTITIES[quantity].admits(answer):
            yield quantity, answer


def _nvlinks(library: NvmlLibrary, name: str) -> tuple[NvLink, ...] | None:
    """The active links; None where NVML does not say, as for every board in MIG mode."""
    links = []
    for number in range(MAX_NVLINKS):
        try:
            active = library.call("nvmlDeviceGetNvLinkState", name, number) == LINK_ACTIVE
        except NvmlError as error:
            if error.code in NEVER_AGAIN and number == 0:
                return None
            if error.code in (nvml.INVALID_ARGUMENT, *NEVER_AGAIN):
                break  # past the board's last link
            if error.code in (nvml.GPU_IS_LOST, *DRIVER_GONE):
                raise
            continue
        if active:
            links.append(_nvlink(library, name, number))
    return tuple(links)


def _nvlink(library: NvmlLibrary, name: str, number: int) -> NvLink:
    kind = optional(library, "nvmlDeviceGetNvLinkRemoteDeviceType", name, number)
    remote = optional(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", name, number)
    return NvLink(
        link=number,
        remote_kind=_REMOTE_KINDS.get(kind, "unknown") if isinstance(kind, int) else "unknown",
        remote_bus_id=(
            canonical_bus_id(str(remote["busId"])) if isinstance(remote, dict) else None
        ),
    )


def _fabric(library: NvmlLibrary, name: str) -> Fabric | None:
    answer = optional(library, "nvmlDeviceGetGpuFabricInfoV", name)
    if not isinstance(answer, dict):
        return None
    return Fabric(
        cluster_uuid=str(answer["clusterUuid"]).lower(),
        clique_id=integer(answer["cliqueId"]),
        state=integer(answer["state"]),
        status=integer(answer["status"]),
    )
