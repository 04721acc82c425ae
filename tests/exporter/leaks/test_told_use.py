"""A process that the driver does not tell of is idle only where the others explain the board."""

import random

import pytest

from seedance_obs.exporter.leaks.told_use import ToldUse
from seedance_obs.sources.readings import ProcessUse
from tests.exporter.books.boards import board, instance, reading, running


def use_at(use, at, busy, *told, **more):
    """The SM activity of processes 7 and 8 at one tick; None where unknown."""
    values = {"utilization_ratio": busy, **more}
    gpu = board(
        listed_at=float(at),
        readings={name: reading(value) for name, value in values.items() if value is not None},
        processes=running(7, 8),
        process_use=tuple(told),
    )
    found = use.of(gpu)
    return [found[pid].sm_ratio if pid in found else None for pid in (7, 8)]


def test_who_is_missing_where_the_others_explain_the_board_did_nothing():
    use = ToldUse()
    for at in range(50):
        assert use_at(use, at, 0.9, ProcessUse(7, 0.6)) == [0.6, 0.0]


@pytest.mark.parametrize("busy", [1.0, 0.02], ids=["busy", "hardly busy"])
def test_who_is_missing_where_nobody_explains_the_board_is_unknown_soon(busy):
    use = ToldUse()
    found = [use_at(use, at, busy) for at in range(500)]
    assert found[-1] == [None, None]
    assert found.count([0.0, 0.0]) <= 5 / busy


def test_who_is_told_of_is_known_even_there():
    use = ToldUse()
    for at in range(20):
        found = use_at(use, at, 1.0, ProcessUse(7, 0.1))
    assert found == [0.1, None]


def test_a_board_that_does_nothing_needs_no_explanation():
    use = ToldUse()
    for at in range(50):
        assert use_at(use, at, 0.0) == [0.0, 0.0]


def test_a_board_whose_own_activity_is_unknown_is_not_explained():
    assert use_at(ToldUse(), 0, None, ProcessUse(7, 0.6)) == [0.6, None]
    use = ToldUse()
    use_at(use, 0, 0.6, ProcessUse(7, 0.6))
    assert use_at(use, 1, None, ProcessUse(7, 0.6)) == [0.6, 0.0]  # as it was just before


def test_bursts_that_the_board_shows_earlier_than_its_processes_are_explained():
    use, bursts = ToldUse(), random.Random(5)
    for at in range(5000):
        busy = float(bursts.random() < 0.2)
        assert use_at(use, at, busy, ProcessUse(7, 0.2)) == [0.2, 0.0]


def test_a_reading_that_is_shown_again_does_not_add_up():
    use = ToldUse()
    for _ in range(50):
        assert use_at(use, 0, 1.0, ProcessUse(7, 0.2)) == [0.2, 0.0]


def test_once_explained_again_a_missing_process_is_idle_again():
    use = ToldUse()
    for at in range(1000):
        use_at(use, at, 1.0)
    found = [use_at(use, at, 1.0, ProcessUse(7, 0.9)) for at in range(1000, 1010)]
    assert found[0] == [0.9, None]
    assert found[-1] == [0.9, 0.0]


def test_video_that_nobody_is_told_to_handle_is_not_explained():
    use, told = ToldUse(), ToldUse()
    for at in range(50):
        nobodys = use_at(use, at, 0.0, encoder_utilization_ratio=0.4)
        ours = ProcessUse(7, 0.0, encoder_ratio=0.4)
        explained = use_at(told, at, 0.0, ours, encoder_utilization_ratio=0.4)
    assert (nobodys, explained) == ([None, None], [0.0, 0.0])


def test_of_a_board_in_mig_mode_and_where_the_driver_does_not_tell_nothing_is_known():
    both = {"processes": running(7), "readings": {"utilization_ratio": reading(0.0)}}
    assert ToldUse().of(board(**both)) == {}
    assert ToldUse().of(board(**both, process_use=(), mig=(instance(1, 3),))) == {}
