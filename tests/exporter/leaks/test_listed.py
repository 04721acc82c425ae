"""Who is on a board is known for as long as its driver goes on listing them."""

import pytest

from seedance_obs.exporter.leaks.listed import FORGOTTEN_SECONDS, Alive, ListedProcesses
from seedance_obs.process_tree import ProcessName
from tests.exporter.books.boards import board, running

TRAIN, POSTGRES = ProcessName(7, 70, "train"), ProcessName(7, 9_000, "postgres")
LIVES, TAKEN = {7: Alive(TRAIN, alive=True)}, {7: Alive(POSTGRES, alive=True)}
GONE = {7: Alive(ProcessName(7, None), alive=False)}
MINE = {7: "ml\x1fjob"}


def told(listed, at, found, accounts=None, pids=(7,), uuid="GPU-a"):
    """What is known of process 7 after a tick; None where nothing is."""
    processes = None if pids is None else running(*pids)
    gpu = board(uuid, listed_at=float(at), processes=processes)
    each = listed.note(gpu, found, accounts or {}).get(7)
    return each and (each.name, each.alive, each.owner)


def test_before_the_first_probe_a_process_is_a_pid():
    assert told(ListedProcesses(), 0, {}) == (ProcessName(7, None), None, "")


def test_a_probe_that_cannot_read_a_process_changes_nothing():
    listed = ListedProcesses()
    for at, found in ((0, LIVES), (15, {}), (30, {7: Alive(ProcessName(7, None), alive=None)})):
        assert told(listed, at, found) == (TRAIN, True, "")


@pytest.mark.parametrize("ends", [GONE, TAKEN], ids=["gone", "its pid is taken"])
def test_who_has_ended_is_dead_under_its_own_name_whoever_has_its_pid_next(ends):
    listed = ListedProcesses()
    told(listed, 0, LIVES, MINE)
    for at, found in ((15, ends), (30, TAKEN), (45, {})):
        assert told(listed, at, found, {7: "ops\x1fpostgres"}) == (TRAIN, False, MINE[7])


def test_of_a_living_process_the_latest_known_account_is_told():
    listed = ListedProcesses()
    told(listed, 0, LIVES, MINE)
    assert told(listed, 1, LIVES) == (TRAIN, True, MINE[7])
    assert told(listed, 2, LIVES, {7: "ml\x1fnamed"}) == (TRAIN, True, "ml\x1fnamed")


def test_who_leaves_the_list_and_is_listed_again_is_another():
    listed = ListedProcesses()
    told(listed, 0, LIVES, MINE)
    told(listed, 15, GONE)
    told(listed, 16, GONE, pids=())
    assert told(listed, 30, TAKEN) == (POSTGRES, True, "")


def test_a_list_that_is_away_for_a_while_changes_nothing():
    listed = ListedProcesses()
    told(listed, 0, LIVES, MINE)
    told(listed, 15, GONE)
    told(listed, 20, GONE, pids=None)
    told(listed, 20, GONE, pids=(), uuid="GPU-b")
    assert told(listed, FORGOTTEN_SECONDS + 15, TAKEN) == (TRAIN, False, MINE[7])


def test_after_a_long_time_without_a_list_whoever_is_on_it_may_be_another():
    listed = ListedProcesses()
    told(listed, 0, LIVES, MINE)
    assert told(listed, FORGOTTEN_SECONDS + 1, TAKEN) == (POSTGRES, True, "")
