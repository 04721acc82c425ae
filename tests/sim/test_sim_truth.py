"""What the simulator calls the truth adds up, and is what a person would work out."""

import pytest
from one_gpu import machine_with

from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.physics import boards
from seedance_obs.sources.sim.truth import Run, truth


@pytest.mark.parametrize("name", machine_names())
def test_tenants_and_unallocated_add_up_to_the_boards(name: str) -> None:
    machine = load_machine(name)
    found = truth(machine, 1.5, 41.5, step_s=0.05)
    observed = sum(min(41.5, board.lost_at) - 1.5 for board in boards(machine))
    assert sum(found.joules.values()) == pytest.approx(sum(found.gpu_joules), rel=1e-9)
    assert sum(found.gpu_seconds.values()) == pytest.approx(observed, rel=1e-9)
    by_run = [sum(use.joules for use in found.runs.values()) + found.unallocated.joules]
    assert by_run == pytest.approx([sum(found.gpu_joules)], rel=1e-9)
    assert len(found.gpu_joules) == len(machine.gpus)


@pytest.mark.parametrize("name", machine_names())
def test_stepping_agrees_with_the_closed_form(name: str) -> None:
    machine = load_machine(name)
    found = truth(machine, 0.25, 30.25)
    exact = [board.energy_joules(30.25) - board.energy_joules(0.25) for board in boards(machine)]
    assert list(found.gpu_joules) == pytest.approx(exact, rel=2e-3)


def test_one_holder_has_the_whole_board_and_nobody_the_rest() -> None:
    machine = machine_with({"start_s": 10, "duration_s": 20})
    found = truth(machine, 0, 40)
    board = boards(machine)[0]
    held = board.energy_joules(30) - board.energy_joules(10)
    assert found.gpu_seconds == pytest.approx({"unallocated": 20, "vision": 20})
    assert found.joules["vision"] == pytest.approx(held)
    assert found.joules["unallocated"] == pytest.approx(20 * board.idle_watts)


def test_a_board_belongs_in_equal_parts_to_the_workloads_on_it() -> None:
    second = {"name": "second", "share": 0.2}
    other = {"name": "other", "tenant": "risk", "start_s": 10, "share": 0.2, "memory_mib": 5}
    machine = machine_with({"share": 0.2}, second, other)
    found = truth(machine, 0, 30)
    assert found.gpu_seconds == pytest.approx({"vision": 10 + 20 * 2 / 3, "risk": 20 / 3})
    idle = boards(machine)[0].idle_watts
    assert found.tenants["risk"].reserved_joules == pytest.approx(20 / 3 * idle)
    assert found.tenants["vision"].reserved_joules == pytest.approx((10 + 20 * 2 / 3) * idle)


def test_each_has_the_watts_that_its_own_context_and_activity_add() -> None:
    job = {"share": 0.5, "intensity": 0.5, "phases": [[1, 0.25], [1, 0.0]]}
    holder = {"name": "holder", "tenant": "risk", "share": 0.5, "phases": [[1, 0.0]]}
    machine = machine_with(job, holder)
    found = truth(machine, 0, 10)
    board = boards(machine)[0]
    span = board.model.limit_watts - board.idle_watts - board.model.context_watts
    context = 0.5 * board.model.context_watts
    busy = 0.5 * 0.5 * span * 0.25**0.7
    assert found.tenants["risk"].active_joules == pytest.approx(10 * context)
    assert found.tenants["vision"].active_joules == pytest.approx(10 * context + 5 * busy)
    assert found.tenants["risk"].active_seconds == 0
    assert found.tenants["vision"].active_seconds == pytest.approx(5 * 0.5 * 0.25)


def test_who_is_busy_beyond_its_part_is_so_in_the_idle_time_of_the_others() -> None:
    job = {"share": 0.75, "phases": [[1, 1.0]]}
    other = {"name": "other", "tenant": "risk", "share": 0.25, "phases": [[1, 0.4]]}
    found = truth(machine_with(job, other), 0, 10).tenants
    assert (found["vision"].active_seconds, found["risk"].active_seconds) == pytest.approx((7.5, 1))
    assert found["vision"].reserved_seconds == 0
    assert found["risk"].reserved_seconds == pytest.approx(1.5)


def test_an_instance_holds_its_slices_and_free_ones_are_unallocated() -> None:
    machine = load_machine("h100-mig")
    found = truth(machine, 0, 10)
    board = boards(machine)[0]
    ranking = found.runs[Run("search-ranking", 0)]
    assert ranking.gpu_seconds == pytest.approx(10 * 3 / 7)
    assert ranking.reserved_joules == pytest.approx(10 * board.idle_watts * 3 / 7)
    assert ranking.active_seconds == pytest.approx(3 / 7 * (6 * 0.8 + 4 * 0.35))
    assert found.runs[Run("wake-word", 0)].gpu_seconds == pytest.approx(10 * 3 / 7)
    assert found.unallocated.gpu_seconds == pytest.approx(10 * (1 / 7 + 5))
    assert found.unallocated.active_joules == 0


def test_each_run_of_a_workload_is_told_apart() -> None:
    found = truth(machine_with({"start_s": 2, "duration_s": 3, "repeat_every_s": 4}), 0, 10)
    seconds = {run: use.gpu_seconds for run, use in found.runs.items()}
    assert seconds == pytest.approx({Run("job", 0): 3, Run("job", 1): 3})
    assert found.unallocated.gpu_seconds == pytest.approx(4)


def test_a_lost_board_counts_no_more() -> None:
    lost = [{"at_s": 4, "gpu": 0, "lost": True}]
    machine = machine_with({}, faults=lost)
    assert truth(machine, 0, 10).gpu_seconds == pytest.approx({"vision": 4})
    assert truth(machine, 5, 10).gpu_joules == (0.0,)
    assert truth(machine, 5, 10).gpu_seconds == {}


def test_nothing_happens_in_no_time() -> None:
    found = truth(machine_with({}), 5, 5)
    assert (found.gpu_seconds, found.joules, found.gpu_joules) == ({}, {}, (0.0,))
    assert found.runs == {}


def test_what_a_ghost_draws_is_nobodys() -> None:
    machine = machine_with({"guise": "ghost", "start_s": 5})
    found, board = truth(machine, 0, 10), boards(machine)[0]
    assert found.gpu_seconds == pytest.approx({"unallocated": 10})
    assert found.unallocated.reserved_joules == pytest.approx(10 * board.idle_watts)
    active = 5 * (board.power_watts(6) - board.idle_watts)
    assert found.unallocated.active_joules == pytest.approx(active)


def test_who_holds_a_board_and_runs_nothing_reserves_it() -> None:
    holder = {"name": "shell", "tenant": "risk", "kind": "training", "gpus": [0]}
    pod = {"namespace": "n", "name": "p", "container": "c"}
    workloads = [holder | {"guise": "holder", "start_s": 4, "pod": pod}]
    machine = machine_with(kubernetes=True, workloads=workloads)
    found = truth(machine, 0, 10)
    assert found.gpu_seconds == pytest.approx({"unallocated": 4, "risk": 6})
    assert found.tenants["risk"].active_joules == 0
    assert found.gpu_joules[0] == pytest.approx(10 * boards(machine)[0].idle_watts)
