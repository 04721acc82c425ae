"""What each GPU and each MIG instance measures, under one identity whatever source it came from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, MIG_LABELS, NodeView, mig_labels
from seedance_obs.sources.recovery import action_name
from seedance_obs.sources.xid import classify

Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily

CLOCKS_EVENTS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity as one series: metric name, help, the labels it adds, and its vendor unit."""

    quantity: str
    metric: str
    about: str
    extra: tuple[tuple[str, str], ...] = ()
    per_unit: int = 1

    def family(self, labels: tuple[str, ...]) -> Family:
        """An empty family of the row's metric."""
        names = [*labels, *(name for name, _ in self.extra)]
        kind = CounterMetricFamily if self.metric.endswith("_total") else GaugeMetricFamily
        return kind(self.metric, self.about, labels=names)


def _ratio(quantity: str, about: str) -> Row:
    return Row(quantity, f"seedance_gpu_{quantity}", f"{about}, 0 to 1.")


def _same(quantity: str, about: str) -> Row:
    return Row(quantity, f"seedance_gpu_{quantity}", about)


def _temperature(sensor: str) -> Row:
    about = "Temperature at a sensor of the board."
    name = f"temperature_{sensor}_celsius"
    return Row(name, "seedance_gpu_temperature_celsius", about, (("sensor", sensor),))


def _clock(clock: str) -> Row:
    about = "Current clock of a part of the GPU."
    return Row(f"clock_{clock}_hertz", "seedance_gpu_clock_hertz", about, (("clock", clock),))


def _ecc(error: str, scope: str) -> Row:
    about = (
        "ECC errors the board has counted: volatile since the driver was loaded, aggregate over "
        "the life of the board."
    )
    extra = (("error", error), ("scope", scope))
    return Row(f"ecc_{error}_{scope}", "seedance_gpu_ecc_errors_total", about, extra)


def _remapped(cause: str) -> Row:
    about = "Memory rows remapped over the life of the board, by the errors that caused it."
    return Row(f"remapped_rows_{cause}", "seedance_gpu_remapped_rows", about, (("cause", cause),))


ROWS = (
    _ratio("utilization_ratio", "Share of the driver's last sampling period with a kernel running"),
    _ratio("memory_busy_ratio", "Share of the sampling period with device memory read or written"),
    _ratio("encoder_utilization_ratio", "Share of time the video encoder was busy"),
    _ratio("decoder_utilization_ratio", "Share of time the video decoder was busy"),
    _ratio(
        "engine_active_ratio", "Share of time a graphics or compute engine was active (profiling)"
    ),
    _ratio(
        "sm_active_ratio",
        "Share of time with a warp resident on an SM, mean over SMs (profiling)",
    ),
    _ratio(
        "sm_occupancy_ratio", "Resident warps as a share of what the SMs could hold (profiling)"
    ),
    _ratio("tensor_active_ratio", "Share of cycles the tensor pipe was active (profiling)"),
    _ratio("fp64_active_ratio", "Share of cycles the FP64 pipe was active (profiling)"),
    _ratio("fp32_active_ratio", "Share of cycles the FP32 pipe was active (profiling)"),
    _ratio("fp16_active_ratio", "Share of cycles the FP16 pipe was active (profiling)"),
    _ratio(
        "dram_active_ratio", "Share of cycles the device memory interface was active (profiling)"
    ),
    _same("memory_used_bytes", "Device memory allocated by contexts, reserved memory excluded."),
    _same("memory_free_bytes", "Device memory not allocated."),
    _same("memory_reserved_bytes", "Device memory held back by driver and firmware."),
    _same("memory_total_bytes", "Device memory of the board."),
    _same("power_watts", "Power drawn by the board, as its sensor averages it."),
    _same("power_limit_watts", "Power limit in force."),
    Row(
        "energy_mj",
        "seedance_gpu_energy_joules_total",
        "Energy the board has used since its driver was loaded, from the hardware counter.",
        per_unit=1000,
    ),
    _temperature("gpu"),
    _temperature("memory"),
    _clock("sm"),
    _clock("memory"),
    _clock("graphics"),
    _clock("video"),
    _same("performance_state", "Performance state: 0 fastest, 15 slowest."),
    _ratio("fan_speed_ratio", "Commanded fan speed as a share of the maximum"),
    Row("pcie_generation", "seedance_gpu_pcie_link_generation", "PCIe generation in use now."),
    Row(
        "pcie_generation_max",
        "seedance_gpu_pcie_link_generation_max",
        "Highest PCIe generation this GPU reaches in this slot.",
    ),
    Row("pcie_width", "seedance_gpu_pcie_link_width", "PCIe lanes in use now."),
    Row(
        "pcie_width_max",
        "seedance_gpu_pcie_link_width_max",
        "Most PCIe lanes this GPU can use in this slot.",
    ),
    Row(
        "pcie_replays",
        "seedance_gpu_pcie_replays_total",
        "PCIe transfers sent again, counted by the driver since it was loaded.",
    ),
    _same("pcie_transmit_bytes_per_second", "PCIe bytes sent per second, between two readings."),
    _same("pcie_receive_bytes_per_second", "PCIe bytes received per second, likewise."),
    _ecc("corrected", "volatile"),
    _ecc("corrected", "aggregate"),
    _ecc("uncorrected", "volatile"),
    _ecc("uncorrected", "aggregate"),
    _remapped("correctable"),
    _remapped("uncorrectable"),
    _same("remapped_rows_pending", "1 while a row waits for a reset to be remapped."),
    _same("remapped_rows_failed", "1 once a row could not be remapped: the board needs replacing."),
    _same("mig_enabled", "1 while MIG mode is on."),
)


def _mig(quantity: str, about: str) -> Row:
    return Row(quantity, f"seedance_mig_{quantity}", about)


MIG_ROWS = (
    _mig("memory_used_bytes", "Device memory allocated in a MIG instance."),
    _mig("memory_free_bytes", "Device memory free in a MIG instance."),
    _mig("memory_total_bytes", "Device memory of a MIG instance."),
    _mig(
        "engine_active_ratio",
        "Share of time an instance's engine was active, 0 to 1 (profiling).",
    ),
    _mig("sm_active_ratio", "Share of time an instance's SMs were active, 0 to 1 (profiling)."),
    _mig(
        "tensor_active_ratio", "Share of cycles an instance's tensor pipe was active (profiling)."
    ),
    _mig(
        "dram_active_ratio",
        "Share of cycles an instance's memory was active, 0 to 1 (profiling).",
    ),
)


@register("gpu", "utilisation, memory, power, energy, clocks, links and errors of each GPU")
class GpuCollector:
    """The measured series of every GPU the sources see."""

    def collect(self, view: NodeView, now: float) -> Iterator[Metric]:
        """The families of one scrape; a quantity nobody reads has no sample."""
        families: dict[str, Family] = {}
        for row in ROWS:
            family = families.setdefault(row.metric, row.family(GPU_LABELS))
            for gpu in view.gpus:
                value = gpu.merged.value(row.quantity)
                if value is not None:
                    _add(family, row, gpu.labels, value)
        for row in MIG_ROWS:
            family = families[row.metric] = row.family((*GPU_LABELS, *MIG_LABELS))
            for gpu in view.gpus:
                for instance in gpu.merged.mig:
                    if row.quantity in instance.values:
                        labels = (*gpu.labels, *mig_labels(instance))
                        _add(family, row, labels, instance.values[row.quantity])
        yield from families.values()
        yield _clocks_events(view)
        yield _recovery_actions(view)
        yield _xid_errors(view)
        yield _xid_ages(view, now)


def _add(family: Family, row: Row, labels: tuple[str, ...], value: float) -> None:
    values = [*labels, *(text for _, text in row.extra)]
    family.add_metric(values, value / row.per_unit)


def _clocks_events(view: NodeView) -> Metric:
    family = GaugeMetricFamily(
        "seedance_gpu_clocks_event_active",
        "1 while the driver names this reason for not clocking higher.",
        labels=[*GPU_LABELS, "reason"],
    )
    for gpu in view.gpus:
        mask = gpu.merged.value("clocks_event_reasons")
        if mask is not None:
            for bit, reason in CLOCKS_EVENTS.items():
                family.add_metric([*gpu.labels, reason], float(bool(int(mask) & bit)))
    return family


def _recovery_actions(view: NodeView) -> Metric:
    family = GaugeMetricFamily(
        "seedance_gpu_recovery_action",
        "1 while the driver asks for this action to get the GPU back; none where it asks for "
        "nothing. Of how many GPUs it would is in seedance_gpu_source_gpus.",
        labels=[*GPU_LABELS, "action"],
    )
    for gpu in view.gpus:
        action = gpu.merged.value("recovery_action")
        if action:
            family.add_metric([*gpu.labels, action_name(int(action))], 1)
    return family


def _xid_errors(view: NodeView) -> Metric:
    family = CounterMetricFamily(
        "seedance_gpu_xid_errors_total",
        "XID errors the driver reported since this exporter started, by code and class; a GPU "
        "that is lost keeps its count.",
        labels=[*GPU_LABELS, "xid", "class"],
    )
    for (labels, code), count in view.xid_errors.items():
        family.add_metric([*labels, str(code), classify(code)], count)
    return family


def _xid_ages(view: NodeView, now: float) -> Metric:
    family = GaugeMetricFamily(
        "seedance_gpu_xid_age_seconds",
        "Seconds since the last XID error by code and class, of those since this exporter started; "
        "gone after 15 minutes or more as soon as the driver says that it wants nothing done to "
        "the GPU, and when the driver is let go of.",
        labels=[*GPU_LABELS, "xid", "class"],
    )
    for (labels, code), at in view.xid_times.items():
        family.add_metric([*labels, str(code), classify(code)], now - at)
    return family
