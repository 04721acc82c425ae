"""One pass over GPUs whose driver refuses, lies or dies."""

import pytest

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.nvml.library import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    TIMEOUT,
    UNKNOWN,
    NvmlError,
)
from seedance_obs.sources.nvml.reader import NvmlReader

UUIDS = {f"gpu{i}": f"GPU-0000000{i}-0000-0000-0000-000000000000" for i in range(4)}


class Driver:
    """Two GPUs that answer everything asked of `answers`, and NOT_SUPPORTED to the rest."""

    def __init__(self) -> None:
        self.count = 2
        self.answers: dict[str, object] = {"nvmlDeviceGetPowerUsage": 100_000}
        self.errors: dict[tuple[str | None, str], int] = {}
        self.events: list[dict] = []
        self.calls: list[tuple[str, str | None]] = []

    def call(self, function, device=None, *_args):
        self.calls.append((function, device))
        for key in ((device, function), (device, "*")):
            if key in self.errors:
                raise NvmlError(self.errors[key])
        if function == "nvmlDeviceGetCount":
            return self.count
        if function == "nvmlDeviceGetUUID":
            return UUIDS[device]
        if function == "nvmlEventSetWait":
            if not self.events:
                raise NvmlError(TIMEOUT)
            return self.events.pop(0)
        if function in ("nvmlInit", "nvmlShutdown"):
            return None
        if function in self.answers:
            return self.answers[function]
        raise NvmlError(NOT_SUPPORTED)


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def reader(driver, clock):
    reader = NvmlReader(driver, monotonic=clock)
    reader.start()
    return reader


def powers(snapshot):
    return [gpu.values.get("power_watts") for gpu in snapshot.gpus]


def test_a_lost_gpu_costs_itself_only(driver, reader):
    assert powers(reader.read()) == [100.0, 100.0]
    driver.errors["gpu0", "*"] = GPU_IS_LOST
    snapshot = reader.read()
    assert [gpu.uuid for gpu in snapshot.gpus] == [UUIDS["gpu1"]]
    assert snapshot.dropped == {"gpu_is_lost": 1}
    del driver.errors["gpu0", "*"]
    assert len(reader.read().gpus) == 2


@pytest.mark.parametrize(("action", "there"), [(1, True), (None, False), (256, False)])
def test_a_gpu_that_only_a_reset_gets_back_is_there_if_it_says_so(driver, reader, action, there):
    reader.read()
    driver.errors["gpu0", "nvmlDeviceGetPowerUsage"] = RESET_REQUIRED
    driver.answers["nvmlDeviceGetFieldValues"] = [{"nvmlReturn": 0, "value": action}]
    snapshot = reader.read()
    assert [gpu.uuid for gpu in snapshot.gpus] == [UUIDS["gpu0"]] * there + [UUIDS["gpu1"]]
    if there:
        assert snapshot.gpus[0].values == {"recovery_action": 1}
    assert snapshot.dropped["reset_required"] == 1
    del driver.errors["gpu0", "nvmlDeviceGetPowerUsage"]
    assert powers(reader.read()) == [100.0, 100.0]


def test_a_failing_call_costs_its_quantity_and_is_tried_again(driver, reader):
    driver.errors["gpu0", "nvmlDeviceGetPowerUsage"] = UNKNOWN
    snapshot = reader.read()
    assert powers(snapshot) == [None, 100.0]
    assert snapshot.dropped == {"unknown": 1}
    del driver.errors["gpu0", "nvmlDeviceGetPowerUsage"]
    assert powers(reader.read()) == [100.0, 100.0]


def test_what_is_not_supported_is_asked_once(driver, reader):
    reader.read()
    reader.read()
    assert driver.calls.count(("nvmlDeviceGetTotalEnergyConsumption", "gpu0")) == 1


def test_a_change_of_mig_mode_lets_everything_be_asked_again(driver, reader):
    driver.answers["nvmlDeviceGetMigMode"] = [0, 0]
    reader.read()
    driver.answers["nvmlDeviceGetMigMode"] = [1, 1]
    assert reader.read().gpus[0].values["mig_enabled"] == 1.0
    assert driver.calls.count(("nvmlDeviceGetTotalEnergyConsumption", "gpu0")) == 2


def test_a_driver_that_goes_away_is_a_source_that_is_down(driver, reader):
    driver.errors[None, "nvmlDeviceGetCount"] = DRIVER_NOT_LOADED
    with pytest.raises(SourceUnavailableError, match="modprobe nvidia"):
        reader.read()


def test_another_number_of_gpus_means_new_handles(driver, reader):
    reader.read()
    driver.count = 3
    assert len(reader.read().gpus) == 3
    assert ("nvmlShutdown", None) in driver.calls
    assert driver.calls.count(("nvmlInit", None)) == 2


@pytest.mark.parametrize("impossible", [4_294_967_295, -5])
def test_impossible_values_are_dropped_and_counted(driver, reader, impossible):
    driver.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": impossible, "memory": 40}
    snapshot = reader.read()
    assert [gpu.values.get("utilization_ratio") for gpu in snapshot.gpus] == [None, None]
    assert [gpu.values.get("memory_busy_ratio") for gpu in snapshot.gpus] == [0.4, 0.4]
    assert snapshot.dropped == {"out_of_range": 2}


def test_an_older_memory_call_answers_only_where_the_newer_does_not(driver, reader):
    driver.answers["nvmlDeviceGetMemoryInfo"] = {"total": 100, "free": 60, "used": 40}
    values = reader.read().gpus[0].values
    assert (values["memory_total_bytes"], values["memory_free_bytes"]) == (100, 60)
    assert "memory_used_bytes" not in values, "version 1 counts reserved memory as used"


def test_every_pending_xid_is_taken_in_one_pass(driver, reader):
    driver.events = [{"device": "gpu1", "xid": 79}, {"device": "gpu1", "xid": 79}]
    assert [(xid.uuid, xid.code) for xid in reader.read().xids] == [(UUIDS["gpu1"], 79)] * 2
    assert reader.read().xids == ()


def test_the_xid_of_a_gpu_that_is_lost_in_the_same_moment_is_not_lost(driver, reader):
    reader.read()
    driver.errors["gpu1", "*"] = GPU_IS_LOST
    driver.events = [{"device": "gpu1", "xid": 79}]
    snapshot = reader.read()
    assert [gpu.uuid for gpu in snapshot.gpus] == [UUIDS["gpu0"]]
    assert [(xid.uuid, xid.code) for xid in snapshot.xids] == [(UUIDS["gpu1"], 79)]


def test_a_process_with_both_contexts_is_a_computation(driver, reader):
    one = {"pid": 7, "usedGpuMemory": 5, "gpuInstanceId": None, "computeInstanceId": None}
    driver.answers["nvmlDeviceGetComputeRunningProcesses"] = [one]
    driver.answers["nvmlDeviceGetGraphicsRunningProcesses"] = [one, {**one, "pid": 8}]
    processes = reader.read().gpus[0].processes
    assert [(process.pid, process.graphics) for process in processes] == [(7, False), (8, True)]


def test_half_a_process_list_is_no_list(driver, reader):
    driver.errors["gpu0", "nvmlDeviceGetComputeRunningProcesses"] = UNKNOWN
    driver.answers["nvmlDeviceGetGraphicsRunningProcesses"] = []
    assert reader.read().gpus[0].processes is None


def test_xids_that_are_pending_when_the_number_of_gpus_changes_are_taken_first(driver, reader):
    reader.read()
    driver.count = 1
    driver.events = [{"device": "gpu1", "xid": 79}]
    snapshot = reader.read()
    assert [(xid.uuid, xid.code) for xid in snapshot.xids] == [(UUIDS["gpu1"], 79)]
    forgets = driver.calls.index(("nvmlShutdown", None))
    assert ("nvmlEventSetWait", None) in driver.calls[forgets - 3 : forgets]


def test_no_process_list_is_not_an_empty_one(reader):
    assert reader.read().gpus[0].processes is None
