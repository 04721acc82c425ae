"""The machines that the tests ask: those of the simulator, and one that is nothing but traps."""

from collections.abc import Mapping
from pathlib import Path

from seedance_obs.sources.nvml.library import (
    GPU_IS_LOST,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    UNKNOWN,
    NvmlError,
    NvmlLibrary,
    Plain,
)
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.library import SimNvml
from tests.nvml_abi.state_file import Call

TRAPS = "traps"
MESH = "gh200-mesh"  # described beside this file: everything about links, fabric and place
INSUFFICIENT_RESOURCES = 23  # a code the package has no name for
MIDDAY_S = 47.0


class TableLibrary:
    """An NvmlLibrary of fixed outcomes; what is not in the table is NOT_SUPPORTED."""

    def __init__(self, outcomes: Mapping[Call, Plain | NvmlError]) -> None:
        self._outcomes = outcomes

    def call(self, function: str, device: str | None = None, *args: int) -> Plain:
        """The fixed outcome."""
        outcome = self._outcomes.get((function, device, args), NvmlError(NOT_SUPPORTED))
        if isinstance(outcome, NvmlError):
            raise outcome
        return outcome


def _process(pid: int, memory: int | None, instance: int | None = None) -> dict[str, Plain]:
    identity: dict[str, Plain] = {"gpuInstanceId": instance, "computeInstanceId": instance}
    return {"pid": pid, "usedGpuMemory": memory, **identity}


def _field(field_id: int, value: float | None, code: int = 0, *, scope: int = 0) -> Plain:
    return [{"fieldId": field_id, "scopeId": scope, "nvmlReturn": code, "value": value}]


def _traps() -> NvmlLibrary:
    g = "gpu0"
    crowd: list[Plain] = [_process(100 + n, 2**20 * n) for n in range(40)]
    mixed: list[Plain] = [_process(7, None), _process(8, 0, 0), _process(2**22, 2**40, 13)]
    return TableLibrary(
        {
            ("nvmlInit", None, ()): None,
            ("nvmlSystemGetDriverVersion", None, ()): "570.124.06",
            ("nvmlSystemGetNVMLVersion", None, ()): "12.570.124.06",
            ("nvmlSystemGetCudaDriverVersion", None, ()): 12080,
            ("nvmlDeviceGetCount", None, ()): 3,
            ("nvmlDeviceGetUUID", g, ()): "GPU-6e1d5e0f-9c15-5a02-b4ea-a1b2c3d4e5f6",
            ("nvmlDeviceGetName", g, ()): "NVIDIA  A800 = 80GB PCIe",
            ("nvmlDeviceGetSerial", g, ()): NvmlError(NO_PERMISSION),
            ("nvmlDeviceGetPciInfo_v3", g, ()): {
                "busId": "0001F00D:0A:00.0",
                "pciDeviceId": 0xFFFF10DE,
                "pciSubSystemId": 0,
            },
            ("nvmlDeviceGetTotalEnergyConsumption", g, ()): 2**60 + 1,
            ("nvmlDeviceGetCurrentClocksEventReasons", g, ()): 2**63 + 4,
            ("nvmlDeviceGetPowerUsage", g, ()): NvmlError(UNKNOWN),
            ("nvmlDeviceGetFanSpeed", g, ()): NvmlError(INSUFFICIENT_RESOURCES),
            ("nvmlDeviceGetTemperature", g, (0,)): 31,
            ("nvmlDeviceGetComputeRunningProcesses", g, ()): mixed,
            ("nvmlDeviceGetGraphicsRunningProcesses", g, ()): crowd,
            ("nvmlDeviceGetFieldValues", g, (82,)): _field(82, None, NOT_SUPPORTED),
            ("nvmlDeviceGetFieldValues", g, (90,)): _field(90, -3.25),
            ("nvmlDeviceGetNvLinkState", g, (0,)): 1,
            ("nvmlDeviceGetNvLinkRemoteDeviceType", g, (0,)): 255,
            ("nvmlDeviceGetNvLinkRemotePciInfo_v2", g, (0,)): {"busId": ""},
            ("nvmlDeviceGetNvLinkVersion", g, (0,)): 4_000_000_000,
            ("nvmlDeviceGetNvLinkCapability", g, (0, 0)): 1,
            ("nvmlDeviceGetFieldValues", g, (165 | 2 << 32,)): _field(165, 2, scope=2),
            ("nvmlDeviceGetFieldValues", g, (171 | 9 << 32,)): _field(171, None, UNKNOWN, scope=9),
            ("nvmlDeviceGetTopologyCommonAncestor", g, (1,)): NvmlError(GPU_IS_LOST),
            ("nvmlDeviceGetTopologyCommonAncestor", g, (2,)): 45,
            ("nvmlDeviceGetP2PStatus", g, (2, 0)): 6,
            ("nvmlDeviceGetMemoryAffinity", g, (16, 0)): [0] * 15 + [2**63],
            ("nvmlDeviceGetCpuAffinity", g, (128,)): [],
            ("nvmlDeviceGetMaxMigDeviceCount", g, ()): 7,
            ("nvmlDeviceGetMigDeviceHandleByIndex", g, (0,)): NvmlError(NOT_FOUND),
            ("nvmlDeviceGetMigDeviceHandleByIndex", g, (6,)): "gpu0/mig6",
            ("nvmlDeviceGetUUID", "gpu0/mig6", ()): "MIG-0c757cd7-e942-5726-a0b8-0e8fb7067135",
            ("nvmlDeviceGetGpuInstanceId", "gpu0/mig6", ()): 13,
            ("nvmlDeviceGetUUID", "gpu1", ()): NvmlError(GPU_IS_LOST),
        }
    )


def machine_library(name: str, *, at_s: float = MIDDAY_S) -> NvmlLibrary:
    """A machine at one moment of its life, initialised unless it has no driver."""
    if name == TRAPS:
        return _traps()
    described = Path(__file__).with_name(f"{name}.yaml") if name == MESH else name
    library = SimNvml(load_machine(described), lambda: at_s)
    if library.machine.driver_version is not None:
        library.call("nvmlInit")
    return library


MACHINES = (*machine_names(), MESH, TRAPS)
WITH_GPUS = tuple(name for name in machine_names() if name != "no-gpu")
