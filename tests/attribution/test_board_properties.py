"""Whatever happens to a board, its accounts add up to it; and the axioms of a fair division."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED, EnergyReading, Holder, Tick
from tests.attribution.board_scripts import (
    GAP_US,
    LINKS,
    PARTS,
    Script,
    UnlikeWatts,
    board,
    booked_mj,
    booked_us,
    energy_mj,
    played,
    scripts,
    time_us,
)

OPTIONS = st.fixed_dictionaries(
    {
        "counter_gap_us": st.sampled_from([0, 4 * GAP_US]),
        "floor_watts": st.sampled_from([None, 70.0]),
        "weigh": st.sampled_from([None, UnlikeWatts()]),
        "shapley": st.sampled_from([None, UnlikeWatts()]),
    }
)


@given(scripts(), OPTIONS)
@settings(max_examples=200)
def test_energies_and_times_add_up_at_every_tick(script: Script, options):
    account, traffic = board(**options), 0
    for tick, burned_mj in zip(script.ticks, script.burned_mj, strict=True):
        account.advance(tick)
        assert booked_mj(account) == burned_mj == sum(account.estimators().values())
        traffic += sum(tick.traffic.values())
        balances = account.balances().values()
        if options["shapley"]:
            active_mj = sum(balance.active_mj for balance in balances)
            assert sum(balance.shapley_mj for balance in balances) == active_mj
        assert sum(balance.link_bytes.total() for balance in balances) == traffic
    assert booked_us(account) == script.passed_us


@given(scripts())
def test_nothing_is_ever_taken_back(script: Script):
    account, before = board(floor_watts=70.0), board().balances()
    for tick in script.ticks:
        account.advance(tick)
        now = account.balances()
        for name, old in before.items():
            assert now[name].active_mj >= old.active_mj
            assert now[name].reserved_mj >= old.reserved_mj
            assert now[name].active_us >= old.active_us
            assert now[name].reserved_us >= old.reserved_us
            assert old.link_bytes <= now[name].link_bytes
        before = now


@given(scripts(), OPTIONS, st.integers(0, 25))
def test_an_account_kept_and_taken_up_again_goes_on_as_if_it_had_never_stopped(
    script: Script, options, kept_after
):
    through = played(script.ticks, **options)
    first = played(script.ticks[:kept_after], **options)
    kept = json.loads(json.dumps(first.as_state()))
    second = BoardAccount.from_state(kept, gap_us=GAP_US, **options)
    played(script.ticks[kept_after:], second)
    assert second.balances() == through.balances()
    assert second.as_state() == through.as_state()


@given(scripts(), OPTIONS)
def test_who_has_no_part_and_does_nothing_changes_nothing(script: Script, options):
    idler = Holder("null", 0, 0.0, 0, LINKS)
    beside = [
        tick if tick.holders is None else replace(tick, holders=(idler, *tick.holders))
        for tick in script.ticks
    ]
    with_idler = played(beside, **options)
    alone = played(script.ticks, **options).balances()
    idlers = with_idler.forget("null")
    assert idlers == type(idlers)()
    assert with_idler.balances() == alone


@given(scripts(), OPTIONS)
def test_another_name_makes_no_difference(script: Script, options):
    new = {"a": "z", "b": "y", "c": "x", "d": "w"}
    renamed = [
        tick
        if tick.holders is None
        else replace(tick, holders=tuple(replace(h, account=new[h.account]) for h in tick.holders))
        for tick in script.ticks
    ]
    options = {**options, "weigh": None}  # it goes by names
    before = played(script.ticks, **options).balances()
    after = played(renamed, **options).balances()
    assert after == {new.get(name, name): balance for name, balance in before.items()}


SHARERS = st.lists(st.tuples(st.integers(1, 2), st.floats(0, 0.33)), min_size=1, max_size=3).map(
    lambda shares: tuple(Holder(f"pod-{n}", *share) for n, share in enumerate(shares))
)
SECONDS = st.lists(st.tuples(SHARERS, st.integers(71_000, 700_000)), min_size=1, max_size=20)


def seconds_played(seconds, pieces, **more) -> BoardAccount:
    """Each second in as many looks as `pieces` says, with power even within the second."""
    account, count = board(floor_watts=70.0, **more), 0
    account.advance(Tick(0, seconds[0][0], PARTS, EnergyReading(0, 0), power_limit_watts=700.0))
    for number, (holders, burned_mj) in enumerate(seconds):
        for piece in range(1, pieces[number % len(pieces)] + 1):
            at_us = number * 10**6 + piece * 10**6 // pieces[number % len(pieces)]
            shown = count + burned_mj * (at_us - number * 10**6) // 10**6
            account.advance(
                Tick(at_us, holders, PARTS, EnergyReading(shown, at_us), power_limit_watts=700.0)
            )
        count += burned_mj
    return account


@given(SECONDS, st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_an_interval_split_at_any_points_changes_no_account_by_more_than_a_rounding(
    seconds, pieces
):
    whole, split = seconds_played(seconds, [1]), seconds_played(seconds, pieces)
    assert booked_mj(whole) == booked_mj(split)
    for name, balance in whole.balances().items():
        other = split.balances()[name]
        # The counter's own rounding to millijoules adds a little to the two roundings' here.
        assert abs(balance.active_mj - other.active_mj) <= 3
        assert abs(balance.reserved_mj - other.reserved_mj) <= 3
        assert abs(balance.active_us - other.active_us) <= 3
        assert abs(balance.reserved_us - other.reserved_us) <= 3


@given(SECONDS)
def test_no_account_is_off_its_exact_share_by_more_than_a_rounding(seconds):
    account = seconds_played(seconds, [1])
    active: dict[str, float] = {}
    reserved: dict[str, float] = {}
    for holders, burned_mj in seconds:
        busy, only = sum(h.activity for h in holders), len(holders) == 1
        held = sum(h.parts for h in holders)
        for holder in holders:
            name, part = holder.account, holder.parts / held
            share = holder.activity / busy if busy and not only else part
            active[name] = active.get(name, 0) + (burned_mj - 70_000) * share
            reserved[name] = reserved.get(name, 0) + 70_000 * holder.parts / PARTS
    for name in active:
        balance = account.balances()[name]
        assert abs(balance.active_mj - active[name]) < 2
        assert abs(balance.reserved_mj - reserved[name]) < 2


@given(SECONDS)
def test_who_does_more_with_the_same_part_pays_no_less(seconds):
    account = played([], floor_watts=70.0)
    account.advance(Tick(0, (), PARTS, EnergyReading(0, 0)))
    for number, (holders, burned_mj) in enumerate(seconds):
        before = {name: mj[0] for name, mj in energy_mj(account).items()}
        at_us, so_far = (number + 1) * 10**6, booked_mj(account)
        account.advance(Tick(at_us, holders, PARTS, EnergyReading(so_far + burned_mj, at_us)))
        paid = {name: mj[0] - before.get(name, 0) for name, mj in energy_mj(account).items()}
        for one in holders:
            for other in holders:
                if one.activity > other.activity:
                    assert paid.get(one.account, 0) >= paid.get(other.account, 0) - 2


@given(scripts())
def test_only_energy_and_time_that_were_seen_are_charged_to_anybody(script: Script):
    blind = [replace(tick, holders=None) for tick in script.ticks]
    account = played(blind, floor_watts=70.0)
    assert set(energy_mj(account)) <= {UNOBSERVED}
    assert set(time_us(account)) <= {UNOBSERVED}
    empty = played([replace(tick, holders=()) for tick in script.ticks], floor_watts=70.0)
    assert set(energy_mj(empty)) | set(time_us(empty)) <= {UNALLOCATED, UNOBSERVED}
