"""Which dcgm-exporter families hold which quantity, under all the names they have had.

A family is named by whatever its row in the exporter's CSV says, so the same field appears as
the classic name (asked for in `exporters/dcgm-counters.csv`), as the name DCGM 4.6 renamed it to,
as a 1.x name (`dcgm_...`), or as one of the base-unit fields that DCGM 4.7 put beside the classic
ones. What is deliberately not here: `NVLINK_BANDWIDTH_*` (its unit differs between versions) and
`PCIE_TX/RX_THROUGHPUT` (deprecated; a rate in KB or a count, by version). The `TYPE` line of a
page is never consulted: the bytes of PCIe and NVLink were typed counter for years and are rates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """Whose value a row with a MIG instance label carries."""

    BOARD = "the board's, repeated on every instance"
    EITHER = "the instance's; the board's only on a row without an instance"
    WHOLE = "nobody's: it is measured on whole boards only"


def _percent(value: float) -> float:
    return value / 100


def _percent_or_ratio(value: float) -> float:
    """A ratio, told from a percentage by the way dcgm-exporter prints numbers.

    In DCGM 4.6 `GPU_UTIL_RATIO` is another name of field 203, an integer percentage; in 4.7 it
    is field 1613, a floating-point ratio. The exporter prints integer fields without a point and
    floating-point fields with six decimals, so `1` is one per cent and `1.000000` is all of it.
    """
    return value / 100 if isinstance(value, int) else value


def _from_mebi(value: float) -> float:
    return value * 2**20


def _from_mega(value: float) -> float:
    return value * 1e6


def _from_kilo(value: float) -> float:
    return round(value * 1000)


@dataclass(frozen=True, slots=True)
class Field:
    """One quantity as DCGM gives it: names (the first is the one asked for) and conversion.

    Where a page has several fields for one quantity, the lowest `rank` is believed.
    """

    quantity: str
    scope: Scope
    convert: Callable[[float], float]
    names: tuple[str, ...]
    rank: int = 0


def _board(quantity: str, convert: Callable[[float], float], *names: str, rank: int = 0) -> Field:
    return Field(quantity, Scope.BOARD, convert, names, rank)


def _either(quantity: str, convert: Callable[[float], float], *names: str, rank: int = 0) -> Field:
    return Field(quantity, Scope.EITHER, convert, names, rank)


def _whole(quantity: str, convert: Callable[[float], float], *names: str, rank: int = 0) -> Field:
    return Field(quantity, Scope.WHOLE, convert, names, rank)


D, P = "DCGM_FI_DEV_", "DCGM_FI_PROF_"

FIELDS = (
    _whole("utilization_ratio", _percent, f"{D}GPU_UTIL", "dcgm_gpu_utilization"),
    _whole("utilization_ratio", _percent_or_ratio, f"{D}GPU_UTIL_RATIO", rank=1),
    _whole("memory_busy_ratio", _percent, f"{D}MEM_COPY_UTIL", "dcgm_mem_copy_utilization"),
    _whole("memory_busy_ratio", float, f"{D}MEMORY_UTIL_RATIO", rank=1),
    _whole("encoder_utilization_ratio", _percent, f"{D}ENC_UTIL", "dcgm_enc_utilization"),
    _whole("encoder_utilization_ratio", float, f"{D}ENC_UTIL_RATIO", rank=1),
    _whole("decoder_utilization_ratio", _percent, f"{D}DEC_UTIL", "dcgm_dec_utilization"),
    _whole("decoder_utilization_ratio", float, f"{D}DEC_UTIL_RATIO", rank=1),
    _board("fan_speed_ratio", _percent, f"{D}FAN_SPEED"),
    _board("fan_speed_ratio", float, f"{D}FAN_SPEED_RATIO", rank=1),
    _either("memory_used_bytes", _from_mebi, f"{D}FB_USED", "dcgm_fb_used", rank=1),
    _either("memory_used_bytes", float, f"{D}FB_USED_BYTES"),
    _either("memory_free_bytes", _from_mebi, f"{D}FB_FREE", "dcgm_fb_free", rank=1),
    _either("memory_free_bytes", float, f"{D}FB_FREE_BYTES"),
    _either("memory_reserved_bytes", _from_mebi, f"{D}FB_RESERVED", rank=1),
    _either("memory_reserved_bytes", float, f"{D}FB_RESERVED_BYTES"),
    _either("memory_total_bytes", _from_mebi, f"{D}FB_TOTAL", rank=1),
    _either("memory_total_bytes", float, f"{D}FB_CAPACITY_BYTES"),
    _board("power_watts", float, f"{D}POWER_USAGE", f"{D}BOARD_POWER_WATTS", "dcgm_power_usage"),
    _board(
        "power_limit_watts",
        float,
        f"{D}ENFORCED_POWER_LIMIT",
        f"{D}BOARD_POWER_LIMIT_ENFORCED_WATTS",
    ),
    _board(
        "power_limit_watts",
        float,
        f"{D}POWER_MGMT_LIMIT",
        f"{D}BOARD_POWER_LIMIT_REQUESTED_WATTS",
        rank=1,
    ),
    _board(
        "energy_mj",
        round,
        f"{D}TOTAL_ENERGY_CONSUMPTION",
        "dcgm_total_energy_consumption",
    ),
    _board("energy_mj", _from_kilo, f"{D}GPU_ENERGY_JOULES_TOTAL", rank=1),
    _board(
        "temperature_gpu_celsius",
        float,
        f"{D}GPU_TEMP",
        f"{D}GPU_TEMP_CELSIUS",
        "dcgm_gpu_temp",
    ),
    _board(
        "temperature_memory_celsius",
        float,
        f"{D}MEMORY_TEMP",
        f"{D}MEMORY_TEMP_CELSIUS",
        "dcgm_memory_temp",
    ),
    _board("clock_sm_hertz", _from_mega, f"{D}SM_CLOCK", "dcgm_sm_clock"),
    _board("clock_sm_hertz", float, f"{D}SM_CLOCK_HERTZ", rank=1),
    _board("clock_memory_hertz", _from_mega, f"{D}MEM_CLOCK", "dcgm_memory_clock"),
    _board("clock_memory_hertz", float, f"{D}MEMORY_CLOCK_HERTZ", rank=1),
    _board("clock_video_hertz", _from_mega, f"{D}VIDEO_CLOCK"),
    _board("clock_video_hertz", float, f"{D}VIDEO_CLOCK_HERTZ", rank=1),
    _board(
        "clocks_event_reasons",
        round,
        f"{D}CLOCK_THROTTLE_REASONS",
        f"{D}CLOCKS_EVENT_REASONS",
    ),
    _board("performance_state", float, f"{D}PSTATE", f"{D}GPU_PSTATE"),
    _board("recovery_action", round, f"{D}GET_GPU_RECOVERY_ACTION", f"{D}GPU_RECOVERY_ACTION"),
    _board("pcie_generation", float, f"{D}PCIE_LINK_GEN"),
    _board("pcie_generation_max", float, f"{D}PCIE_MAX_LINK_GEN"),
    _board("pcie_width", float, f"{D}PCIE_LINK_WIDTH"),
    _board("pcie_width_max", float, f"{D}PCIE_MAX_LINK_WIDTH"),
    _board(
        "pcie_replays",
        float,
        f"{D}PCIE_REPLAY_COUNTER",
        f"{D}PCIE_REPLAY_TOTAL",
        "dcgm_pcie_replay_counter",
    ),
    _board("ecc_corrected_volatile", float, f"{D}ECC_SBE_VOL_TOTAL", "dcgm_ecc_sbe_volatile_total"),
    _board(
        "ecc_uncorrected_volatile", float, f"{D}ECC_DBE_VOL_TOTAL", "dcgm_ecc_dbe_volatile_total"
    ),
    _board(
        "ecc_corrected_aggregate", float, f"{D}ECC_SBE_AGG_TOTAL", "dcgm_ecc_sbe_aggregate_total"
    ),
    _board(
        "ecc_uncorrected_aggregate", float, f"{D}ECC_DBE_AGG_TOTAL", "dcgm_ecc_dbe_aggregate_total"
    ),
    _board(
        "remapped_rows_correctable",
        float,
        f"{D}CORRECTABLE_REMAPPED_ROWS",
        f"{D}ROW_REMAP_CORRECTABLE_TOTAL",
    ),
    _board(
        "remapped_rows_uncorrectable",
        float,
        f"{D}UNCORRECTABLE_REMAPPED_ROWS",
        f"{D}ROW_REMAP_UNCORRECTABLE_TOTAL",
    ),
    _board("remapped_rows_pending", float, f"{D}ROW_REMAP_PENDING"),
    _board("remapped_rows_failed", float, f"{D}ROW_REMAP_FAILURE", f"{D}ROW_REMAP_FAILED"),
    _either(
        "engine_active_ratio",
        float,
        f"{P}GR_ENGINE_ACTIVE",
        f"{P}GR_ENGINE_UTIL_RATIO",
        "dcgm_fi_prof_gr_engine_active",
    ),
    _either(
        "sm_active_ratio",
        float,
        f"{P}SM_ACTIVE",
        f"{P}SM_UTIL_RATIO",
        "dcgm_fi_prof_sm_active",
    ),
    _either(
        "sm_occupancy_ratio",
        float,
        f"{P}SM_OCCUPANCY",
        f"{P}SM_OCCUPANCY_RATIO",
        "dcgm_fi_prof_sm_occupancy",
    ),
    _either(
        "tensor_active_ratio",
        float,
        f"{P}PIPE_TENSOR_ACTIVE",
        f"{P}TENSOR_UTIL_RATIO",
        "dcgm_fi_prof_pipe_tensor_active",
    ),
    _either(
        "dram_active_ratio",
        float,
        f"{P}DRAM_ACTIVE",
        f"{P}DRAM_UTIL_RATIO",
        "dcgm_fi_prof_dram_active",
    ),
    _either("fp64_active_ratio", float, f"{P}PIPE_FP64_ACTIVE", f"{P}FP64_UTIL_RATIO"),
    _either("fp32_active_ratio", float, f"{P}PIPE_FP32_ACTIVE", f"{P}FP32_UTIL_RATIO"),
    _either("fp16_active_ratio", float, f"{P}PIPE_FP16_ACTIVE", f"{P}FP16_UTIL_RATIO"),
    _whole(
        "pcie_transmit_bytes_per_second",
        float,
        f"{P}PCIE_TX_BYTES",
        "dcgm_fi_prof_pcie_tx_bytes",
    ),
    _whole(
        "pcie_receive_bytes_per_second",
        float,
        f"{P}PCIE_RX_BYTES",
        "dcgm_fi_prof_pcie_rx_bytes",
    ),
    _whole(
        "nvlink_transmit_bytes_per_second",
        float,
        f"{P}NVLINK_TX_BYTES",
        "dcgm_fi_prof_nvlink_tx_bytes",
    ),
    _whole(
        "nvlink_receive_bytes_per_second",
        float,
        f"{P}NVLINK_RX_BYTES",
        "dcgm_fi_prof_nvlink_rx_bytes",
    ),
)

FIELD_OF = {name: field for field in FIELDS for name in field.names}

XID_NAMES = (f"{D}XID_ERRORS", f"{D}XID_ERROR", "dcgm_xid_errors")

# Fields that the exporter's CSV turns into labels on every other row.
VERSION_LABELS = {
    "driver_version": ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
    "nvml_version": ("DCGM_FI_NVML_VERSION", "DCGM_FI_SYSTEM_NVML_VERSION"),
    "cuda_version": ("DCGM_FI_CUDA_DRIVER_VERSION",),
}
FACT_LABELS = {
    "vbios_version": (f"{D}VBIOS_VERSION",),
    "serial": (f"{D}SERIAL", f"{D}BOARD_SERIAL"),
    "minor_number": (f"{D}MINOR_NUMBER", f"{D}GPU_MINOR_NUMBER"),
}
