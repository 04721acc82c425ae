"""Memory-time of boards, all instances of a board together."""

from seedance_obs.exporter.leaks.held import HeldOnBoards
from seedance_obs.leaks.board_detectors import BoardLimits
from seedance_obs.leaks.board_sight import BoardSight

GIB = 2**30


def sight(at: float, instance: int | None = None, *, used: int = GIB, busy: float = 0.0):
    return BoardSight(
        "GPU-a", at, gpu_instance=instance, memory_used_bytes=used, sm_active_ratio=busy
    )


def test_a_sight_stands_for_the_time_since_the_one_before_and_a_gap_for_none():
    held = HeldOnBoards(BoardLimits(gap_seconds=45.0))
    for at in (100.0, 101.0, 103.0, 200.0, 201.0, 150.0):
        held.note(sight(at))
    found = held.by_board()["GPU-a"]
    assert (found.seconds, found.byte_seconds, found.idle_byte_seconds) == (4, 4 * GIB, 4 * GIB)


def test_instances_of_a_board_add_up():
    held = HeldOnBoards(BoardLimits())
    for at in (0.0, 10.0):
        held.note(sight(at, 1))
        held.note(sight(at, 2, used=2 * GIB, busy=0.5))
    found = held.by_board()["GPU-a"]
    assert (found.byte_seconds, found.idle_byte_seconds) == (30 * GIB, 10 * GIB)
