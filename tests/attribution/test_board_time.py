"""Whose a board's time, memory and traffic were."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.attribution.tick import Holder, Tick
from tests.attribution.board_scripts import LINKS, board, played, seen, time_us

A = Holder("a", 1, 0.6)
B = Holder("b", 1, 0.2)


def second(*holders: Holder, parts=1, **more) -> dict[str, tuple[int, int]]:
    return time_us(played([seen(0, None), seen(1, None, *holders, parts=parts, **more)]))


def test_a_holder_reserves_what_it_does_not_use():
    assert second(A) == {"a": (600_000, 400_000)}


def test_an_empty_board_is_unallocated_and_an_unlisted_one_unobserved():
    assert second() == {"unallocated": (0, 1_000_000)}
    assert time_us(played([seen(0, None), Tick(1_000_000, None)])) == {"unobserved": (0, 1_000_000)}


def test_sharers_reserve_what_is_left_of_their_parts():
    assert second(A, B, parts=2) == {"a": (600_000, 0), "b": (200_000, 200_000)}


def test_mig_instances_use_and_reserve_their_slices_and_the_free_ones_are_unallocated():
    instances = [Holder("three", 3, 0.3), Holder("two", 2, 0.0), Holder("one", 1, 1 / 7)]
    used = second(*instances, parts=7)
    assert used == {
        "three": (300_000, 128_572),
        "two": (0, 285_714),
        "one": (142_857, 0),
        "unallocated": (0, 142_857),
    }


@given(st.lists(st.tuples(st.integers(1, 3), st.floats(0, 1)), min_size=1, max_size=4))
def test_a_slice_is_paid_for_in_full_whatever_it_does(instances):
    parts = max(7, sum(size for size, _ in instances))
    holders = [
        Holder(f"mig-{n}", size, size / parts * busy) for n, (size, busy) in enumerate(instances)
    ]
    used = second(*holders, parts=parts)
    for holder in holders:
        assert sum(used[holder.account]) == pytest.approx(1e6 * holder.parts / parts, abs=2)


def test_activities_of_more_than_the_whole_board_are_scaled_down_to_it():
    busy = [replace(A, activity=0.9), replace(B, activity=0.6)]
    assert second(*busy, parts=2) == {"a": (600_000, 0), "b": (400_000, 0)}


def test_more_parts_than_a_board_has_share_it():
    held = second(replace(A, activity=0.0, parts=6), replace(B, activity=0.0, parts=2), parts=4)
    assert held == {"a": (0, 750_000), "b": (0, 250_000)}


def test_time_of_unknown_activity_is_reserved():
    assert second(replace(A, activity=None)) == {"a": (0, 1_000_000)}


def test_one_that_has_ended_used_time_and_reserves_none():
    ended = replace(A, parts=0, activity=0.25)
    assert second(ended, B) == {"a": (250_000, 0), "b": (200_000, 550_000)}


def test_a_gap_is_unobserved():
    account = played([seen(0, None, A), seen(31, None, A), seen(32, None, A)])
    assert time_us(account) == {"unobserved": (0, 31_000_000), "a": (600_000, 400_000)}


def test_a_clock_that_steps_back_passes_no_time_twice():
    account = played([seen(10, None, A), seen(5, None, A), seen(11, None, A)])
    assert time_us(account) == {"a": (600_000, 400_000)}


def test_what_is_held_now_counts_for_memory_and_a_gap_does_not():
    big = replace(A, memory_bytes=3)
    account = played([seen(0, None, big), seen(2, None, big), seen(40, None, big)])
    assert account.balances()["a"].memory_byte_us == 6_000_000


def test_every_holder_has_a_balance_of_zero_from_its_first_sight():
    account = board()
    assert set(account.balances()) == {"unallocated", "unobserved"}
    account.advance(seen(0, None, A))
    assert account.balances()["a"].active_us == 0


def moved(*holders: Holder, elapsed_s=1.0, **traffic: int) -> dict[str, dict[str, int]]:
    account = played([seen(0, None), seen(elapsed_s, None, *holders, traffic=traffic)])
    balances = account.balances()
    return {name: dict(b.link_bytes) for name, b in balances.items() if b.link_bytes}


WIRED_A, WIRED_B = replace(A, links=LINKS), replace(B, links={"nvlink": "NV18", "pcie": "PHB"})


def test_traffic_goes_by_activity_under_the_class_of_the_holders_link():
    assert moved(WIRED_A, WIRED_B, nvlink=1_000) == {"a": {"NV18": 750}, "b": {"NV18": 250}}


@pytest.mark.parametrize("activity", [None, 0.0])
def test_traffic_goes_by_part_where_activity_says_nothing(activity):
    one, other = replace(WIRED_A, activity=activity, parts=3), replace(WIRED_B, activity=activity)
    assert moved(one, other, nvlink=1_000) == {"a": {"NV18": 750}, "b": {"NV18": 250}}


def test_traffic_of_no_known_class_stays_under_its_kind():
    assert moved(WIRED_A, WIRED_B, pcie=1_000) == {"unallocated": {"pcie": 750}, "b": {"PHB": 250}}


def test_traffic_of_nobody_and_of_unknown_holders_is_kept_apart():
    assert moved(nvlink=9) == {"unallocated": {"nvlink": 9}}
    assert moved(WIRED_A, elapsed_s=31, nvlink=9) == {"unobserved": {"nvlink": 9}}


def test_traffic_without_time_is_booked_all_the_same():
    assert moved(WIRED_A, elapsed_s=0, nvlink=9) == {"a": {"NV18": 9}}
