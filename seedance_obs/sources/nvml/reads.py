"""Which NVML call yields which quantity, and the one place where NVML's units become ours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from seedance_obs.sources.nvml.gpm import ACTIVITY_METRICS
from seedance_obs.sources.nvml.library import Plain

Taken: TypeAlias = Iterator[tuple[str, float]]
Unit: TypeAlias = Callable[[float], float]
ALL_LINKS = 0xFFFFFFFF << 32  # the scope of a field that is asked of all links together
RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
WRAPPING = ("pcie_transmit_bytes", "pcie_receive_bytes")  # 32 bits wide where it was looked at


def _as_is(value: float) -> float:
    return value


def _percent(value: float) -> float:
    return value / 100


def _milli(value: float) -> float:
    return value / 1000


def _kibi(value: float) -> float:
    return value * 1024


def _mega(value: float) -> float:
    return value * 1_000_000


@dataclass(frozen=True, slots=True)
class Read:
    """A call, the quantities it can yield, and how they are taken from its answer."""

    function: str
    args: tuple[int, ...]
    quantities: frozenset[str]
    take: Callable[[Plain], Taken]


def _number(quantity: str, function: str, *args: int, unit: Unit = _as_is) -> Read:
    def take(answer: Plain) -> Taken:
        if isinstance(answer, int | float):
            yield quantity, unit(answer)

    return Read(function, args, frozenset((quantity,)), take)


def _fields(function: str, quantities: Mapping[str, str], *, unit: Unit = _as_is) -> Read:
    def take(answer: Plain) -> Taken:
        for name, quantity in quantities.items():
            value = answer.get(name) if isinstance(answer, Mapping) else None
            if isinstance(value, int | float):
                yield quantity, unit(value)

    return Read(function, (), frozenset(quantities.values()), take)


def _places(
    function: str, *quantities: str, args: tuple[int, ...] = (), unit: Unit = _as_is
) -> Read:
    def take(answer: Plain) -> Taken:
        parts = answer if isinstance(answer, list | tuple) else ()
        for quantity, value in zip(quantities, parts, strict=False):
            if isinstance(value, int | float):
                yield quantity, unit(value)

    return Read(function, args, frozenset(quantities), take)


def _field_values(*asked: tuple[int, str, Unit]) -> Read:
    """Several fields in one call, each with its quantity and unit."""

    def take(answer: Plain) -> Taken:
        entries = answer if isinstance(answer, list | tuple) else ()
        for (_, quantity, unit), entry in zip(asked, entries, strict=False):
            value = entry.get("value") if isinstance(entry, Mapping) else None
            if isinstance(value, int | float):
                yield quantity, unit(value)

    fields = tuple(field for field, _, _ in asked)
    quantities = frozenset(quantity for _, quantity, _ in asked)
    return Read("nvmlDeviceGetFieldValues", fields, quantities, take)


def _take_version_1_memory(answer: Plain) -> Taken:
    # Version 1 counts reserved memory as used, so its `used` is another quantity: leave it out
    # rather than let one name mean two things.
    if isinstance(answer, Mapping):
        for name in ("total", "free"):
            value = answer.get(name)
            if isinstance(value, int):
                yield f"memory_{name}_bytes", value


MEMORY_READS = (
    _fields(
        "nvmlDeviceGetMemoryInfo_v2",
        {
            "total": "memory_total_bytes",
            "reserved": "memory_reserved_bytes",
            "free": "memory_free_bytes",
            "used": "memory_used_bytes",
        },
    ),
    Read(
        "nvmlDeviceGetMemoryInfo",
        (),
        frozenset(("memory_total_bytes", "memory_free_bytes")),
        _take_version_1_memory,
    ),
)

ACTIVITY_READS = (
    _places(
        "nvmlGpmMetricsGet",
        *ACTIVITY_METRICS.values(),
        args=tuple(ACTIVITY_METRICS),
        unit=_percent,
    ),
)

COUNTER_READS = (
    _field_values(  # NVML_FI_DEV_MEMORY_TEMP, ..._PCIE_COUNT_*_BYTES, ..._NVLINK_THROUGHPUT_DATA_*
        (82, "temperature_memory_celsius", _as_is),
        (197, "pcie_transmit_bytes", _as_is),
        (198, "pcie_receive_bytes", _as_is),
        (138 | ALL_LINKS, "nvlink_transmit_bytes", _kibi),
        (139 | ALL_LINKS, "nvlink_receive_bytes", _kibi),
        (RECOVERY_ACTION, "recovery_action", _as_is),
    ),
)

BOARD_READS = (
    _fields(
        "nvmlDeviceGetUtilizationRates",
        {"gpu": "utilization_ratio", "memory": "memory_busy_ratio"},
        unit=_percent,
    ),
    _places("nvmlDeviceGetEncoderUtilization", "encoder_utilization_ratio", unit=_percent),
    _places("nvmlDeviceGetDecoderUtilization", "decoder_utilization_ratio", unit=_percent),
    *MEMORY_READS,
    _number("power_watts", "nvmlDeviceGetPowerUsage", unit=_milli),
    _number("power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit", unit=_milli),
    _number("energy_mj", "nvmlDeviceGetTotalEnergyConsumption"),
    _number("temperature_gpu_celsius", "nvmlDeviceGetTemperature", 0),
    _number("clock_graphics_hertz", "nvmlDeviceGetClockInfo", 0, unit=_mega),
    _number("clock_sm_hertz", "nvmlDeviceGetClockInfo", 1, unit=_mega),
    _number("clock_memory_hertz", "nvmlDeviceGetClockInfo", 2, unit=_mega),
    _number("clock_video_hertz", "nvmlDeviceGetClockInfo", 3, unit=_mega),
    _number("clocks_event_reasons", "nvmlDeviceGetCurrentClocksEventReasons"),
    _number("performance_state", "nvmlDeviceGetPerformanceState"),
    _number("fan_speed_ratio", "nvmlDeviceGetFanSpeed", unit=_percent),
    _number("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _number("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _number("pcie_replays", "nvmlDeviceGetPcieReplayCounter"),
    _number("ecc_corrected_volatile", "nvmlDeviceGetTotalEccErrors", 0, 0),
    _number("ecc_corrected_aggregate", "nvmlDeviceGetTotalEccErrors", 0, 1),
    _number("ecc_uncorrected_volatile", "nvmlDeviceGetTotalEccErrors", 1, 0),
    _number("ecc_uncorrected_aggregate", "nvmlDeviceGetTotalEccErrors", 1, 1),
    _places(
        "nvmlDeviceGetRemappedRows",
        "remapped_rows_correctable",
        "remapped_rows_uncorrectable",
        "remapped_rows_pending",
        "remapped_rows_failed",
    ),
)
