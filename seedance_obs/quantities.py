"""The quantities that sources report about a GPU: which are legal, and which source is believed.

Every source delivers values under these names and in these units; the merge, the collectors and
the contract are built from this one table.
"""

from dataclasses import dataclass

NVML_FIRST = ("nvml", "dcgm")
NVML_ONLY = ("nvml",)
DCGM_ONLY = ("dcgm",)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measured quantity: its legal range in base units and its sources, most trusted first."""

    name: str
    sources: tuple[str, ...]
    low: float = 0.0
    high: float = float("inf")

    def admits(self, value: float) -> bool:
        """Whether a value can be true; False for NaN and for what no such device can show."""
        return self.low <= value <= self.high


def _ratio(name: str, sources: tuple[str, ...]) -> Quantity:
    return Quantity(name, sources, 0.0, 1.0)


_TABLE = (
    _ratio("utilization_ratio", NVML_FIRST),
    _ratio("memory_busy_ratio", NVML_FIRST),
    _ratio("encoder_utilization_ratio", NVML_FIRST),
    _ratio("decoder_utilization_ratio", NVML_FIRST),
    _ratio("fan_speed_ratio", NVML_FIRST),
    Quantity("memory_used_bytes", NVML_FIRST, high=2**50),
    Quantity("memory_free_bytes", NVML_FIRST, high=2**50),
    Quantity("memory_reserved_bytes", NVML_FIRST, high=2**50),
    Quantity("memory_total_bytes", NVML_FIRST, high=2**50),
    Quantity("power_watts", NVML_FIRST, high=10_000),
    Quantity("power_limit_watts", NVML_FIRST, high=10_000),
    Quantity("energy_mj", NVML_FIRST, high=2**63),
    Quantity("temperature_gpu_celsius", NVML_FIRST, low=-50, high=200),
    Quantity("temperature_memory_celsius", NVML_FIRST, low=-50, high=200),
    Quantity("clock_sm_hertz", NVML_FIRST, high=1e11),
    Quantity("clock_memory_hertz", NVML_FIRST, high=1e11),
    Quantity("clock_graphics_hertz", NVML_ONLY, high=1e11),
    Quantity("clock_video_hertz", NVML_FIRST, high=1e11),
    Quantity("clocks_event_reasons", NVML_FIRST, high=2**63),
    Quantity("performance_state", NVML_FIRST, high=15),
    Quantity("recovery_action", NVML_FIRST, high=255),
    Quantity("pcie_generation", NVML_FIRST, low=1, high=8),
    Quantity("pcie_generation_max", NVML_FIRST, low=1, high=8),
    Quantity("pcie_width", NVML_FIRST, low=1, high=32),
    Quantity("pcie_width_max", NVML_FIRST, low=1, high=32),
    Quantity("pcie_replays", NVML_FIRST, high=2**63),
    Quantity("ecc_corrected_volatile", NVML_FIRST, high=2**63),
    Quantity("ecc_uncorrected_volatile", NVML_FIRST, high=2**63),
    Quantity("ecc_corrected_aggregate", NVML_FIRST, high=2**63),
    Quantity("ecc_uncorrected_aggregate", NVML_FIRST, high=2**63),
    Quantity("remapped_rows_correctable", NVML_FIRST, high=2**32),
    Quantity("remapped_rows_uncorrectable", NVML_FIRST, high=2**32),
    _ratio("remapped_rows_pending", NVML_FIRST),
    _ratio("remapped_rows_failed", NVML_FIRST),
    _ratio("mig_enabled", NVML_ONLY),
    _ratio("engine_active_ratio", NVML_FIRST),
    _ratio("sm_active_ratio", NVML_FIRST),
    _ratio("sm_occupancy_ratio", NVML_FIRST),
    _ratio("tensor_active_ratio", NVML_FIRST),
    _ratio("dram_active_ratio", NVML_FIRST),
    _ratio("fp64_active_ratio", NVML_FIRST),
    _ratio("fp32_active_ratio", NVML_FIRST),
    _ratio("fp16_active_ratio", NVML_FIRST),
    Quantity("pcie_transmit_bytes_per_second", NVML_FIRST, high=1e12),
    Quantity("pcie_receive_bytes_per_second", NVML_FIRST, high=1e12),
    Quantity("nvlink_transmit_bytes_per_second", DCGM_ONLY, high=1e13),
    Quantity("nvlink_receive_bytes_per_second", DCGM_ONLY, high=1e13),
    Quantity("pcie_transmit_bytes", NVML_ONLY, high=2**63),
    Quantity("pcie_receive_bytes", NVML_ONLY, high=2**63),
    Quantity("nvlink_transmit_bytes", NVML_ONLY, high=2**63),
    Quantity("nvlink_receive_bytes", NVML_ONLY, high=2**63),
)

QUANTITIES = {quantity.name: quantity for quantity in _TABLE}

# What the driver counts up and never down, until it is loaded again, and several sources read. The
# byte counters are not among them: nobody else can carry them on, and a wrap is no lag.
COUNTERS = frozenset(
    (
        "energy_mj",
        "pcie_replays",
        "ecc_corrected_volatile",
        "ecc_corrected_aggregate",
        "ecc_uncorrected_volatile",
        "ecc_uncorrected_aggregate",
    )
)
