"""What NVML says of a whole board, one small function per call, in NVML's own units."""

from collections.abc import Callable, Mapping

from seedance_obs.sources.nvml.library import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    NvmlError,
    Plain,
)
from seedance_obs.sources.sim.models import MIB
from seedance_obs.sources.sim.physics import Board, Process

Answer = Callable[[Board, float, tuple[int, ...]], Plain]

NVIDIA_VENDOR = 0x10DE
UTILIZATION_SAMPLE_US = 167_000
BARE_METAL, PASSED_THROUGH = 0, 1  # nvmlGpuVirtualizationMode_t

BOARD_UNSUPPORTED_IN_MIG_MODE = frozenset(
    {
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetEncoderUtilization",
        "nvmlDeviceGetDecoderUtilization",
    }
)


def argument(args: tuple[int, ...], position: int, allowed: range) -> int:
    """One integer argument of a call.

    Raises:
        NvmlError: INVALID_ARGUMENT when it is missing or outside `allowed`.
    """
    if position >= len(args) or args[position] not in allowed:
        raise NvmlError(INVALID_ARGUMENT)
    return args[position]


def percent(ratio: float) -> int:
    """A ratio as NVML's whole percent."""
    return round(100 * min(1.0, ratio))


def process_list(processes: list[Process]) -> Plain:
    """Processes as NVML lists them, the pids in order."""
    return [
        {
            "pid": process.pid,
            "usedGpuMemory": process.workload.memory_mib * MIB,
            "gpuInstanceId": None if process.instance is None else process.instance.gpu_instance,
            "computeInstanceId": None if process.instance is None else 0,
        }
        for process in sorted(processes, key=lambda process: process.pid)
    ]


def _pci_info(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    model = board.model
    return {
        "busId": padded_bus_id(board.gpu.device.pci),
        "pciDeviceId": model.device_id << 16 | NVIDIA_VENDOR,
        "pciSubSystemId": model.subsystem_id << 16 | NVIDIA_VENDOR,
    }


def padded_bus_id(pci: str) -> str:
    """A canonical address as NVML writes it: eight upper-case digits of domain."""
    domain, _, rest = pci.partition(":")
    return f"{int(domain, 16):08X}:{rest.upper()}"


def _utilization(board: Board, t: float, _args: tuple[int, ...]) -> Plain:
    return {
        "gpu": percent(board.busy_ratio(t)),
        "memory": percent(board.busy_ratio(t, of="memory_busy")),
    }


def _memory_v2(board: Board, t: float, _args: tuple[int, ...]) -> Plain:
    total, reserved, used = _memory_mib(board, t)
    free = total - reserved - used
    return {
        "total": total * MIB,
        "reserved": reserved * MIB,
        "free": free * MIB,
        "used": used * MIB,
    }


def _memory_v1(board: Board, t: float, _args: tuple[int, ...]) -> Plain:
    total, reserved, used = _memory_mib(board, t)
    used += reserved
    return {"total": total * MIB, "free": (total - used) * MIB, "used": used * MIB}


def _memory_mib(board: Board, t: float) -> tuple[int, int, int]:
    return board.model.memory_mib, board.model.reserved_mib, board.memory_used_mib(t)


def _clock(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    kind = argument(args, 0, range(4))
    if kind in (0, 1):
        return board.sm_mhz(t)
    return board.clock_mhz(t, board.model.memory_mhz if kind == 2 else board.model.video_mhz)


def _clock_max(board: Board, _t: float, args: tuple[int, ...]) -> Plain:
    model = board.model
    clocks = (model.sm_mhz, model.sm_mhz, model.memory_mhz, model.video_mhz)
    return clocks[argument(args, 0, range(4))][1]


def _temperature(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    argument(args, 0, range(1))
    return round(board.temperature_celsius(t))


def _ecc(board: Board, t: float, args: tuple[int, ...]) -> Plain:
    uncorrected = argument(args, 0, range(2)) == 1
    argument(args, 1, range(2))
    return board.count("ecc_uncorrected" if uncorrected else "ecc_corrected", t)


def _remapped_rows(board: Board, t: float, _args: tuple[int, ...]) -> Plain:
    uncorrected = board.count("ecc_uncorrected", t)
    return [0, uncorrected, int(uncorrected > 0), 0]


def _performance_state(board: Board, t: float, _args: tuple[int, ...]) -> Plain:
    return 0 if board.processes(t) else board.model.idle_performance_state


def _mig_mode(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    enabled = int(bool(board.gpu.mig))
    return [enabled, enabled]


def _mig_handle(board: Board, _t: float, args: tuple[int, ...]) -> Plain:
    index = argument(args, 0, range(board.model.mig_slices))
    if index >= len(board.gpu.mig):
        raise NvmlError(NOT_FOUND)
    return f"gpu{board.gpu.index}/mig{index}"


def _mig_capacity(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    return board.model.mig_slices if board.model.mig_profiles else 0


def _virtualization(board: Board, _t: float, _args: tuple[int, ...]) -> Plain:
    flat = len(board.gpu.device.path) == 1  # no bridge above it, as on a hypervisor's bus
    return PASSED_THROUGH if flat else BARE_METAL


BOARD_ANSWERS: Mapping[str, Answer] = {
    "nvmlDeviceGetUUID": lambda b, _t, _a: b.machine.gpu_uuid(b.gpu.index),
    "nvmlDeviceGetName": lambda b, _t, _a: b.model.product,
    "nvmlDeviceGetSerial": lambda b, _t, _a: b.machine.serial(b.gpu.index),
    "nvmlDeviceGetMinorNumber": lambda b, _t, _a: b.gpu.index,
    "nvmlDeviceGetVbiosVersion": lambda b, _t, _a: b.model.vbios_version,
    "nvmlDeviceGetPciInfo_v3": _pci_info,
    "nvmlDeviceGetCudaComputeCapability": lambda b, _t, _a: list(b.model.compute_capability),
    "nvmlDeviceGetMaxPcieLinkGeneration": lambda b, _t, _a: b.model.pcie_generation,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": lambda b, _t, _a: b.model.pcie_generation,
    "nvmlDeviceGetMaxPcieLinkWidth": lambda b, _t, _a: b.model.pcie_width,
    "nvmlDeviceGetCurrPcieLinkGeneration": lambda b, t, _a: b.pcie_generation(t),
    "nvmlDeviceGetCurrPcieLinkWidth": lambda b, _t, _a: b.model.pcie_width,
    "nvmlDeviceGetPcieReplayCounter": lambda b, t, _a: b.count("pcie_replays", t),
    "nvmlDeviceGetUtilizationRates": _utilization,
    "nvmlDeviceGetEncoderUtilization": lambda b, t, _a: [
        percent(b.busy_ratio(t, of="encoder")),
        UTILIZATION_SAMPLE_US,
    ],
    "nvmlDeviceGetDecoderUtilization": lambda b, t, _a: [
        percent(b.busy_ratio(t, of="decoder")),
        UTILIZATION_SAMPLE_US,
    ],
    "nvmlDeviceGetMemoryInfo": _memory_v1,
    "nvmlDeviceGetMemoryInfo_v2": _memory_v2,
    "nvmlDeviceGetPowerUsage": lambda b, t, _a: round(1000 * b.power_watts(t)),
    "nvmlDeviceGetEnforcedPowerLimit": lambda b, _t, _a: round(1000 * b.model.limit_watts),
    "nvmlDeviceGetTotalEnergyConsumption": lambda b, t, _a: int(1000 * b.energy_joules(t)),
    "nvmlDeviceGetTemperature": _temperature,
    "nvmlDeviceGetClockInfo": _clock,
    "nvmlDeviceGetMaxClockInfo": _clock_max,
    "nvmlDeviceGetMemoryBusWidth": lambda b, _t, _a: b.model.memory_bus_bits,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda b, t, _a: b.event_reasons(t),
    "nvmlDeviceGetPerformanceState": _performance_state,
    "nvmlDeviceGetFanSpeed": lambda b, t, _a: b.fan_percent(t),
    "nvmlDeviceGetTotalEccErrors": _ecc,
    "nvmlDeviceGetRemappedRows": _remapped_rows,
    "nvmlDeviceGetMigMode": _mig_mode,
    "nvmlDeviceGetMaxMigDeviceCount": _mig_capacity,
    "nvmlDeviceGetMigDeviceHandleByIndex": _mig_handle,
    "nvmlDeviceGetVirtualizationMode": _virtualization,
    "nvmlDeviceGetComputeRunningProcesses": lambda b, t, _a: process_list(b.listed(t)),
    "nvmlDeviceGetGraphicsRunningProcesses": lambda _b, _t, _a: [],
}
