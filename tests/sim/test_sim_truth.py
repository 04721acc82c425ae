"""What the simulator calls the truth adds up, and is what a person would work out."""

import pytest
from one_gpu import machine_with

from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.physics import boards
from seedance_obs.sources.sim.truth import truth


@pytest.mark.parametrize("name", machine_names())
def test_tenants_and_unallocated_add_up_to_the_boards(name: str) -> None:
    machine = load_machine(name)
    found = truth(machine, 1.5, 41.5, step_s=0.05)
    observed = sum(min(41.5, board.lost_at) - 1.5 for board in boards(machine))
    assert sum(found.joules.values()) == pytest.approx(sum(found.gpu_joules), rel=1e-9)
    assert sum(found.gpu_seconds.values()) == pytest.approx(observed, rel=1e-9)
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


def test_two_tenants_have_equal_parts_while_both_hold_however_many_processes() -> None:
    second = {"name": "second", "share": 0.2}
    other = {"name": "other", "tenant": "risk", "start_s": 10, "share": 0.2, "memory_mib": 5}
    machine = machine_with({"share": 0.6}, second, other)
    found = truth(machine, 0, 30)
    assert found.gpu_seconds == pytest.approx({"vision": 20, "risk": 10})
    board = boards(machine)[0]
    both = board.energy_joules(30) - board.energy_joules(10)
    assert found.joules["risk"] == pytest.approx(both / 2, rel=1e-6)


def test_a_lost_board_counts_no_more() -> None:
    lost = [{"at_s": 4, "gpu": 0, "lost": True}]
    machine = machine_with({}, faults=lost)
    assert truth(machine, 0, 10).gpu_seconds == pytest.approx({"vision": 4})
    assert truth(machine, 5, 10).gpu_joules == (0.0,)
    assert truth(machine, 5, 10).gpu_seconds == {}


def test_nothing_happens_in_no_time() -> None:
    found = truth(machine_with({}), 5, 5)
    assert (found.gpu_seconds, found.joules, found.gpu_joules) == ({}, {}, (0.0,))
