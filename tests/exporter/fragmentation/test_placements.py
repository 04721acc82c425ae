"""Which requests a node remembers: one of each workload, of all that it held at most."""

from dataclasses import replace

from seedance_obs.exporter.books.residency import UNKNOWN_WORKLOAD
from seedance_obs.exporter.fragmentation.placements import Placements
from seedance_obs.exporter.fragmentation.units import Unit
from seedance_obs.fragmentation.request import Request
from seedance_obs.workload import Workload
from tests.exporter.fragmentation.located import pod

A, B, C = (pod(name) for name in "abc")


def held(*holds: tuple[Workload, float]) -> list[Unit]:
    return [Unit(1.0, 0.0, None, (hold,)) for hold in holds]


def requests(placements: Placements) -> dict[Request, float]:
    return dict(placements.asked.whole)


def test_a_workload_is_one_placement_however_long_it_stays():
    placements = Placements(10)
    for _ in range(3):
        placements.note(held((A, 1.0), (A, 1.0), (B, 0.25)))
    assert requests(placements) == {Request(2): 0.5, Request(1, 250): 0.5}


def test_who_comes_back_after_nobody_could_be_told_is_the_same_placement():
    placements = Placements(10)
    for units in (held((A, 1.0)), [], held((A, 1.0))):
        placements.note(units)
    assert len(placements) == 1


def test_one_that_opens_its_gpus_one_by_one_asked_for_all_of_them():
    placements = Placements(10)
    for gpus in (1, 3, 2):
        placements.note(held(*[(A, 1.0)] * gpus))
    assert requests(placements) == {Request(3): 1.0}


def test_a_limit_that_is_read_late_corrects_the_share():
    placements = Placements(10)
    placements.note(held((A, 1.0)))
    placements.note(held((A, 0.5)))
    assert requests(placements) == {Request(1, 500): 1.0}


def test_the_oldest_is_forgotten_and_not_taken_up_again_while_it_lives():
    placements = Placements(2)
    everyone = held((A, 1.0), (B, 0.5), (C, 0.25))
    for _ in range(3):
        placements.note(everyone)
        assert requests(placements) == {Request(1, 500): 0.5, Request(1, 250): 0.5}


def test_a_pod_whose_start_is_learned_later_is_the_same_placement():
    placements = Placements(10)
    placements.note(held((replace(A, uid="ml.a", started_at=0), 1.0)))
    placements.note(held((A, 1.0)))
    assert len(placements) == 1


def test_a_pod_of_the_same_name_that_starts_anew_is_another_placement():
    placements = Placements(10)
    placements.note(held((A, 1.0)))
    placements.note(held((pod("a", started_at=200), 1.0)))
    assert len(placements) == 2


def test_two_plain_processes_have_no_name_to_be_one_by():
    placements = Placements(10)
    for pid in (7, 8):
        placements.note(held((Workload("process", str(pid), 0), 1.0)))
    assert len(placements) == 2


def test_processes_that_nobody_could_look_up_are_no_placement():
    placements = Placements(10)
    placements.note(held((UNKNOWN_WORKLOAD, 1.0)))
    assert len(placements) == 0
    assert not placements.asked.frequent
