"""The exporter as a process over the C library: its series are what nvitop reads there."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.identity import canonical_bus_id, canonical_uuid
from tests.exporter_process import exporter, get, until
from tests.nvml_abi.conftest import StandInMachine
from tests.nvml_abi.machines import WITH_GPUS, machine_library
from tests.nvml_abi.nvitop_reader import nvitop_readings
from tests.nvml_abi.state_file import state_of

Series = dict[tuple[str, str, str], dict[str, float]]

# nvitop's quantity in our words: the series, and the label that tells it from its siblings.
SERIES = {
    "utilization_ratio": ("seedance_gpu_utilization_ratio", "", ""),
    "memory_busy_ratio": ("seedance_gpu_memory_busy_ratio", "", ""),
    "encoder_utilization_ratio": ("seedance_gpu_encoder_utilization_ratio", "", ""),
    "decoder_utilization_ratio": ("seedance_gpu_decoder_utilization_ratio", "", ""),
    "fan_speed_ratio": ("seedance_gpu_fan_speed_ratio", "", ""),
    "memory_total_bytes": ("seedance_gpu_memory_total_bytes", "", ""),
    "memory_used_bytes": ("seedance_gpu_memory_used_bytes", "", ""),
    "memory_free_bytes": ("seedance_gpu_memory_free_bytes", "", ""),
    "power_watts": ("seedance_gpu_power_watts", "", ""),
    "power_limit_watts": ("seedance_gpu_power_limit_watts", "", ""),
    "temperature_gpu_celsius": ("seedance_gpu_temperature_celsius", "sensor", "gpu"),
    "clock_sm_hertz": ("seedance_gpu_clock_hertz", "clock", "sm"),
    "clock_memory_hertz": ("seedance_gpu_clock_hertz", "clock", "memory"),
    "clock_graphics_hertz": ("seedance_gpu_clock_hertz", "clock", "graphics"),
    "clock_video_hertz": ("seedance_gpu_clock_hertz", "clock", "video"),
    "performance_state": ("seedance_gpu_performance_state", "", ""),
}


@lru_cache(maxsize=1)
def parsed(page: str) -> list[Any]:
    families = text_string_to_metric_families(page)
    return [sample for family in families for sample in family.samples]


def samples(page: str, name: str) -> list[Any]:
    return [sample for sample in parsed(page) if sample.name == name]


def series_of(page: str, uuid: str) -> dict[str, float]:
    """A GPU's series in nvitop's choice of quantities."""
    found = {}
    for quantity, (name, label, value) in SERIES.items():
        for sample in samples(page, name):
            if sample.labels["gpu_uuid"] == uuid and sample.labels.get(label, "") == value:
                found[quantity] = sample.value
    for sample in samples(page, "seedance_gpu_ecc_errors_total"):
        if (sample.labels["gpu_uuid"], sample.labels["error"], sample.labels["scope"]) == (
            uuid,
            "uncorrected",
            "volatile",
        ):
            found["ecc_uncorrected_volatile"] = sample.value
    return found


@pytest.mark.parametrize("name", WITH_GPUS)
def test_every_quantity_that_both_know_is_equal(
    name: str, stand_in: Callable[..., StandInMachine]
) -> None:
    machine = stand_in(state_of(machine_library(name)))
    theirs = nvitop_readings(machine.environment)
    assert theirs
    with exporter(machine.environment) as url:
        page = until(lambda: get(f"{url}/metrics"), lambda text: "seedance_gpu_info" in text)
    infos = {sample.labels["gpu_uuid"]: sample for sample in samples(page, "seedance_gpu_info")}
    assert infos.keys() == {canonical_uuid(uuid) for uuid in theirs}
    compared = 0
    for uuid, board in theirs.items():
        ours = series_of(page, str(canonical_uuid(uuid)))
        for quantity in ours.keys() & board["values"].keys():
            assert ours[quantity] == pytest.approx(board["values"][quantity], rel=1e-9), quantity
            compared += 1
        assert board["values"].keys() <= ours.keys(), "nvitop knows a quantity that we do not show"
        labels = infos[str(canonical_uuid(uuid))].labels
        assert labels["gpu"] == str(board["index"])
        assert labels["gpu_model"] == board["facts"]["model"]
        assert labels["pci_bus_id"] == canonical_bus_id(board["facts"]["pci_bus_id"])
        assert labels["serial"] == board["facts"].get("serial", "")
    assert compared >= 8 * len(theirs)
    assert _instances(page) == {
        instance["uuid"]: instance["values"]
        for board in theirs.values()
        for instance in board["mig"]
    }


def _instances(page: str) -> dict[str, dict[str, float]]:
    """The memory of each MIG instance, by UUID, in nvitop's choice of quantities."""
    found: dict[str, dict[str, float]] = {}
    for quantity in ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes"):
        for sample in samples(page, f"seedance_mig_{quantity}"):
            found.setdefault(sample.labels["mig_uuid"], {})[quantity] = sample.value
    return found


def test_a_gpu_that_is_lost_and_a_driver_that_hangs_cost_themselves_only(
    stand_in: Callable[..., StandInMachine],
) -> None:
    lines = state_of(machine_library("rtx3090-bridge"))
    machine = stand_in(lines)
    flags = {"nvml_deadline_seconds": "0.5", "sampler_interval_seconds": "0.1"}
    with exporter(machine.environment, sampler_stale_after_seconds="1", **flags) as url:

        def page() -> str:
            return get(f"{url}/metrics")

        until(page, lambda text: "seedance_gpus_seen 2.0" in text)
        machine.write({**lines, **{key: "15" for key in lines if "gpu1" in key.split()}})
        text = until(page, lambda text: "seedance_gpus_seen 1.0" in text)
        assert "seedance_gpus_expected 2.0" in text
        assert 'seedance_readings_dropped_total{reason="gpu_is_lost",source="nvml"}' in text
        assert 'state="missing"' in text
        hung = {key: "hang" for key in lines if key.startswith("nvmlDeviceGetPowerUsage")}
        assert hung
        machine.write({**lines, **hung})
        text = until(page, lambda text: 'seedance_source_up{source="nvml"} 0.0' in text)
        until(page, lambda text: "seedance_gpus_seen 0.0" in text)
        machine.write(lines)
        until(page, lambda text: "seedance_gpus_seen 2.0" in text)
        assert get(f"{url}/-/healthy") == "healthy\n"
