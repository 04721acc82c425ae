"""The simulated driver's samples of processes, and its byte counters, are what the machine did."""

from typing import Any

import pytest
from one_gpu import machine_with

from seedance_obs.sources.nvml.library import NOT_FOUND, NOT_SUPPORTED, NvmlError
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.kinds import KINDS
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import boards, runs_between
from seedance_obs.sources.sim.use_answers import EPOCH_US

USE = "nvmlDeviceGetProcessUtilization"
ALL_LINKS = 0xFFFFFFFF << 32


class Clock:
    def __init__(self, t: float) -> None:
        self.t = t

    def __call__(self) -> float:
        return self.t


def opened(machine: Machine, t: float) -> tuple[SimNvml, Clock]:
    clock = Clock(t)
    library = SimNvml(machine, clock)
    library.call("nvmlInit")
    return library, clock


def use(library: SimNvml, since: int = 0, device: str = "gpu0") -> Any:
    return library.call(USE, device, since)


def by_pid(samples: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for sample in samples:
        found.setdefault(sample["pid"], []).append(sample["smUtil"])
    return found


def test_a_sample_is_the_mean_of_a_sixth_of_a_second() -> None:
    library, _ = opened(machine_with({"phases": [[0.25, 1.0], [0.75, 0.2]]}), 1.0)
    samples = use(library)
    assert [sample["smUtil"] for sample in samples] == [100, 60, 20, 20, 20, 20]
    assert [sample["timeStamp"] - EPOCH_US for sample in samples] == [
        166_666,
        333_333,
        500_000,
        666_666,
        833_333,
        1_000_000,
    ]


def test_a_part_of_the_board_counts_as_that_part_of_its_time() -> None:
    machine = machine_with(
        {"name": "one", "share": 0.25, "phases": [[1, 1.0]]},
        {"name": "two", "share": 0.75, "phases": [[1, 0.4]], "kind": "video"},
    )
    samples = use(opened(machine, 0.2)[0])
    assert [sample["smUtil"] for sample in samples] == [25, 30]
    video = KINDS["video"]
    assert samples[1]["memUtil"] == round(30 * video.memory_busy)
    assert (samples[1]["encUtil"], samples[1]["decUtil"]) == (
        round(30 * video.encoder),
        round(30 * video.decoder),
    )


def test_each_sample_is_given_once_and_no_newer_one_is_not_found() -> None:
    library, clock = opened(machine_with({}), 1.1)
    newest = use(library)[-1]["timeStamp"]
    with pytest.raises(NvmlError) as refused:
        use(library, newest)
    assert refused.value.code == NOT_FOUND
    clock.t = 1.2
    assert [sample["timeStamp"] for sample in use(library, newest)] == [EPOCH_US + 1_166_666]


def test_the_driver_keeps_ten_seconds() -> None:
    samples = use(opened(machine_with({}), 100.0)[0])
    assert len(samples) == 60
    assert samples[0]["timeStamp"] == EPOCH_US + 90_166_666


def test_runs_that_end_and_begin_within_a_sample_are_processes_of_their_own() -> None:
    run = {"duration_s": 0.5, "repeat_every_s": 0.75, "phases": [[9, 1.0]]}
    library, _ = opened(machine_with(run), 1.5)
    first, second = by_pid(use(library)).values()
    assert first == [100, 100, 100]
    assert second == [50, 100, 100, 50]


def test_an_idle_process_has_samples_and_a_board_without_one_has_none() -> None:
    assert by_pid(use(opened(machine_with({"phases": [[1, 0.0]]}), 0.5)[0])).popitem()[1] == [0] * 3
    with pytest.raises(NvmlError) as refused:
        use(opened(machine_with(), 5.0)[0])
    assert refused.value.code == NOT_FOUND


def test_a_board_in_mig_mode_tells_nothing_of_its_processes_use() -> None:
    with pytest.raises(NvmlError) as refused:
        use(opened(load_machine("h100-mig"), 5.0)[0])
    assert refused.value.code == NOT_SUPPORTED


@pytest.mark.parametrize("name", ["a100-pcie", "h100-nvswitch", "l40s"])
def test_samples_add_up_to_what_the_board_did(name: str) -> None:
    machine = load_machine(name)
    library, _ = opened(machine, 12.0)
    for board in boards(machine):
        mean = sum(
            held.weight * mean
            for held in board.holdings
            for _, mean in runs_between(held, 6.0, 12.0)
        )
        if board.holdings:
            samples = use(library, EPOCH_US + 6_000_000, f"gpu{board.gpu.index}")
            found = sum(sample["smUtil"] for sample in samples) / 36 / 100
            assert found == pytest.approx(mean, abs=0.01)


def field(library: SimNvml, code: int) -> int | None:
    entries: Any = library.call("nvmlDeviceGetFieldValues", "gpu0", code)
    value: int | None = entries[0]["value"]
    return value


def test_byte_counters_are_the_integral_of_the_traffic() -> None:
    machine = machine_with({"phases": [[2, 0.5], [2, 1.0]]}, hidden_nvswitches={"links": 4})
    library, _ = opened(machine, 4.0)
    training = KINDS["training"]
    assert field(library, 197) == round(3 * training.pcie_transmit)
    assert field(library, 198) == round(3 * training.pcie_receive)
    half = int(3 * training.nvlink / 2 / 1024)
    assert [field(library, code | ALL_LINKS) for code in (138, 139)] == [half, half]


def test_byte_counters_of_what_is_not_there_are_refused() -> None:
    library, _ = opened(machine_with({}), 4.0)
    assert field(library, 138 | ALL_LINKS) is None, "no link is wired"
    assert field(opened(load_machine("h100-mig"), 4.0)[0], 197) is None
    assert field(opened(load_machine("v100-cubemesh"), 4.0)[0], 197) is None


def test_the_largest_profile_has_all_slices() -> None:
    library, _ = opened(load_machine("h100-mig"), 4.0)
    function = "nvmlDeviceGetGpuInstanceProfileInfo"
    whole: Any = library.call(function, "gpu0", 4)
    half: Any = library.call(function, "gpu0", 2)
    assert (whole["sliceCount"], whole["instanceCount"]) == (7, 1)
    assert (half["sliceCount"], half["instanceCount"]) == (3, 2)
    with pytest.raises(NvmlError):
        library.call(function, "gpu0", 5)
