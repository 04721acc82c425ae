"""Who is on GPUs, and for how long that is believed of a board that says nothing."""

from dataclasses import replace

import pytest

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.roll import PATIENCE_SECONDS, OnGpus, Roll, RollCall, roll_of
from seedance_obs.merge import MergedGpu
from tests.exporter.books.boards import JOB, VISION, board, running

A, B = board("GPU-a"), board("GPU-b")


def on(gpu: MergedGpu, *pids: int) -> list[Seat]:
    """A job with these processes on a board."""
    return [Seat("job", JOB, gpu, None, pids, 1, 0.5)]


FULL, OTHER = board("GPU-a", processes=running(7, 8)), board("GPU-b", processes=running(9))


def test_an_account_has_its_pids_and_boards_together_and_nobodys_are_left_out():
    seats = [
        Seat("job", JOB, A, None, (7, 8), 1, 0.5),
        Seat("job", JOB, B, None, (8, 9), 1, None),
        Seat("vision", VISION, B, None, (), 0, 0.0),
        Seat("unknown", UNKNOWN_WORKLOAD, B, None, (10,), 1, None),
    ]
    assert roll_of(seats) == {
        "job": OnGpus(JOB, {7, 8, 9}, {"GPU-a": 0.5, "GPU-b": None}),
        "vision": OnGpus(VISION, set(), {"GPU-b": 0.0}),
    }


SILENT = {
    "missing": [],
    "without a list": [board("GPU-a", processes=None)],
    "with a list of nobody's processes": [board("GPU-a", processes=running(7, 8))],
}


@pytest.mark.parametrize("boards", SILENT.values(), ids=SILENT)
def test_who_was_on_a_board_is_still_while_it_is_silent(boards):
    call = RollCall()
    call.call([FULL, OTHER], [*on(FULL, 7, 8), *on(OTHER, 9)], 0.0)
    roll = call.call([*boards, OTHER], on(OTHER, 9), 1.0)
    assert roll.accounts == {"job": OnGpus(JOB, {7, 8, 9}, {"GPU-a": None, "GPU-b": 0.5})}
    assert roll.pids == {7, 8, 9}
    assert roll.remembered == (
        set() if boards == SILENT["with a list of nobody's processes"] else {7, 8}
    )


def test_who_has_left_a_board_that_speaks_goes_at_once():
    call = RollCall()
    call.call([FULL], on(FULL, 7, 8), 0.0)
    assert call.call([board("GPU-a", processes=())], [], 1.0) == Roll()
    call.call([FULL], on(FULL, 7, 8), 2.0)
    call.call([], [], 3.0)
    assert call.call([board("GPU-a", processes=())], [], 4.0) == Roll(), "silence changes nothing"
    call.call([FULL], on(FULL, 7, 8), 5.0)
    desktop = board("GPU-a", processes=(replace(running(5)[0], graphics=True),))
    assert call.call([desktop], [], 6.0) == Roll(pids=frozenset({5}))


def test_a_board_that_is_silent_for_too_long_is_forgotten():
    call = RollCall()
    call.call([FULL], on(FULL, 7, 8), 100.0)
    assert call.call([], [], 100.0 + PATIENCE_SECONDS).accounts.keys() == {"job"}
    assert call.call([], [], 100.1 + PATIENCE_SECONDS) == Roll()
    assert call.call([], [], 101.0) == Roll(), "what is forgotten does not come back"


def test_who_is_given_a_silent_board_is_on_it_beside_who_was():
    call, silent = RollCall(), board("GPU-a", processes=None)
    call.call([FULL], on(FULL, 7, 8), 0.0)
    given = [
        Seat("vision", VISION, silent, None, (), 0, 0.2),
        Seat("job", JOB, silent, None, (), 0, 0.3),
    ]
    assert call.call([silent], given, 1.0).accounts == {
        "job": OnGpus(JOB, {7, 8}, {"GPU-a": 0.3}),
        "vision": OnGpus(VISION, set(), {"GPU-a": 0.2}),
    }


def test_a_board_that_never_spoke_has_whom_it_was_given_to():
    silent = board("GPU-a", processes=None)
    seats = [Seat("vision", VISION, silent, None, (), 0, 0.2)]
    assert RollCall().call([silent], seats, 0.0) == Roll(
        accounts={"vision": OnGpus(VISION, set(), {"GPU-a": 0.2})}
    )
