"""Memory-time held while nothing runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.leaks.board_sight import Activity
from seedance_obs.leaks.held_memory import Held, HeldMemory, held_together

GIB = 2**30


def held_memory() -> HeldMemory:
    return HeldMemory(idle_below_ratio=0.01, least_bytes=GIB)


def test_memory_time_is_split_by_activity_and_by_holder():
    memory = held_memory()
    memory.note("a", Activity(0.0, 0.0), 4 * GIB, seconds=10)
    memory.note("a", Activity(0.005, 0.0), 2 * GIB, seconds=10)
    memory.note("a", Activity(0.5, 0.0), 1 * GIB, seconds=20)
    memory.note("b", Activity(0.0, 0.0), GIB - 1, seconds=1)
    memory.note("c", Activity(0.0, 0.0), GIB, seconds=1)
    assert memory.of("a") == Held(
        samples=3,
        seconds=40,
        busy_seconds=pytest.approx(10.05),
        zero_samples=1,
        zero_holding_samples=1,
        byte_seconds=80.0 * GIB,
        zero_byte_seconds=40.0 * GIB,
        idle_byte_seconds=60.0 * GIB,
    )
    assert memory.of("b").zero_samples == 1
    assert memory.of("b").zero_holding_samples == 0
    assert memory.of("c").zero_holding_samples == 1
    assert held_together(map(memory.of, "abc")).samples == 5


def test_memory_that_moves_is_not_held_at_no_activity():
    memory = held_memory()
    memory.note("a", Activity(0.0, 0.5), GIB, seconds=1)
    assert memory.of("a").zero_samples == 0
    assert memory.of("a").idle_byte_seconds == 0.0


def test_what_is_unknown_is_no_sample():
    memory = held_memory()
    memory.note("a", Activity(None, 0.0), GIB, seconds=1)
    assert memory.of("a") == Held()
    memory.note("a", Activity(0.0), None, seconds=1)
    assert memory.of("a") == Held(samples=1, seconds=1, zero_samples=1)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([None, 0.0, 0.005, 0.01, 1.0]),
            st.sampled_from([None, 0.0, 0.5]),
            st.one_of(st.none(), st.integers(0, 2**37)),
            st.integers(0, 60),
        )
    )
)
def test_parts_are_never_more_than_the_whole_and_holders_add_up(samples):
    memory = held_memory()
    for key, sm, dram, held, seconds in samples:
        memory.note(key, Activity(sm, dram), held, seconds=seconds)
    total = held_together(map(memory.of, "abc"))
    assert 0 <= total.zero_byte_seconds <= total.idle_byte_seconds <= total.byte_seconds
    assert total.zero_holding_samples <= total.zero_samples <= total.samples
    assert total.busy_seconds <= total.seconds
    assert total.samples == sum(memory.of(key).samples for key in "abc")
    assert total.samples == sum(sm is not None for _, sm, *_ in samples)
