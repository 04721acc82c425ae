"""What of a board counts as held: what was given, what runs, and what limits leave to others."""

import pytest

from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.residency import Resident
from seedance_obs.exporter.fragmentation.limits import limits_of
from seedance_obs.exporter.fragmentation.units import units_of
from seedance_obs.exporter.view import QuotaRow
from tests.exporter.books.boards import instance, reading
from tests.exporter.fragmentation.located import GIB, TOTAL, located, occupied, pod


def quota(name: str, source: str, memory_bytes: int | None, sm: float | None) -> QuotaRow:
    account = account_name("team", pod(name).key)
    return QuotaRow("GPU-0", account, source, memory_bytes, sm, None, {})


def free_of(*rows: QuotaRow, names: str, sole: bool = False) -> float:
    """What pods of these one-letter names leave of a board."""
    gpu = located()
    there = occupied(gpu, *(Resident(pod(name), sole=sole) for name in names))
    (unit,) = units_of(gpu, there, limits_of(rows, {"GPU-0": TOTAL}))
    return unit.free


def test_a_board_without_residents_is_free_with_all_its_memory():
    gpu = located()
    (unit,) = units_of(gpu, occupied(gpu), {})
    assert (unit.free, unit.free_memory_bytes, unit.holds) == (1.0, TOTAL, ())


def test_a_pod_that_runs_nothing_has_taken_its_board_and_the_memory_that_it_does_not_use():
    gpu = located()
    (unit,) = units_of(gpu, occupied(gpu, Resident(pod("idle"))), {})
    assert (unit.free, unit.free_memory_bytes) == (0.0, 0.0)
    assert unit.holds == ((pod("idle"), 1.0),)


def test_sharers_leave_what_their_limits_leave_of_memory_and_of_sms():
    rows = (
        quota("a", "hami", int(20 * GIB), 0.5),
        quota("b", "mps", int(40 * GIB), 0.125),
    )
    assert free_of(*rows, names="ab") == 0.25


def test_of_memory_and_sms_the_one_with_less_left_counts():
    rows = (quota("a", "mps", int(20 * GIB), 0.5), quota("b", "mps", int(20 * GIB), 0.25))
    assert free_of(*rows, names="ab") == 0.25
    rows = (quota("a", "mps", int(40 * GIB), 0.25), quota("b", "mps", int(20 * GIB), 0.25))
    assert free_of(*rows, names="ab") == 0.25


@pytest.mark.parametrize("row", [("hami", int(20 * GIB), None), ("mps", None, 0.25)])
def test_a_limit_of_one_kind_stands_for_the_other(row):
    assert free_of(quota("a", *row), names="a") == 0.75


def test_of_two_limits_the_tighter_one_counts():
    rows = (quota("a", "gpu-quota", None, 0.75), quota("a", "mps", None, 0.5))
    assert free_of(*rows, names="a") == 0.5


def test_a_sharer_without_limits_takes_the_board_whole():
    assert free_of(quota("a", "hami", int(20 * GIB), None), names="ab") == 0.0


@pytest.mark.parametrize("row", [("gpu-quota", None, 0.0), ("hami", 2**20, None), ("mps", 0, 1e-9)])
def test_who_is_limited_to_next_to_nothing_takes_a_thousandth(row):
    assert free_of(quota("a", *row), names="a") == 0.999


def test_the_size_of_a_mig_instance_limits_nobody_on_a_board_that_is_not_cut():
    assert limits_of([quota("a", "mig", int(10 * GIB), 1 / 7)], {"GPU-0": TOTAL}) == {}
    rows = (quota("a", "mig", int(10 * GIB), 1 / 7), quota("a", "mps", None, 0.5))
    assert free_of(*rows, names="a") == 0.5


def test_limits_on_who_was_given_the_board_alone_leave_nothing_to_others():
    assert free_of(quota("a", "gpu-quota", int(20 * GIB), 0.25), names="a", sole=True) == 0.0


def test_ten_tenths_leave_nothing():
    rows = [quota(name, "mps", None, 0.1) for name in "abcdefghij"]
    assert free_of(*rows, names="abcdefghij") == 0.0


def test_a_limit_in_bytes_says_nothing_of_a_board_of_unknown_size():
    assert limits_of([quota("a", "hami", int(20 * GIB), None)], {}) == {}


def test_a_mig_instance_is_free_or_taken_by_itself_and_the_uncut_rest_is_neither():
    gpu = located(mig=(instance(1, 3), instance(2, 2)))
    large, small = units_of(gpu, occupied(gpu, Resident(pod("a")), at=1), {})
    assert (large.size, large.free, large.holds) == (3 / 7, 3 / 7, ())
    assert (small.size, small.free) == (2 / 7, 0.0)
    assert small.holds == ((pod("a"), 2 / 7),)


def test_a_board_in_mig_mode_without_instances_has_nothing_to_give():
    gpu = located(in_mig=True)
    assert units_of(gpu, occupied(gpu), {}) == ()
    assert units_of(gpu, occupied(gpu, Resident(pod("a"))), {}) is None  # then it is cut after all


def test_what_cannot_be_told_is_not_free():
    gpu = located()
    assert units_of(gpu, None, {}) is None
    cut = located(mig=(instance(1, 3), instance(2, 0)))
    assert units_of(cut, occupied(cut), {}) is None


def test_free_memory_is_what_is_neither_held_nor_used_nor_reserved():
    gpu = located()
    gpu.merged.readings.pop("memory_free_bytes")
    gpu.merged.readings["memory_used_bytes"] = reading(30 * GIB)
    (unit,) = units_of(gpu, occupied(gpu), {})
    assert unit.free_memory_bytes is None
    gpu.merged.readings["memory_reserved_bytes"] = reading(2 * GIB)
    (unit,) = units_of(gpu, occupied(gpu), {})
    assert unit.free_memory_bytes == 48 * GIB
    rows = [quota("a", "hami", int(60 * GIB), None)]
    limits = limits_of(rows, {"GPU-0": TOTAL})
    (unit,) = units_of(gpu, occupied(gpu, Resident(pod("a"))), limits)
    assert unit.free_memory_bytes == 20 * GIB
