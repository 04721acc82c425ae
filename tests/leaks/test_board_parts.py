"""Which part of what the books have of a board is a finding's own."""

import pytest

from seedance_obs.leaks.board_detectors import DETECTORS, BoardLimits
from seedance_obs.leaks.board_parts import Parts
from seedance_obs.process_tree import ProcessName
from tests.leaks.board_scripts import GIB, SPIN, board, context

MINE, OTHERS = "team\x1fpod-a", "team\x1fpod-b"


def parts(kind, *sights):
    """The part of each finding of a kind, sight by sight."""
    known = Parts(sights)
    return [
        known.of(kind, seen, sight)
        for sight in sights
        for seen in DETECTORS[kind](sight, BoardLimits())
    ]


def of_pid(pid, account=MINE, **more):
    return context(process=ProcessName(pid, pid), account=account, **more)


def test_a_process_has_an_equal_part_of_what_its_account_has_of_the_board():
    busy, other = of_pid(8, sm_ratio=0.9), of_pid(9, OTHERS)
    elsewhere = board(of_pid(10), gpu_uuid="GPU-2")
    assert parts("pseudo_idle_context", board(of_pid(7), busy, other), elsewhere) == [0.5, 1.0, 1.0]
    dead = of_pid(11, alive=False)
    assert parts("dead_pid_memory", board(of_pid(7), busy, dead)) == [pytest.approx(1 / 3)]


def test_processes_on_all_instances_of_a_board_count_and_each_once():
    one = board(of_pid(7), of_pid(8), gpu_instance=1, compute_instance=0)
    same = board(of_pid(8), gpu_instance=1, compute_instance=1)
    two = board(of_pid(9), of_pid(10), gpu_instance=2)
    assert set(parts("pseudo_idle_context", one, same, two)) == {0.25}


def test_an_idle_holder_has_the_part_of_its_instance():
    idle = board(idle_holders=(MINE, OTHERS), gpu_instance=1, slices=1)
    works = board(of_pid(7, sm_ratio=0.9), of_pid(8), gpu_instance=2, slices=3)
    assert parts("allocated_without_process", idle, works) == [0.25, 1.0]


@pytest.mark.parametrize("kind", ["memory_without_process", "busy_without_process"])
def test_what_is_nobodys_is_a_part_of_what_nobody_holds(kind):
    shown = {"memory_used_bytes": GIB, "utilization_ratio": 1.0}
    assert parts(kind, board(**shown), board(**shown, free_ratio=0.25)) == [1.0, 0.25]


def test_who_spins_does_so_with_all_of_its_account():
    assert parts("spinning", board(of_pid(7), of_pid(8), **SPIN)) == [1.0]
