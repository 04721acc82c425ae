"""The scenarios that attribution is judged by are what their names say."""

from pathlib import Path

import pytest

from seedance_obs.sources.sim.loading import read_machine
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import boards
from seedance_obs.sources.sim.truth import truth

FOLDER = Path(__file__).parent / "scenarios"
NAMES = sorted(file.stem for file in FOLDER.glob("*.yaml") if not file.stem.startswith("base-"))


def scenario(name: str) -> Machine:
    return read_machine(FOLDER / f"{name}.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_every_board_is_idle_for_a_minute_so_that_its_floor_can_be_measured(name: str) -> None:
    found = truth(scenario(name), 0, 60, step_s=0.1)
    assert found.runs == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_tenant_has_a_namespace_of_its_own(name: str) -> None:
    for workload in scenario(name).workloads:
        assert workload.pod is not None
        assert workload.pod.namespace == workload.tenant


@pytest.mark.parametrize("name", [name for name in NAMES if "intensities" not in name])
def test_sharers_burn_alike_where_the_scenario_is_not_about_that(name: str) -> None:
    assert {workload.intensity for workload in scenario(name).workloads} == {1.0}


@pytest.mark.parametrize("name", ["churn", "churn-shared"])
def test_churn_is_two_hundred_pods_a_minute_on_eight_boards(name: str) -> None:
    machine = scenario(name)
    found = truth(machine, 120, 240, step_s=0.1)
    begun = [run for run in found.runs if run.run > 0]
    assert len(begun) / 2 == pytest.approx(200, rel=0.05)
    held = {held.gpu for workload in machine.workloads for held in workload.devices}
    assert held == set(range(8))


def test_bursts_of_three_tenants_meet_on_one_board() -> None:
    (board,) = boards(scenario("time-slicing"))
    at_once = {
        sum(board.holding_watts(held, 100 + step * 0.01) > 100 for held in board.holdings)
        for step in range(3000)
    }
    assert at_once == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["intensities", "mig-intensities"])
def test_unlike_tenants_burn_unlike_energy_for_the_same_activity(name: str) -> None:
    found = truth(scenario(name), 0, 600, step_s=0.05).tenants
    per_second = {name: use.active_joules / use.active_seconds for name, use in found.items()}
    assert per_second["chat"] > 1.8 * per_second["search"]


def test_a_holder_that_does_nothing_burns_its_context_alone() -> None:
    machine = scenario("idle-holders")
    found = truth(machine, 100, 200, step_s=0.05)
    context = boards(machine)[0].model.context_watts
    assert found.tenants["risk"].active_joules == pytest.approx(100 * context / 2)
    assert found.tenants["risk"].active_seconds == 0
    assert found.tenants["chat"].active_joules > 5 * found.tenants["risk"].active_joules
