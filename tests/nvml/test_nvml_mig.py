"""How large MIG devices are and which processes are on them, whatever of it a driver refuses."""

from pathlib import Path

import pytest

from seedance_obs.sources.nvml.library import NO_PERMISSION, UNKNOWN, NvmlError
from seedance_obs.sources.nvml.mig import profile_slices
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.readings import GpuProcess
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.library import SimNvml

QUARTERS = Path(__file__).parent.parent / "nvml_abi/a30-mig.yaml"
COMPUTING = "nvmlDeviceGetComputeRunningProcesses"
ATTRIBUTES = "nvmlDeviceGetAttributes_v2"
PROFILE = "nvmlDeviceGetGpuInstanceProfileInfo"


def board(machine, changes, clock):
    """The first board of a simulated machine, some answers replaced by function or whole call."""
    return opened(machine, changes, clock)[0].read().gpus[0]


def opened(machine, changes, clock):
    library = SimNvml(load_machine(machine), clock)

    class Changed:
        def __init__(self):
            self.calls = []

        def call(self, function, device=None, *args):
            self.calls.append((function, device, *args))
            for key in ((function, device, *args), (function, device), function):
                if key in changes:
                    if isinstance(changes[key], NvmlError):
                        raise changes[key]
                    return changes[key]
            return library.call(function, device, *args)

    driver = Changed()
    reader = NvmlReader(driver, monotonic=clock)
    reader.start()
    return reader, driver


@pytest.mark.parametrize(
    ("machine", "slices", "whole"), [("h100-mig", [3, 2, 1, 1], 7), (QUARTERS, [2, 1], 4)]
)
def test_instances_are_slices_of_their_board(clock, machine, slices, whole):
    gpu, other = opened(machine, {}, clock)[0].read().gpus[:2]
    assert [instance.slices for instance in gpu.mig] == slices
    assert (gpu.mig_slices, gpu.process_use) == (whole, None)
    assert other.mig_slices is None


def test_a_compute_instance_has_its_own_slices_of_the_gpu_instance(clock):
    attributes = {"gpuInstanceSliceCount": 3, "computeInstanceSliceCount": 1}
    changes = {(ATTRIBUTES, "gpu0/mig0"): attributes}
    changes[ATTRIBUTES, "gpu0/mig1"] = {"gpuInstanceSliceCount": 2, "computeInstanceSliceCount": 0}
    mig = board("h100-mig", changes, clock).mig
    assert [instance.slices for instance in mig] == [1, 2, 1, 1]


def test_a_profile_says_how_large_an_instance_is_where_its_attributes_are_refused(clock):
    changes = {ATTRIBUTES: NvmlError(NO_PERMISSION)}
    mig = board("h100-mig", changes, clock).mig
    assert [instance.slices for instance in mig] == [3, 2, 1, 1]


@pytest.mark.parametrize(
    ("profile", "slices"),
    [("3g.40gb", 3), ("1c.3g.40gb", 1), ("2c.7g.80gb", 2), ("1g.10gb+me", 1), ("all", None)],
)
def test_a_profile_name_starts_with_its_slices(profile, slices):
    assert profile_slices(profile) == slices


def test_a_board_has_as_many_slices_as_devices_where_its_profiles_are_refused(clock):
    changes = {PROFILE: NvmlError(NO_PERMISSION)}
    assert board(QUARTERS, changes, clock).mig_slices == 4
    changes["nvmlDeviceGetMaxMigDeviceCount"] = NvmlError(UNKNOWN)
    assert board(QUARTERS, changes, clock).mig_slices is None


def test_what_lasts_of_mig_devices_is_asked_once(clock):
    reader, driver = opened("h100-mig", {}, clock)
    reader.read()
    driver.calls.clear()
    assert reader.read().gpus[0].mig_slices == 7
    assert not [call for call in driver.calls if call[0] in (ATTRIBUTES, PROFILE)]


def test_processes_are_on_the_instance_that_the_board_names(clock):
    processes = board("h100-mig", {}, clock).processes
    assert {(one.gpu_instance, one.compute_instance) for one in processes} == {
        (2, 0),
        (3, 0),
        (9, 0),
    }


def unplaced(processes):
    names = ("pid", "usedGpuMemory")
    return [
        dict.fromkeys(("gpuInstanceId", "computeInstanceId")) | {k: p[k] for k in names}
        for p in processes
    ]


@pytest.mark.parametrize("refused", [True, False])
def test_each_device_is_asked_where_the_board_does_not_place_its_processes(clock, refused):
    library = SimNvml(load_machine("h100-mig"), clock)
    library.call("nvmlInit")
    truth = board("h100-mig", {}, clock).processes
    whole = NvmlError(NO_PERMISSION) if refused else unplaced(library.call(COMPUTING, "gpu0"))
    changes = {(COMPUTING, "gpu0"): whole}
    for slot in range(4):
        changes[COMPUTING, f"gpu0/mig{slot}"] = unplaced(library.call(COMPUTING, f"gpu0/mig{slot}"))
    assert board("h100-mig", changes, clock).processes == truth


def test_devices_without_processes_are_an_empty_list_and_a_refusal_is_none(clock):
    changes = {(COMPUTING, f"gpu0/mig{slot}"): [] for slot in range(4)}
    changes[COMPUTING, "gpu0"] = NvmlError(NO_PERMISSION)
    assert board("h100-mig", changes, clock).processes == ()
    changes[COMPUTING, "gpu0/mig2"] = NvmlError(NO_PERMISSION)
    assert board("h100-mig", changes, clock).processes is None


def test_a_process_that_no_device_places_is_still_one_of_the_board(clock):
    entry = {"pid": 7, "usedGpuMemory": 5, "gpuInstanceId": None, "computeInstanceId": None}
    changes = {(COMPUTING, "gpu0"): [entry]}
    changes |= {(COMPUTING, f"gpu0/mig{slot}"): NvmlError(UNKNOWN) for slot in range(4)}
    assert board("h100-mig", changes, clock).processes == (GpuProcess(7, 5),)
