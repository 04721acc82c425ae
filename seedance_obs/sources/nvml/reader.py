"""One pass over all GPUs through NVML: every call optional, every fault kept to its device.

Knows which answers mean "never ask again" (NOT_SUPPORTED, until the device's MIG mode changes),
which mean that one GPU is gone, and which mean that the driver itself went away.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.identity import canonical_bus_id, canonical_uuid
from seedance_obs.sources.nvml import library as nvml
from seedance_obs.sources.nvml.library import NvmlError, NvmlLibrary, Plain
from seedance_obs.sources.nvml.reads import BOARD_READS, MEMORY_READS, Read
from seedance_obs.sources.readings import (
    Fabric,
    GpuProcess,
    GpuReadings,
    MigReadings,
    NvLink,
    SourceSnapshot,
    Xid,
)

LOG = logging.getLogger(__name__)
STATIC_PASSES = 60
MAX_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
MAX_EVENTS = 256
_NEVER_AGAIN = (nvml.NOT_SUPPORTED, nvml.FUNCTION_NOT_FOUND)
_DRIVER_GONE = (nvml.UNINITIALIZED, nvml.DRIVER_NOT_LOADED, nvml.LIB_RM_VERSION_MISMATCH)
_MIG_PROFILE = re.compile(r"MIG (\S+)$")
_REMOTE_KINDS = {0: "gpu", 1: "ibm_npu", 2: "switch"}

ADVICE = {
    nvml.LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not installed: install the NVIDIA driver here, "
    "or mount its libraries into the container",
    nvml.DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded: see `dmesg`, or load it with "
    "`modprobe nvidia`",
    nvml.LIB_RM_VERSION_MISMATCH: "the driver was upgraded under its library: reboot, or restart "
    "this exporter once both match",
    nvml.NO_PERMISSION: "access to /dev/nvidia* was refused: check the device permissions",
}


@dataclass(slots=True)
class _Device:
    """What is remembered of one board between passes."""

    name: str
    uuid: str
    pci_bus_id: str | None
    model: str | None
    facts: dict[str, str]
    fixed: dict[str, float]
    nvlinks: tuple[NvLink, ...] = ()
    fabric: Fabric | None = None
    unsupported: set[tuple[str, str | None, tuple[int, ...]]] = field(default_factory=set)
    mig: bool = False


class NvmlReader:
    """Reads a whole node through one NVML library; `read` is one pass."""

    def __init__(
        self, library: NvmlLibrary, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._library = library
        self._monotonic = monotonic
        self._devices: dict[int, _Device] = {}
        self._count = -1
        self._passes = 0
        self._versions: dict[str, str] = {}
        self._dropped: Counter[str] = Counter()

    def start(self) -> None:
        """Initialise the driver.

        Raises:
            SourceUnavailableError: it cannot be used; the message says what to do.
        """
        try:
            self._library.call("nvmlInit")
        except NvmlError as error:
            raise _unavailable(error) from error
        self._versions = dict(self._read_versions())

    def stop(self) -> None:
        """Let go of the driver."""
        try:
            self._library.call("nvmlShutdown")
        except NvmlError as error:
            LOG.debug("event=nvml_shutdown error=%s", error.name)

    def read(self) -> SourceSnapshot:
        """Every reading of every GPU that answers.

        Raises:
            SourceUnavailableError: the driver as a whole does not answer.
        """
        self._dropped = Counter()
        try:
            self._look_for_devices()
        except NvmlError as error:
            raise _unavailable(error) from error
        gpus = []
        for index in range(self._count):
            try:
                gpus.append(self._read_gpu(index))
            except NvmlError as error:
                if error.code in _DRIVER_GONE:
                    raise _unavailable(error) from error
                self._devices.pop(index, None)
                self._dropped[error.name] += 1
        xids = tuple(self._drain_events())
        return SourceSnapshot(
            source="nvml",
            taken_at=self._monotonic(),
            gpus=tuple(gpus),
            xids=xids,
            versions=self._versions,
            dropped=dict(self._dropped),
        )

    def _read_versions(self) -> Iterator[tuple[str, str]]:
        for key, function in (
            ("driver_version", "nvmlSystemGetDriverVersion"),
            ("nvml_version", "nvmlSystemGetNVMLVersion"),
        ):
            answer = self._optional(function)
            if isinstance(answer, str):
                yield key, answer
        cuda = self._optional("nvmlSystemGetCudaDriverVersion")
        if isinstance(cuda, int) and cuda > 0:
            yield "cuda_version", f"{cuda // 1000}.{cuda % 1000 // 10}"

    def _look_for_devices(self) -> None:
        count = _integer(self._library.call("nvmlDeviceGetCount"))
        if self._count not in (-1, count):
            # Indices mean other boards now, and handles of the old ones must not be kept.
            self._library.call("nvmlShutdown")
            self._library.call("nvmlInit")
            count = _integer(self._library.call("nvmlDeviceGetCount"))
            self._devices.clear()
        if self._passes % STATIC_PASSES == 0:
            self._devices.clear()
        self._passes += 1
        self._count = count

    def _read_gpu(self, index: int) -> GpuReadings:
        device = self._devices.get(index)
        if device is None:
            device = self._devices[index] = self._describe(index)
        values = dict(device.fixed)
        self._read_mig_mode(device, values)
        values.update(self._read_values(device, device.name, BOARD_READS))
        return GpuReadings(
            uuid=device.uuid,
            index=index,
            pci_bus_id=device.pci_bus_id,
            model=device.model,
            values=values,
            facts=device.facts,
            mig=tuple(self._read_mig_devices(device)) if device.mig else (),
            nvlinks=device.nvlinks,
            fabric=device.fabric,
            processes=self._read_processes(device),
        )

    def _describe(self, index: int) -> _Device:
        name = f"gpu{index}"
        uuid = canonical_uuid(str(self._library.call("nvmlDeviceGetUUID", name)))
        if uuid is None:
            raise NvmlError(nvml.NOT_FOUND)
        pci = self._optional("nvmlDeviceGetPciInfo_v3", name)
        model = self._optional("nvmlDeviceGetName", name)
        fixed = {}
        for quantity, function in (
            ("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
            ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
        ):
            answer = self._optional(function, name)
            if isinstance(answer, int) and QUANTITIES[quantity].admits(answer):
                fixed[quantity] = float(answer)
        return _Device(
            name=name,
            uuid=uuid,
            pci_bus_id=canonical_bus_id(str(pci["busId"])) if isinstance(pci, dict) else None,
            model=model if isinstance(model, str) else None,
            facts=self._read_facts(name),
            fixed=fixed,
            nvlinks=tuple(self._read_nvlinks(name)),
            fabric=self._read_fabric(name),
        )

    def _read_facts(self, name: str) -> dict[str, str]:
        facts = {}
        for key, function in (
            ("serial", "nvmlDeviceGetSerial"),
            ("vbios_version", "nvmlDeviceGetVbiosVersion"),
            ("minor_number", "nvmlDeviceGetMinorNumber"),
            ("compute_capability", "nvmlDeviceGetCudaComputeCapability"),
        ):
            answer = self._optional(function, name)
            if isinstance(answer, list):
                facts[key] = ".".join(str(part) for part in answer)
            elif answer is not None:
                facts[key] = str(answer)
        return facts

    def _read_nvlinks(self, name: str) -> Iterator[NvLink]:
        for link in range(MAX_NVLINKS):
            try:
                if self._library.call("nvmlDeviceGetNvLinkState", name, link) != 1:
                    continue
            except NvmlError as error:
                # NOT_SUPPORTED: no NVLink at all; INVALID_ARGUMENT: past the device's last link.
                if error.code in (nvml.INVALID_ARGUMENT, *_NEVER_AGAIN):
                    return
                continue
            kind = self._optional("nvmlDeviceGetNvLinkRemoteDeviceType", name, link)
            remote = self._optional("nvmlDeviceGetNvLinkRemotePciInfo_v2", name, link)
            bus_id = canonical_bus_id(str(remote["busId"])) if isinstance(remote, dict) else None
            remote_kind = _REMOTE_KINDS.get(kind, "unknown") if isinstance(kind, int) else "unknown"
            yield NvLink(link=link, remote_kind=remote_kind, remote_bus_id=bus_id)

    def _read_fabric(self, name: str) -> Fabric | None:
        answer = self._optional("nvmlDeviceGetGpuFabricInfoV", name)
        if not isinstance(answer, dict):
            return None
        return Fabric(
            cluster_uuid=str(answer["clusterUuid"]).lower(),
            clique_id=_integer(answer["cliqueId"]),
            state=_integer(answer["state"]),
            status=_integer(answer["status"]),
        )

    def _read_mig_mode(self, device: _Device, values: dict[str, float]) -> None:
        mode = self._call_remembering(device, device.name, "nvmlDeviceGetMigMode", ())
        enabled = isinstance(mode, list) and mode[0] == 1
        if isinstance(mode, list):
            values["mig_enabled"] = float(enabled)
        if enabled != device.mig:
            device.mig = enabled
            device.unsupported.clear()

    def _read_mig_devices(self, device: _Device) -> Iterator[MigReadings]:
        slots = self._call_remembering(device, device.name, "nvmlDeviceGetMaxMigDeviceCount", ())
        for slot in range(slots if isinstance(slots, int) else 0):
            name = self._optional("nvmlDeviceGetMigDeviceHandleByIndex", device.name, slot)
            if not isinstance(name, str):
                continue
            instance = self._optional("nvmlDeviceGetGpuInstanceId", name)
            if not isinstance(instance, int):
                continue
            compute = self._optional("nvmlDeviceGetComputeInstanceId", name)
            uuid = self._optional("nvmlDeviceGetUUID", name)
            profile = _MIG_PROFILE.search(str(self._optional("nvmlDeviceGetName", name)))
            yield MigReadings(
                gpu_instance=instance,
                compute_instance=compute if isinstance(compute, int) else None,
                uuid=canonical_uuid(uuid) if isinstance(uuid, str) else None,
                profile=profile.group(1) if profile else None,
                values=dict(self._read_values(device, name, MEMORY_READS)),
            )

    def _read_processes(self, device: _Device) -> tuple[GpuProcess, ...] | None:
        found: dict[int, GpuProcess] = {}
        listed = False
        for kind in ("Compute", "Graphics"):
            function = f"nvmlDeviceGet{kind}RunningProcesses"
            answer = self._call_remembering(device, device.name, function, ())
            listed = listed or isinstance(answer, list)
            for entry in answer if isinstance(answer, list) else ():
                if isinstance(entry, dict):
                    process = _process(entry, graphics=kind == "Graphics")
                    found.setdefault(process.pid, process)
        return tuple(found[pid] for pid in sorted(found)) if listed else None

    def _read_values(
        self, device: _Device, name: str, reads: tuple[Read, ...]
    ) -> Iterator[tuple[str, float]]:
        taken: set[str] = set()
        for read in reads:
            if taken.issuperset(read.quantities):
                continue  # an older spelling of what a newer call has already answered
            answer = self._call_remembering(device, name, read.function, read.args)
            if answer is None:
                continue
            for quantity, value in read.take(answer):
                if QUANTITIES[quantity].admits(value):
                    taken.add(quantity)
                    yield quantity, value
                else:
                    self._dropped["out_of_range"] += 1

    def _call_remembering(
        self, device: _Device, name: str, function: str, args: tuple[int, ...]
    ) -> Plain:
        key = (function, name, args)
        if key in device.unsupported:
            return None
        try:
            return self._library.call(function, name, *args)
        except NvmlError as error:
            if error.code in _NEVER_AGAIN:
                device.unsupported.add(key)
            elif error.code in (nvml.GPU_IS_LOST, nvml.RESET_REQUIRED, *_DRIVER_GONE):
                raise
            else:
                self._dropped[error.name] += 1
            return None

    def _optional(self, function: str, device: str | None = None, *args: int) -> Plain:
        try:
            return self._library.call(function, device, *args)
        except NvmlError as error:
            if error.code in (nvml.GPU_IS_LOST, *_DRIVER_GONE):
                raise
            return None

    def _drain_events(self) -> Iterator[Xid]:
        uuids = {device.name: device.uuid for device in self._devices.values()}
        for _ in range(MAX_EVENTS):
            event = self._next_event()
            if not isinstance(event, dict):
                return
            uuid = uuids.get(str(event["device"]))
            if uuid is not None:
                yield Xid(uuid=uuid, code=_integer(event["xid"]))

    def _next_event(self) -> Plain:
        try:
            return self._library.call("nvmlEventSetWait")
        except NvmlError as error:
            if error.code not in (nvml.TIMEOUT, *_NEVER_AGAIN):
                self._dropped[f"event_{error.name}"] += 1
            return None


def _process(entry: dict[str, Plain], *, graphics: bool) -> GpuProcess:
    memory, instance = entry.get("usedGpuMemory"), entry.get("gpuInstanceId")
    return GpuProcess(
        pid=_integer(entry["pid"]),
        memory_bytes=memory if isinstance(memory, int) else None,
        gpu_instance=instance if isinstance(instance, int) else None,
        graphics=graphics,
    )


def _integer(answer: Plain) -> int:
    if not isinstance(answer, int):
        raise NvmlError(nvml.UNKNOWN)
    return answer


def _unavailable(error: NvmlError) -> SourceUnavailableError:
    advice = ADVICE.get(error.code, "see the driver's messages in `dmesg`")
    return SourceUnavailableError(f"NVML is not available: {error.name}; {advice}")
