"""The machines that the tests ask: those of the simulator, and one that is nothing but traps."""

from collections.abc import Mapping
from functools import cache
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
from seedance_obs.sources.sim.machine import Machine
from tests.nvml_abi.state_file import VGPU_CALLS, Call

TRAPS = "traps"
MESH = "gh200-mesh"  # everything about links, fabric and place
QUARTERS = "a30-mig"  # a board of four slices, not of seven
DESCRIBED_HERE = (MESH, QUARTERS)
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


def _sample(owner: str, number: int, stamp: int, *percents: int) -> Plain:
    names = ("smUtil", "memUtil", "encUtil", "decUtil")
    return {owner: number, "timeStamp": stamp} | dict(zip(names, percents, strict=True))


def _use(gpu: str) -> dict[Call, Plain | NvmlError]:
    """More samples than a reader has room for at first, garbage among them; three vGPUs."""
    crowd = [_sample("pid", 100 + n, 10**15 + n, n % 101, 0, 0, 1) for n in range(300)]
    garbage = [_sample("pid", 0, 0, 0, 0, 0, 0), _sample("pid", 7, 10**15, 2**32 - 1, 3, 0, 9)]
    vgpu = "vgpuInstance"
    shares = [
        _sample(vgpu, 3001, 10**15, 60, 30, 0, 0),
        _sample(vgpu, 3002, 10**15 + 9, 5, 2, 1, 1),
    ]
    process, shared = "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetVgpuUtilization"
    found: dict[Call, Plain | NvmlError] = {
        (process, gpu, (0,)): [*garbage, *crowd],
        (process, gpu, (10**15 + 149,)): crowd[150:],
        (process, gpu, (10**15 + 299,)): NvmlError(NOT_FOUND),
        (shared, gpu, (0,)): shares,
        (shared, gpu, (10**15 + 9,)): NvmlError(NOT_FOUND),
        ("nvmlDeviceGetVirtualizationMode", gpu, ()): 3,
        ("nvmlDeviceGetActiveVgpus", gpu, ()): [3001, 3002, 2**32 - 2],
    }
    vms = {3001: "a1b2c3d4-0000-4000-8000-00000000c0de", 3002: "17"}
    for number, vm in vms.items():
        found["nvmlVgpuInstanceGetUUID", None, (number,)] = f"c0ffee00-0000-4000-8000-{number:012d}"
        found["nvmlVgpuInstanceGetVmID", None, (number,)] = vm
        found["nvmlVgpuInstanceGetFbUsage", None, (number,)] = 2**33 + number
    for function in VGPU_CALLS:
        found[function, None, (2**32 - 2,)] = NvmlError(NOT_FOUND)
    return found


def _traps() -> NvmlLibrary:
    g = "gpu0"
    crowd: list[Plain] = [_process(100 + n, 2**20 * n) for n in range(40)]
    mixed: list[Plain] = [_process(7, None), _process(8, 0, 0), _process(2**22, 2**40, 13)]
    return TableLibrary(
        {
            **_use(g),
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
    library = SimNvml(_described(name), lambda: at_s)
    if library.machine.driver_version is not None:
        library.call("nvmlInit")
    return library


@cache
def _described(name: str) -> Machine:
    return load_machine(
        Path(__file__).with_name(f"{name}.yaml") if name in DESCRIBED_HERE else name
    )


MACHINES = (*machine_names(), *DESCRIBED_HERE, TRAPS)
WITH_GPUS = tuple(name for name in machine_names() if name != "no-gpu")
