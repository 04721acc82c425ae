"""The peers' rules give what their formulas give for readings that a person can work out."""

from dataclasses import replace

import pytest

from seedance_obs.sources.sim.truth import Run
from tests.bench.peer_rules import ceems, ceems_without_profiling, kepler, opencost
from tests.bench.sim_readings import BoardReading, InstanceReading, ProcessReading

ALICE = ProcessReading(Run("a", 0), "alice", None, 0.2, 0.3, alive=True, share=0.5)
BOB = ProcessReading(Run("b", 0), "bob", None, 0.1, 0.1, alive=True, share=0.25)
EMPTY = BoardReading(0, 0, 60.0, 700.0, 7, (), ())
IN_MIG = tuple(replace(process, mig=mig, share=1.0) for mig, process in enumerate((ALICE, BOB)))
LARGE = InstanceReading(3, 60, engine_active=0.5, sm_active=0.5, occupancy=0.4)
SMALL = InstanceReading(1, 16, engine_active=0.5, sm_active=0.5, occupancy=0.4)


def board(second: int, *processes: ProcessReading, watts: float = 100.0) -> BoardReading:
    return replace(EMPTY, energy_mj=second * 100_000, power_watts=watts, processes=processes)


def shared(*processes: ProcessReading) -> list[tuple[BoardReading]]:
    """A second without anybody, then two with these."""
    return [(EMPTY,), (EMPTY,), *((board(second, *processes),) for second in (1, 2, 3))]


def cut(large: InstanceReading, small: InstanceReading) -> list[tuple[BoardReading]]:
    return [(replace(now, instances=(large, small)),) for (now,) in shared(*IN_MIG)]


def test_ceems_gives_shards_equal_parts_of_all_watts() -> None:
    assert ceems(shared(ALICE, BOB)) == pytest.approx({"alice": 100, "bob": 100})


def test_ceems_weighs_instances_by_active_multiprocessors_or_by_all() -> None:
    idle = replace(LARGE, sm_active=0.0)
    assert ceems(cut(idle, SMALL)) == pytest.approx({"alice": 0, "bob": 200})
    assert ceems(cut(idle, replace(SMALL, sm_active=0.0))) == {}
    expected = {"alice": 200 * 60 / 76, "bob": 200 * 16 / 76}
    assert ceems_without_profiling(cut(idle, SMALL)) == pytest.approx(expected)


def test_kepler_splits_what_exceeds_the_idle_watts_from_the_second_reading_on() -> None:
    assert kepler(shared(ALICE, BOB)) == pytest.approx({"alice": 2 * 40 * 0.75, "bob": 2 * 40 / 4})
    assert kepler(shared(ALICE)) == pytest.approx({"alice": 80})
    assert kepler(shared(ALICE)[2:]) == pytest.approx({"alice": 200})


def test_kepler_splits_equally_where_all_are_idle() -> None:
    idle = (replace(ALICE, peak=0.0), replace(BOB, peak=0.0))
    assert kepler(shared(*idle)) == pytest.approx({"alice": 40, "bob": 40})


def test_kepler_does_not_see_the_size_of_an_instance() -> None:
    assert kepler(cut(LARGE, SMALL)) == pytest.approx({"alice": 40, "bob": 40})


def test_opencost_bills_what_is_requested() -> None:
    assert opencost(shared(ALICE, BOB)) == pytest.approx({"alice": 150, "bob": 75})
    expected = {"alice": 300 * 3 / 7, "bob": 300 / 7}
    assert opencost(cut(LARGE, SMALL)) == pytest.approx(expected)


def test_who_has_left_pays_nobody_anything_more() -> None:
    gone = replace(ALICE, alive=False)
    for rule in (ceems, kepler, opencost):
        assert set(rule(shared(gone, BOB))) == {"bob"}
