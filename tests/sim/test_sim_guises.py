"""What the driver, the host and the kubelet say of those that are not what they seem."""

from pathlib import Path
from typing import Any

import pytest
from one_gpu import machine_with

from seedance_obs.sources.nvml.library import NOT_FOUND, NvmlError
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_proc
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.page import render_page
from seedance_obs.sources.sim.physics import boards

MIB = 2**20
POD = {"namespace": "n", "name": "p", "container": "c"}
HOLDER = {"name": "job", "tenant": "vision", "kind": "training", "gpus": [0], "guise": "holder"}


def asked(machine: Machine, t: float, function: str, *args: int) -> Any:
    library = SimNvml(machine, lambda: t)
    library.call("nvmlInit")
    return library.call(f"nvmlDeviceGet{function}", "gpu0", *args)


def listed(machine: Machine, t: float) -> list[tuple[int, int]]:
    processes = asked(machine, t, "ComputeRunningProcesses")
    return [(each["pid"], each["usedGpuMemory"] // MIB) for each in processes]


def used_mib(machine: Machine, t: float) -> int:
    return int(asked(machine, t, "MemoryInfo_v2")["used"]) // MIB


def watts(machine: Machine, t: float) -> float:
    return float(asked(machine, t, "PowerUsage")) / 1000


def host_pids(machine: Machine, root: Path, t: float) -> set[int]:
    write_proc(machine, root, t)
    return {int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdecimal()}


def test_a_zombie_stays_on_the_drivers_list_and_leaves_the_host(tmp_path: Path) -> None:
    machine = machine_with({"guise": "zombie", "start_s": 2, "duration_s": 10})
    ((pid, memory),) = listed(machine, 5)
    assert memory == 1000
    assert host_pids(machine, tmp_path, 5) == {pid}
    for t in (12, 1000):
        assert listed(machine, t) == [(pid, 1000)]
        assert used_mib(machine, t) == 1000
        assert host_pids(machine, tmp_path, t) == set()
        assert asked(machine, t + 1, "UtilizationRates")["gpu"] == 0
    assert listed(machine, 1) == []
    with pytest.raises(NvmlError) as caught:
        asked(machine, 1000, "ProcessUtilization", 0)
    assert caught.value.code == NOT_FOUND


def test_a_ghost_uses_the_board_and_nobody_is_listed(tmp_path: Path) -> None:
    machine = machine_with({"guise": "ghost", "start_s": 2, "duration_s": 10})
    idle = boards(machine)[0].idle_watts
    assert (listed(machine, 5), used_mib(machine, 5)) == ([], 1000)
    assert asked(machine, 5, "UtilizationRates")["gpu"] == 50
    assert watts(machine, 5) > idle + 50
    assert host_pids(machine, tmp_path, 5) == set()
    assert (used_mib(machine, 13), watts(machine, 13)) == (0, pytest.approx(idle, abs=0.001))


def test_a_holder_has_a_process_on_the_host_and_none_on_the_board(tmp_path: Path) -> None:
    machine = machine_with(kubernetes=True, workloads=[HOLDER | {"pod": POD}])
    assert (listed(machine, 5), used_mib(machine, 5)) == ([], 0)
    assert watts(machine, 5) == pytest.approx(boards(machine)[0].idle_watts, abs=0.001)
    assert len(host_pids(machine, tmp_path, 5)) == 1


def test_only_what_lives_is_mapped_to_a_pod_by_dcgm() -> None:
    job = {"guise": "zombie", "duration_s": 10, "pod": POD}
    machine = machine_with(job, kubernetes=True, dcgm_interval_s=1)
    assert 'pod="p"' in render_page(machine, 5)
    assert 'pod="p"' not in render_page(machine, 11)


def test_one_that_spins_looks_fully_used_and_draws_little() -> None:
    machine = load_machine("leaky")
    board, t = boards(machine)[2], 3000.0
    (dead, spinning) = board.listed(t)
    if dead.workload.name != "crashed":
        dead, spinning = spinning, dead
    assert board.busy_ratio(t) == 1
    assert 0.01 < board.busy_ratio(t, of="sm") < 0.2
    assert board.busy_ratio(t, of="dram") == 0
    way = (board.power_watts(t) - board.idle_watts) / (board.model.limit_watts - board.idle_watts)
    assert way < 0.1
    library = SimNvml(machine, lambda: t)
    library.call("nvmlInit")
    samples: Any = library.call("nvmlDeviceGetProcessUtilization", "gpu2", 0)
    assert {(each["pid"], each["smUtil"]) for each in samples} == {(spinning.pid, 100)}
