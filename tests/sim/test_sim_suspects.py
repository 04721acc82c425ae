"""The truth of what leaks or lies idle, and the machine that has one of each."""

from functools import cache
from pathlib import Path

import pytest
from one_gpu import machine_with

from seedance_obs.leaks.suspect import KINDS
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.suspects import STEP_S, Suspect, suspects

POD = {"namespace": "n", "name": "p", "container": "c"}
NEIGHBOURS = {"fd-sawtooth", "probe-job"}
# How long a probe waits at its defaults before it says so.
WAITS_S = {
    "pseudo_idle_context": 1800,
    "dead_pid_memory": 300,
    "memory_without_process": 300,
    "busy_without_process": 300,
    "allocated_without_process": 1800,
    "spinning": 600,
}


def kinds(*workloads: dict[str, object], t: float = 100.0, **changes: object) -> dict[str, float]:
    found = suspects(machine_with(*workloads, **changes), t)
    return {each.kind: each.since for each in found}


@cache
def long_enough(t: float) -> list[Suspect]:
    found = suspects(load_machine("leaky"), t)
    return [each for each in found if t - each.since >= WAITS_S.get(each.kind, 0)]


def test_an_honest_job_is_no_suspect() -> None:
    assert kinds({}) == {}


def test_growth_lasts_from_the_start_until_the_limit() -> None:
    leak = {"start_s": 10, "fds": 100, "fds_per_s": 10, "fd_limit": 1000}
    assert kinds(leak, t=20) == {"fd_growth": 8}
    near = kinds(leak, t=90)
    assert near["fd_growth"] == 8
    assert near["fd_near_limit"] == pytest.approx(8 + 70, abs=STEP_S)
    assert kinds(leak, t=200) == {"fd_near_limit": pytest.approx(78, abs=STEP_S)}
    assert kinds(leak | {"fds_reset_s": 30}, t=90) == {}
    assert kinds({"start_s": 10, "anonymous_mb_per_h": 50}) == {"anonymous_growth": 8}


def test_memory_is_sparse_where_little_of_much_is_resident() -> None:
    arena = {"anonymous_mb": 1800, "file_mb": 300, "data_mb": 8000}
    assert kinds(arena) == {"sparse_residency": -2}
    assert kinds(arena | {"file_mb": 50}) == {}
    assert kinds(arena | {"data_mb": 5000}) == {}


def test_a_context_is_idle_from_its_last_activity() -> None:
    job = {"start_s": 10, "phases": [[20, 0.5], [500, 0.001]]}
    assert kinds(job, t=25) == {}
    assert kinds(job, t=100) == {"pseudo_idle_context": pytest.approx(30, abs=STEP_S)}
    assert kinds(job | {"memory_mib": 511}, t=100) == {}
    assert kinds({"start_s": 10, "phases": [[1, 0]]}, t=100) == {"pseudo_idle_context": 10}


def test_the_dead_hold_memory_from_their_end() -> None:
    zombie = {"guise": "zombie", "start_s": 10, "duration_s": 20}
    assert kinds(zombie, t=29) == {}
    assert kinds(zombie, t=100) == {"dead_pid_memory": 30}
    assert kinds(zombie | {"memory_mib": 500}, t=100) == {}


def test_a_ghost_is_a_suspect_while_no_process_is_listed() -> None:
    ghost = {"guise": "ghost", "start_s": 20, "share": 0.5, "phases": [[1, 0.5]]}
    assert kinds(ghost) == {
        "memory_without_process": 20,
        "busy_without_process": pytest.approx(20, abs=1 + STEP_S),
    }
    assert kinds(ghost | {"phases": [[1, 0.1]]}) == {"memory_without_process": 20}
    assert set(kinds(ghost | {"memory_mib": 100})) == {"busy_without_process"}
    other = {"name": "other", "share": 0.5, "start_s": 30, "duration_s": 30}
    assert kinds(ghost, other, t=40) == {}
    assert kinds(ghost, other)["memory_without_process"] == pytest.approx(60, abs=STEP_S)


def test_a_holder_is_a_suspect_from_its_start() -> None:
    holder = {"name": "job", "tenant": "vision", "kind": "training", "gpus": [0], "pod": POD}
    workloads = [holder | {"guise": "holder", "start_s": 7}]
    assert kinds(kubernetes=True, workloads=workloads) == {"allocated_without_process": 7}


def test_full_use_at_little_power_is_spinning() -> None:
    spin = {"kind": "spinning", "phases": [[1, 1.0]], "intensity": 0.005, "start_s": 10}
    assert kinds(spin) == {"spinning": pytest.approx(11, abs=STEP_S)}
    assert kinds(spin | {"intensity": 0.5}) == {}
    assert kinds(spin | {"phases": [[1, 0.9]]}) == {}


def test_a_lost_board_has_no_suspects() -> None:
    lost = [{"at_s": 50, "gpu": 0, "lost": True}]
    assert set(kinds({"phases": [[1, 0]]}, t=40, faults=lost)) == {"pseudo_idle_context"}
    assert kinds({"phases": [[1, 0]]}, faults=lost) == {}


@pytest.mark.parametrize("name", sorted(set(machine_names()) - {"leaky"}))
def test_the_other_machines_have_no_suspect_that_lasts(name: str) -> None:
    machine = load_machine(name)
    for t in (30.0, 3000.0):
        found = suspects(machine, t)
        assert {each.kind for each in found} <= {"pseudo_idle_context"}  # a phase without activity
        assert all(t - each.since < 100 for each in found)


def test_the_leaky_machine_has_one_of_every_kind_within_two_hours() -> None:
    seen: dict[str, set[str | int | None]] = {}
    for t in range(0, 7201, 300):
        for each in long_enough(float(t)):
            seen.setdefault(each.kind, set()).add(each.workload or each.gpu)
    assert {kind: len(whose) for kind, whose in seen.items()} == dict.fromkeys(KINDS, 1)


def test_the_neighbours_of_the_leaky_machine_stay_quiet() -> None:
    machine = load_machine("leaky")
    assert {workload.name for workload in machine.workloads} >= NEIGHBOURS
    for t in range(0, 7201, 300):
        assert not NEIGHBOURS & {each.workload for each in long_enough(float(t))}


def test_at_one_moment_all_but_the_ghosts_are_there() -> None:
    ghosts = {"memory_without_process", "busy_without_process"}
    assert {each.kind for each in long_enough(5900.0)} == set(KINDS) - ghosts


def test_the_truth_knows_nothing_of_the_probes() -> None:
    folder = Path(__file__).parents[2] / "seedance_obs/sources/sim"
    for file in folder.glob("*.py"):
        assert "seedance_obs.leaks" not in file.read_text()
