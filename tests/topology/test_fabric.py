"""Fabric numbers become words by the definitions of NVML's own header."""

import re

import pytest

from seedance_obs.topology.fabric import faults, healthy, state_name, status_name
from tests.nvml_abi.stand_in import header_folder

CONDITIONS = {
    "degraded_bandwidth": "DEGRADED_BW",
    "route_recovery": "ROUTE_RECOVERY",
    "route_unhealthy": "ROUTE_UNHEALTHY",
    "access_timeout_recovery": "ACCESS_TIMEOUT_RECOVERY",
}
MISCONFIGURATIONS = {
    "system_guid": "INCORRECT_SYSGUID",
    "chassis_serial": "INCORRECT_CHASSIS_SN",
    "no_partition": "NO_PARTITION",
    "insufficient_nvlinks": "INSUFFICIENT_NVLINKS",
    "incompatible_gpu_firmware": "INCOMPATIBLE_GPU_FW",
    "invalid_location": "INVALID_LOCATION",
    "gpu_state_invalid": "GPU_STATE_INVALID",
}


@pytest.fixture(scope="module")
def header() -> dict[str, int]:
    """Every number about fabrics and every return code that nvml.h defines."""
    text = (header_folder() / "nvml.h").read_text(errors="replace")
    defined = re.findall(r"#define (NVML_GPU_FABRIC_\w+)\s+(0x[0-9a-f]+|\d+)\b", text)
    returned = re.findall(r"^\s+(NVML_(?:SUCCESS|ERROR_\w+)) *= (\d+),?", text, re.MULTILINE)
    return {name: int(number, 0) for name, number in (*defined, *returned)}


def field(header: dict[str, int], name: str, value: str) -> int:
    mask = "NVML_GPU_FABRIC_HEALTH_MASK"
    number = header[f"{mask}_{name}_{value}"]
    assert number <= header[f"{mask}_WIDTH_{name}"]
    return number << header[f"{mask}_SHIFT_{name}"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_is_read_where_the_header_puts_it(
    condition: str, header: dict[str, int]
) -> None:
    name = CONDITIONS[condition]
    assert faults(field(header, name, "TRUE")) == (condition,)
    others = [field(header, other, "TRUE") for other in CONDITIONS.values() if other != name]
    assert condition not in faults(sum(others) + field(header, name, "FALSE"))
    assert healthy(field(header, name, "TRUE"), None) is False
    assert healthy(field(header, name, "FALSE"), None) is True
    assert healthy(field(header, name, "NOT_SUPPORTED"), None) is None


@pytest.mark.parametrize("which", MISCONFIGURATIONS)
def test_each_incorrect_configuration_has_its_name(which: str, header: dict[str, int]) -> None:
    mask = field(header, "INCORRECT_CONFIGURATION", MISCONFIGURATIONS[which])
    assert faults(mask) == (f"incorrect_configuration_{which}",)
    assert healthy(mask, None) is False


def test_no_incorrect_configuration_of_the_header_is_missing(header: dict[str, int]) -> None:
    prefix = "NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_"
    named = {name.removeprefix(prefix) for name in header if name.startswith(prefix)}
    assert named - {"NOT_SUPPORTED", "NONE"} == set(MISCONFIGURATIONS.values())


def test_a_correct_configuration_is_health_and_one_of_the_future_is_not(
    header: dict[str, int],
) -> None:
    assert faults(field(header, "INCORRECT_CONFIGURATION", "NONE")) == ()
    assert healthy(field(header, "INCORRECT_CONFIGURATION", "NONE"), None) is True
    assert faults(0xB00) == ("incorrect_configuration_11",)


@pytest.mark.parametrize("what", ["PARTITION_ASSIGNED_TRUE", "PARTITION_ASSIGNED_FALSE"])
def test_a_partition_is_no_matter_of_health(what: str, header: dict[str, int]) -> None:
    mask = field(header, "PARTITION_ASSIGNED", what.rpartition("_")[2])
    assert faults(mask) == ()
    assert healthy(mask, None) is None


@pytest.mark.parametrize(
    ("summary", "verdict"),
    [("NOT_SUPPORTED", None), ("HEALTHY", True), ("UNHEALTHY", False), ("LIMITED_CAPACITY", False)],
)
def test_the_summary_decides_where_it_says_something(
    summary: str, verdict: bool | None, header: dict[str, int]
) -> None:
    number = header[f"NVML_GPU_FABRIC_HEALTH_SUMMARY_{summary}"]
    assert healthy(0, number) is verdict
    assert healthy(None, number) is verdict
    assert healthy(1, number) is (False if verdict is None else verdict)


def test_an_old_driver_knows_nothing_of_health() -> None:
    assert healthy(None, None) is None


def test_states_and_statuses_are_named_as_the_header_does(header: dict[str, int]) -> None:
    prefix = "NVML_GPU_FABRIC_STATE_"
    states = {name: number for name, number in header.items() if name.startswith(prefix)}
    assert len(states) == 4
    for name, number in states.items():
        assert state_name(number) == name.removeprefix(prefix).lower()
    for name, number in header.items():
        if name == "NVML_SUCCESS" or name.startswith("NVML_ERROR_"):
            word = name.removeprefix("NVML_").removeprefix("ERROR_").lower()
            assert status_name(number) in (word, f"code_{number}")
    assert status_name(23) == "insufficient_resources"
    assert (state_name(7), status_name(77)) == ("state_7", "code_77")
