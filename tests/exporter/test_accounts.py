"""Conservation: whatever happens, the tenants of a GPU add up to the GPU."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.attribution.shares import split_exactly
from seedance_obs.exporter.accounts import Accounts, tenants_of
from seedance_obs.merge import Chosen, merge
from seedance_obs.sources.readings import GpuProcess, GpuReadings, Pod, SourceSnapshot, Xid

GAP_SECONDS = 30.0
GPU = merge([SourceSnapshot("nvml", 0.0, gpus=(GpuReadings("GPU-a"),))], {})[0]


def seen(at: float, energy_mj: int | None, source: str = "nvml"):
    readings = {} if energy_mj is None else {"energy_mj": Chosen(energy_mj, source, at)}
    return dataclasses.replace(GPU, seen_at=at, readings=readings)


def balances(accounts: Accounts) -> dict[str, tuple[int, int | None]]:
    return {account.tenant: (account.held_us, account.energy_mj) for account in accounts.tenants()}


@given(
    st.integers(0, 10**15),
    st.dictionaries(st.text(max_size=3), st.integers(0, 10**6), min_size=1),
)
def test_a_split_adds_up_and_no_part_is_off_by_one_or_more(total, weights):
    whole = sum(weights.values())
    if whole == 0:
        with pytest.raises(ValueError, match="positive sum"):
            split_exactly(total, weights)
        return
    parts = split_exactly(total, weights)
    assert sum(parts.values()) == total
    assert all(abs(parts[key] * whole - total * weights[key]) < whole for key in weights)


TICK = st.tuples(
    st.integers(0, 60_000),  # milliseconds since the last
    st.integers(0, 10**7),  # millijoules since the last
    st.lists(st.sampled_from(["vision", "speech", "risk"]), min_size=1, max_size=3, unique=True),
)


@given(st.integers(0, 10**12), st.lists(TICK, max_size=30))
def test_tenants_add_up_to_the_boards_counter_and_to_the_time_it_was_seen(start_mj, ticks):
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    at_ms, energy_mj = 1_000_000, start_mj
    accounts.advance(seen(at_ms / 1000, energy_mj), ["vision"])
    for elapsed_ms, delta_mj, tenants in ticks:
        at_ms, energy_mj = at_ms + elapsed_ms, energy_mj + delta_mj
        accounts.advance(seen(at_ms / 1000, energy_mj), tenants)
    booked = balances(accounts).values() if ticks else ()
    assert sum(held_us for held_us, _ in booked) == (at_ms - 1_000_000) * 1000
    assert sum(mj for _, mj in booked) == energy_mj - start_mj


def test_a_shared_gpu_is_split_equally_to_the_millijoule():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.advance(seen(0.0, 0), ["a", "b", "c"])
    accounts.advance(seen(1.0, 100), ["a", "b", "c"])
    assert balances(accounts) == {"a": (333_334, 34), "b": (333_333, 33), "c": (333_333, 33)}


def test_what_passed_while_nobody_looked_is_unobserved():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.advance(seen(0.0, 0), ["a"])
    accounts.advance(seen(31.0, 3_100), ["a"])
    accounts.advance(seen(32.0, 3_200), ["a"])
    assert balances(accounts) == {"unobserved": (31_000_000, 3_100), "a": (1_000_000, 100)}


def test_energy_that_arrives_without_time_is_booked_all_the_same():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.advance(seen(0.0, 0), ["a"])
    accounts.advance(seen(0.0, 7), ["b"])
    accounts.advance(seen(0.0, 7), ["c"])
    assert balances(accounts) == {"a": (0, 0), "b": (0, 7)}


def test_a_counter_that_restarts_is_never_negative_and_never_lost():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.advance(seen(0.0, 5_000), ["a"])
    accounts.advance(seen(1.0, 6_000), ["a"])
    accounts.advance(seen(2.0, 40), ["a"])
    accounts.advance(seen(3.0, 50), ["a"])
    assert balances(accounts) == {"a": (3_000_000, 1_010), "unobserved": (0, 40)}


def test_a_board_without_a_counter_has_time_but_no_energy():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.advance(seen(0.0, None), ["a"])
    accounts.advance(seen(1.0, None), ["a"])
    assert balances(accounts) == {"a": (1_000_000, None)}


def test_energy_that_nobody_saw_being_used_is_unobserved_although_the_gpu_was_seen():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.advance(seen(0.0, 0), ["a"])
    for at in range(10, 100, 10):
        accounts.advance(seen(float(at), None), ["unobserved"])
    accounts.advance(seen(100.0, 9_000), ["a"])
    accounts.advance(seen(101.0, 9_100), ["a"])
    assert balances(accounts) == {"a": (11_000_000, 100), "unobserved": (90_000_000, 9_000)}


def test_an_xid_is_counted_once_however_many_sources_tell_of_it():
    accounts = Accounts(gap_seconds=GAP_SECONDS)
    accounts.count_xids("nvml", [Xid("GPU-a", 79), Xid("GPU-a", 79), Xid("GPU-b", 13)])
    accounts.count_xids("dcgm", [Xid("GPU-a", 79), Xid("GPU-b", 119)])
    assert accounts.xids(lambda uuid: (uuid,)) == {
        (("GPU-a",), 79): 2,
        (("GPU-b",), 13): 1,
        (("GPU-b",), 119): 1,
    }


@pytest.mark.parametrize(
    ("fields", "tenants"),
    [
        ({"pods": (Pod("team-b", "p", "c"), Pod("team-a", "q", "c"))}, ("team-a", "team-b")),
        ({"processes": ()}, ("unallocated",)),
        ({"processes": None}, ("unobserved",)),
        ({"processes": (GpuProcess(1), GpuProcess(2), GpuProcess(1))}, ("ada", "unknown")),
        ({"processes": (GpuProcess(1, graphics=True),)}, ("unallocated",)),
        ({"processes": (GpuProcess(1),), "pods": (), "pod_managed": True}, ("ada",)),
        ({"processes": (GpuProcess(1),), "pods": None, "pod_managed": True}, ("unobserved",)),
    ],
)
def test_who_holds_a_gpu(fields, tenants):
    gpu = dataclasses.replace(GPU, **fields)
    assert tenants_of(gpu, {1: "ada"}.get) == tenants
