"""The rows of dcgm-exporter's default CSV, and some it offers, over a simulated board."""

from collections.abc import Callable
from dataclasses import dataclass

from seedance_obs.sources.sim.board_answers import percent
from seedance_obs.sources.sim.physics import Board

Read = Callable[[Board, float, int | None], float | None]  # the last: MIG index of the row


@dataclass(frozen=True, slots=True)
class PageField:
    """One family: what its HELP and TYPE lines say, and its value on a board or MIG instance.

    An int prints as an integer and a float with six decimals; None is no row.
    """

    name: str
    kind: str
    help: str
    read: Read
    is_xid: bool = False


def _whole(read: Callable[[Board, float], float]) -> Read:
    """A value that DCGM has for boards in one piece only."""
    return lambda board, t, mig: read(board, t) if mig is None else None


def _board(read: Callable[[Board, float], float | None]) -> Read:
    """A value of the board, which DCGM repeats on every row of it."""
    return lambda board, t, _mig: read(board, t)


def _active(part: str | None) -> Read:
    """A profiling ratio, which consumer boards do not have."""

    def read(board: Board, t: float, mig: int | None) -> float | None:
        return board.busy_ratio(t, mig=mig, of=part) if _profiled(board) else None

    return read


def _traffic(part: str) -> Read:
    def read(board: Board, t: float, mig: int | None) -> float | None:
        known = mig is None and _profiled(board)
        return round(board.busy_ratio(t, of=part)) if known else None

    return read


def _profiled(board: Board) -> bool:
    return "nvmlDeviceGetTotalEccErrors" not in board.model.unsupported


def _remapper(read: Callable[[Board, float], float]) -> Read:
    def rows(board: Board, t: float, mig: int | None) -> float | None:
        missing = mig is not None or "nvmlDeviceGetRemappedRows" in board.model.unsupported
        return None if missing else read(board, t)

    return rows


def _memory_total(board: Board, mig: int | None) -> int:
    return board.model.memory_mib if mig is None else board.gpu.profile(mig).memory_mib


def _memory_reserved(board: Board, _t: float, mig: int | None) -> int:
    return board.model.reserved_mib if mig is None else 0


def _memory_used(board: Board, t: float, mig: int | None) -> int:
    return board.memory_used_mib(t, mig=mig)


def _memory_free(board: Board, t: float, mig: int | None) -> int:
    taken = _memory_reserved(board, t, mig) + _memory_used(board, t, mig)
    return _memory_total(board, mig) - taken


def _memory_temperature(board: Board, t: float) -> int | None:
    return round(board.memory_celsius(t)) if board.model.memory_sensor else None


def _last_xid(board: Board, t: float) -> int:
    happened = [
        (fault.at_s, fault.xid)
        for fault in board.machine.faults
        if fault.gpu == board.gpu.index and fault.xid is not None and fault.at_s <= t
    ]
    return max(happened)[1] if happened else 0


def _nvlink_mbps(board: Board, t: float) -> int:
    return int(board.busy_ratio(t, of="nvlink") / 1e6)


DEV, PROF = "DCGM_FI_DEV_", "DCGM_FI_PROF_"

FIELDS = (
    PageField(
        f"{DEV}SM_CLOCK",
        "gauge",
        "SM clock frequency (in MHz).",
        _board(lambda b, t: b.sm_mhz(t)),
    ),
    PageField(
        f"{DEV}MEM_CLOCK",
        "gauge",
        "Memory clock frequency (in MHz).",
        _board(lambda b, t: b.clock_mhz(t, b.model.memory_mhz)),
    ),
    PageField(
        f"{DEV}MEMORY_TEMP", "gauge", "Memory temperature (in C).", _board(_memory_temperature)
    ),
    PageField(
        f"{DEV}GPU_TEMP",
        "gauge",
        "GPU temperature (in C).",
        _board(lambda b, t: round(b.temperature_celsius(t))),
    ),
    PageField(
        f"{DEV}POWER_USAGE", "gauge", "Power draw (in W).", _board(lambda b, t: b.power_watts(t))
    ),
    PageField(
        f"{DEV}TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        _board(lambda b, t: int(1000 * b.energy_joules(t))),
    ),
    PageField(
        f"{DEV}PCIE_REPLAY_COUNTER",
        "counter",
        "Total number of PCIe retries.",
        _board(lambda b, t: b.count("pcie_replays", t)),
    ),
    PageField(
        f"{DEV}GPU_UTIL",
        "gauge",
        "GPU utilization (in %).",
        _whole(lambda b, t: percent(b.busy_ratio(t))),
    ),
    PageField(
        f"{DEV}MEM_COPY_UTIL",
        "gauge",
        "Memory utilization (in %).",
        _whole(lambda b, t: percent(b.busy_ratio(t, of="memory_busy"))),
    ),
    PageField(
        f"{DEV}ENC_UTIL",
        "gauge",
        "Encoder utilization (in %).",
        _whole(lambda b, t: percent(b.busy_ratio(t, of="encoder"))),
    ),
    PageField(
        f"{DEV}DEC_UTIL",
        "gauge",
        "Decoder utilization (in %).",
        _whole(lambda b, t: percent(b.busy_ratio(t, of="decoder"))),
    ),
    PageField(
        f"{DEV}XID_ERRORS",
        "gauge",
        "Value of the last XID error encountered.",
        _board(_last_xid),
        is_xid=True,
    ),
    PageField(f"{DEV}FB_FREE", "gauge", "Framebuffer memory free (in MiB).", _memory_free),
    PageField(f"{DEV}FB_USED", "gauge", "Framebuffer memory used (in MiB).", _memory_used),
    PageField(
        f"{DEV}FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).", _memory_reserved
    ),
    PageField(
        f"{DEV}UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors",
        _remapper(lambda b, t: b.count("ecc_uncorrected", t)),
    ),
    PageField(
        f"{DEV}CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for correctable errors",
        _remapper(lambda _b, _t: 0),
    ),
    PageField(
        f"{DEV}ROW_REMAP_FAILURE",
        "gauge",
        "Whether remapping of rows has failed",
        _remapper(lambda _b, _t: 0),
    ),
    PageField(
        f"{DEV}GET_GPU_RECOVERY_ACTION",
        "gauge",
        "GPU Recovery Action",
        _board(lambda b, t: b.recovery_action(t)),
    ),
    PageField(
        f"{DEV}NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "Total number of NVLink bandwidth counters for all lanes.",
        _whole(_nvlink_mbps),
    ),
    PageField(
        f"{DEV}VGPU_LICENSE_STATUS", "gauge", "vGPU License status", _board(lambda _b, _t: 0)
    ),
    PageField(
        f"{PROF}GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        _active(None),
    ),
    PageField(
        f"{PROF}SM_ACTIVE",
        "gauge",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        _active("sm"),
    ),
    PageField(
        f"{PROF}SM_OCCUPANCY",
        "gauge",
        "The ratio of number of warps resident on an SM.",
        _active("occupancy"),
    ),
    PageField(
        f"{PROF}PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        _active("tensor"),
    ),
    PageField(
        f"{PROF}DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        _active("dram"),
    ),
    PageField(
        f"{PROF}PIPE_FP64_ACTIVE",
        "gauge",
        "Ratio of cycles the fp64 pipes are active.",
        _active("fp64"),
    ),
    PageField(
        f"{PROF}PIPE_FP32_ACTIVE",
        "gauge",
        "Ratio of cycles the fp32 pipes are active.",
        _active("fp32"),
    ),
    PageField(
        f"{PROF}PIPE_FP16_ACTIVE",
        "gauge",
        "Ratio of cycles the fp16 pipes are active.",
        _active("fp16"),
    ),
    PageField(
        f"{PROF}PCIE_TX_BYTES",
        "gauge",
        "The rate of data transmitted over the PCIe bus (in bytes per second).",
        _traffic("pcie_transmit"),
    ),
    PageField(
        f"{PROF}PCIE_RX_BYTES",
        "gauge",
        "The rate of data received over the PCIe bus (in bytes per second).",
        _traffic("pcie_receive"),
    ),
)
