"""Two hours of a simulated machine on which everything leaks or lies idle once."""

from collections.abc import Mapping

import pytest

from seedance_obs.leaks.suspect import KINDS
from seedance_obs.leaks.suspect import Suspect as Found
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.pods import pod_uid
from seedance_obs.sources.sim.suspects import Suspect, suspects
from tests.attribution.simulated_node import simulated_node

pytestmark = pytest.mark.long
MACHINE = load_machine("leaky")
STEP, CHECK, LAST = 15, 300, 7200
# For how long each kind must have been so before it is told, and by when it must be told. Growth
# is told three windows after it began, in a process that was watched for five: of 3 minutes for
# descriptors, of 20 for memory, whose first begins when the idle window of its workload opens.
NEEDED = {
    "fd_growth": (480, 960),
    "fd_near_limit": (0, 30),
    "anonymous_growth": (3600, 6600),
    "sparse_residency": (0, 60),
    "pseudo_idle_context": (1800, 1845),
    "dead_pid_memory": (300, 345),
    "memory_without_process": (300, 345),
    "busy_without_process": (300, 345),
    "allocated_without_process": (1800, 1845),
    "spinning": (600, 700),
}
LINGERS = 300  # a finding of growth that has ended is told for a window and a bucket more

Name = tuple[str, str]  # a kind, and the workload or the board


def truth_name(suspect: Suspect) -> Name:
    return suspect.kind, suspect.workload or f"GPU {suspect.gpu}"


def found_name(suspect: Found, boards: Mapping[str, int]) -> Name:
    if suspect.finding.kind in ("memory_without_process", "busy_without_process", "spinning"):
        return suspect.finding.kind, f"GPU {boards[suspect.finding.gpu_uuid]}"
    for workload in MACHINE.workloads:
        for run in range(6):
            uid = pod_uid(MACHINE, workload, run)
            if uid and suspect.workload.startswith(f"pod-{uid}-"):
                return suspect.finding.kind, workload.name
    return suspect.finding.kind, suspect.workload


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """What was found, what is true and for how long, at each check; and the last view."""
    found: dict[int, set[Name]] = {}
    true: dict[int, dict[Name, float]] = {}
    boards = {MACHINE.gpu_uuid(gpu.index): gpu.index for gpu in MACHINE.gpus}
    with simulated_node(MACHINE, tmp_path_factory.mktemp("leaky")) as simulated:
        for t in range(0, LAST + 1, STEP):
            simulated.step(float(t))
            simulated.node.probe()
            if t % CHECK == 0:
                view = simulated.node.assemble().leaks
                found[t] = {found_name(each, boards) for each in view.suspects}
                true[t] = {truth_name(each): t - each.since for each in suspects(MACHINE, float(t))}
    return found, true, view


def test_everything_that_has_lasted_long_enough_is_told(course):
    found, true, _ = course
    late = [
        (t, name, seconds)
        for t, those in true.items()
        for name, seconds in those.items()
        if seconds > NEEDED[name[0]][1] and name not in found[t]
    ]
    assert late == []


def test_nothing_else_is_told(course):
    found, true, _ = course
    early = []
    for t, names in found.items():
        lately = [(t - then, true[then]) for then in (t, t - LINGERS) if then in true]
        for name in names:
            lasted = max(those[name] + ago if name in those else 0.0 for ago, those in lately)
            if lasted < NEEDED[name[0]][0]:
                early.append((t, name, lasted))
    assert early == []


def test_each_kind_is_told_once(course):
    found, _, _ = course
    assert {kind for names in found.values() for kind, _ in names} == set(KINDS)
