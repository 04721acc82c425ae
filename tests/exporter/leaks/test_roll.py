from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.leaks.roll import OnGpus, roll_of
from tests.exporter.books.boards import JOB, VISION, board

A, B = board("GPU-a"), board("GPU-b")


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
