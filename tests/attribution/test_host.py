"""A host's energy by CPU time: nothing lost, nothing twice, nobody robbed."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedance_obs.attribution.host import SYSTEM, HostAccount, HostTick
from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED
from seedance_obs.attribution.zone_counter import CEILING_WATTS
from seedance_obs.errors import SeedanceError

SECOND = 1_000_000
GAP = 10 * SECOND
RANGE = 65_532_610_987
WORKLOADS = ("a", "b", "c")


@dataclass(frozen=True)
class Zone:
    microjoules: int
    name: str = "package-0"
    kind: str = "package"
    range_uj: int | None = RANGE


@dataclass(frozen=True)
class Use:
    busy_us: int
    total_us: int
    by_account: dict[str, int] = field(default_factory=dict)


def used(**by_account: int) -> Use:
    """A second of ten CPUs, six of them busy."""
    return Use(6 * SECOND, 10 * SECOND, by_account)


def account(*ticks: HostTick) -> HostAccount:
    host = HostAccount(gap_us=GAP)
    for tick in ticks:
        host.advance(tick)
    return host


def tick(second: float, *zones: Zone | int, cpu: Use | None = None) -> HostTick:
    readings = tuple(zone if isinstance(zone, Zone) else Zone(zone) for zone in zones)
    return HostTick(int(second * SECOND), readings, cpu)


def test_the_busy_part_goes_by_cpu_time_and_the_idle_rest_to_nobody():
    host = account(tick(0, 500), tick(1, 1500, cpu=used(a=3 * SECOND, b=SECOND)))
    assert host.balances() == {"package": {"a": 300, "b": 100, SYSTEM: 200, UNALLOCATED: 400}}


def test_sockets_add_up_and_memory_and_the_platform_stand_apart():
    def zones(first: int, second: int, dram: int, psys: int) -> tuple[Zone, ...]:
        return (
            Zone(first),
            Zone(second, "package-1"),
            Zone(dram, "package-0/dram", "dram"),
            Zone(psys, "psys", "psys"),
        )

    host = account(tick(0, *zones(0, 0, 0, 0)), tick(1, *zones(600, 400, 50, 9999), cpu=used()))
    assert host.balances() == {
        "package": {SYSTEM: 600, UNALLOCATED: 400},
        "dram": {SYSTEM: 30, UNALLOCATED: 20},
    }


def test_workloads_that_claim_more_than_was_busy_share_what_was():
    host = account(tick(0, 0), tick(1, 1000, cpu=used(a=9 * SECOND, b=3 * SECOND)))
    assert host.balances() == {"package": {"a": 450, "b": 150, UNALLOCATED: 400}}


def test_torn_cpu_times_are_never_negative():
    torn = Use(-5, -9, {"a": -SECOND, "b": SECOND})
    host = account(tick(0, 0), tick(1, 1000, cpu=torn), tick(2, 2000, cpu=used()))
    assert host.balances() == {"package": {SYSTEM: 1200, UNALLOCATED: 800}}


def test_a_wrapped_counter_goes_on():
    host = account(tick(0, RANGE - 400), tick(1, 600, cpu=used()))
    assert host.balances() == {"package": {SYSTEM: 600, UNALLOCATED: 400}}
    assert host.doubts == {}


def test_wraps_that_cannot_be_counted_are_unobserved():
    wrap_seconds = RANGE / CEILING_WATTS / SECOND
    host = HostAccount(gap_us=100 * SECOND)
    host.advance(tick(0, 1000))
    host.advance(tick(wrap_seconds, 3000, cpu=used(a=SECOND)))
    assert host.balances() == {"package": {UNOBSERVED: 2000}}
    assert host.doubts == {"unknown_wraps": 1}


@pytest.mark.parametrize("range_uj", [RANGE, None])
def test_a_counter_that_began_anew_books_what_it_shows_to_nobody(range_uj):
    half = RANGE // 2
    host = account(
        tick(0, Zone(half, range_uj=range_uj)),
        tick(1, Zone(700, range_uj=range_uj), cpu=used(a=SECOND)),
        tick(2, Zone(1700, range_uj=range_uj), cpu=used(a=SECOND)),
    )
    assert host.balances() == {
        "package": {UNOBSERVED: 700, "a": 100, SYSTEM: 500, UNALLOCATED: 400}
    }
    assert host.doubts == {"restarted": 1}


def test_a_counter_that_steps_back_a_little_is_no_wrap():
    half = RANGE // 2
    host = account(tick(0, half), tick(1, half - 7, cpu=used()), tick(2, half + 93, cpu=used()))
    assert host.booked() == {"package": 100}
    assert host.doubts == {"restarted": 1}


def test_a_jump_that_no_package_can_draw_is_nobodys():
    jump = 3 * CEILING_WATTS * SECOND
    host = account(tick(0, 0), tick(1, jump, cpu=used(a=SECOND)), tick(2, jump + 10, cpu=used()))
    assert host.balances() == {"package": {UNOBSERVED: jump, SYSTEM: 6, UNALLOCATED: 4}}
    assert host.doubts == {"implausible": 1}


def test_what_passed_in_a_gap_is_unobserved_and_so_is_its_cpu_time():
    host = account(
        tick(0, 0),
        tick(11, 5000, cpu=used(a=6 * SECOND)),
        tick(12, 6000, cpu=used(b=6 * SECOND)),
    )
    assert host.balances() == {"package": {UNOBSERVED: 5000, "b": 600, UNALLOCATED: 400}}


def test_what_passed_out_of_sight_is_unobserved_and_splits_nothing():
    host = account(tick(0, 0), tick(1, 1000, cpu=used(a=6 * SECOND)))
    host.advance(tick(2, 1700))
    host.lose_sight()
    host.advance(tick(5, 5000, cpu=used(a=6 * SECOND)))
    assert host.balances() == {"package": {"a": 600, UNALLOCATED: 400, UNOBSERVED: 4000}}
    host.advance(tick(6, 6000, cpu=used(b=6 * SECOND)))
    assert host.balances()["package"] == {"a": 600, "b": 600, UNALLOCATED: 800, UNOBSERVED: 4000}


def test_cpu_times_of_out_of_sight_do_not_weigh_the_next_energy():
    host = account(tick(0, 0))
    host.lose_sight()
    host.advance(tick(5, 0, cpu=used(a=6 * SECOND)))
    host.advance(tick(6, 1000, cpu=used(b=6 * SECOND)))
    assert host.balances() == {"package": {UNOBSERVED: 0, "b": 600, UNALLOCATED: 400}}


def test_a_zone_that_comes_back_late_was_out_of_sight_until_then():
    host = account(tick(0, 0, Zone(0, "package-1")))
    host.lose_sight()
    host.advance(tick(1, 10))
    host.advance(tick(2, 10, Zone(70, "package-1"), cpu=used(a=6 * SECOND)))
    host.advance(tick(3, 10, Zone(170, "package-1"), cpu=used(a=6 * SECOND)))
    assert host.balances() == {"package": {UNOBSERVED: 80, "a": 60, UNALLOCATED: 40}}


def test_energy_waits_for_cpu_times_and_they_for_it():
    host = account(tick(0, 0), tick(1, 1000))
    assert (host.waiting(), host.booked()) == ({"package": 1000}, {"package": 0})
    host.advance(tick(2, 2000, cpu=used(a=6 * SECOND)))
    host.advance(tick(3, 2000, cpu=used(b=6 * SECOND)))
    host.advance(tick(4, cpu=used(b=6 * SECOND)))
    host.advance(tick(5, 5000, cpu=used(a=6 * SECOND)))
    assert host.balances() == {"package": {"a": 1200 + 600, "b": 1200, UNALLOCATED: 2000}}


def test_energy_that_waited_too_long_is_unobserved():
    host = account(*(tick(second, 100 * second) for second in range(14)))
    assert host.balances() == {"package": {UNOBSERVED: 1300}}
    host.advance(tick(14, 1400, cpu=used(a=SECOND)))
    assert host.balances() == {"package": {UNOBSERVED: 1400}}, "it spans the whole gap"
    host.advance(tick(15, 2400, cpu=used(a=SECOND)))
    assert host.balances()["package"]["a"] == 100


def test_cpu_times_that_waited_too_long_for_energy_are_forgotten():
    host = account(tick(0, 0))
    for second in range(1, 14):
        host.advance(tick(second, cpu=used(**{f"w{second}": SECOND})))
    assert host.as_state()["kinds"]["package"]["waiting_us"] == {}


def test_what_an_unsure_advance_took_cpu_time_for_does_not_weigh_the_next():
    jump = 3 * CEILING_WATTS * SECOND
    host = account(
        tick(0, 0),
        tick(1, jump, cpu=used(a=6 * SECOND)),
        tick(2, jump + 1000, cpu=used(b=6 * SECOND)),
    )
    assert "a" not in host.balances()["package"]


def test_a_zone_that_always_babbles_does_not_hold_up_the_others():
    host = account(tick(0, 0, Zone(0, "package-1")))
    for second in (1, 2, 3):
        babble = Zone(second * 3 * CEILING_WATTS * SECOND, "package-1", range_uj=None)
        host.advance(tick(second, 1000 * second, babble, cpu=used(a=6 * SECOND)))
    assert host.balances()["package"]["a"] == 1800


def test_a_forgotten_account_takes_what_it_had_and_leaves_the_rest_right():
    host = account(tick(0, 0), tick(1, 1001, cpu=used(a=SECOND, b=SECOND)))
    had = host.forget("a")
    assert had == {"package": 100}
    assert host.forget("a") == {}
    host.advance(tick(2, 2002, cpu=used(b=SECOND)))
    left = host.balances()["package"]
    assert "a" not in left
    assert sum(left.values()) + 100 == host.booked()["package"] == 2002


def test_no_account_drifts_from_its_exact_share():
    host = account(tick(0, 0))
    for second in range(1, 3001):
        cpu = Use(3, 3, {"a": 1, "b": 1, "c": 1})
        host.advance(tick(second, second, cpu=cpu))
    assert host.balances() == {"package": {"a": 1000, "b": 1000, "c": 1000}}


@pytest.mark.parametrize("broken", [{}, {"zones": []}, {"zones": {"package-0": {"at_us": 1}}}])
def test_a_state_of_another_form_is_refused(broken):
    state = account(tick(0, 0), tick(1, 10, cpu=used())).as_state()
    whole_state = {**state, **broken} if broken else {}
    with pytest.raises(SeedanceError, match="the kept account's"):
        HostAccount.from_state(whole_state, gap_us=GAP)


readings = st.one_of(st.integers(0, 400), st.integers(0, RANGE), st.sampled_from([0, RANGE]))
uses = st.one_of(
    st.none(),
    st.builds(
        Use,
        st.integers(-5, 6 * SECOND),
        st.integers(-5, 10 * SECOND),
        st.dictionaries(st.sampled_from(WORKLOADS), st.integers(-5, 4 * SECOND)),
    ),
)
zones = st.lists(
    st.builds(
        Zone,
        readings,
        st.sampled_from(["package-0", "package-1"]),
        range_uj=st.sampled_from([RANGE, None]),
    ),
    max_size=3,
)
steps = st.lists(
    st.tuples(
        st.integers(-SECOND, 2 * GAP),
        zones,
        uses,
        st.sampled_from((None, *WORKLOADS)),
        st.sampled_from([False] * 5 + [True]),
    ),
    max_size=25,
)


@given(steps, st.integers(0, 25))
def test_all_that_is_booked_adds_up_whatever_comes_and_survives_a_checkpoint(found, saved_at):
    host, kept, forgotten, now = HostAccount(gap_us=GAP), HostAccount(gap_us=GAP), 0, 0
    for number, (step, seen, cpu, ended, out_of_sight) in enumerate(found):
        if number == saved_at:
            kept = HostAccount.from_state(json.loads(json.dumps(kept.as_state())), gap_us=GAP)
        now += step
        for one in (host, kept):
            one.advance(HostTick(now, tuple(seen), cpu))
        if out_of_sight:
            host.lose_sight()
            kept.lose_sight()
        if ended:
            forgotten += sum(host.forget(ended).values())
            kept.forget(ended)
        balances = host.balances().get("package", {})
        assert all(value >= 0 for value in balances.values())
        assert sum(balances.values()) + forgotten == host.booked().get("package", 0)
        assert host.waiting().get("package", 0) >= 0
    assert kept.as_state() == host.as_state()


sure_steps = st.lists(
    st.tuples(
        st.integers(1, 10**6),
        st.booleans(),
        st.dictionaries(st.sampled_from(WORKLOADS), st.integers(0, 2 * SECOND)),
    ),
    min_size=1,
    max_size=40,
)


def run(found: list[tuple[int, bool, dict[str, int]]]) -> tuple[HostAccount, dict[str, Fraction]]:
    """An account and the exact shares, over seconds that were seen well; a flag breaks a tick."""
    host, exact, total = account(tick(0, 0)), defaultdict(Fraction), 0
    for second, (delta, broken, by_account) in enumerate(found, 1):
        total += delta
        for name, us in by_account.items():
            exact[name] += Fraction(delta * us, 10 * SECOND)
        cpu = Use(6 * SECOND, 10 * SECOND, by_account)
        if broken:  # the same second in two ticks, of which one has the energy and one the times
            host.advance(HostTick(second * SECOND - 1, (Zone(total),)))
            host.advance(HostTick(second * SECOND, (), cpu))
        else:
            host.advance(HostTick(second * SECOND, (Zone(total),), cpu))
    return host, exact


@given(sure_steps)
@settings(max_examples=200)
def test_the_counters_advance_is_booked_to_the_microjoule_and_each_gets_its_share(found):
    host, exact = run(found)
    balances = host.balances()["package"]
    assert sum(balances.values()) == host.booked()["package"]
    assert host.booked()["package"] + host.waiting()["package"] == sum(step[0] for step in found)
    assert UNOBSERVED not in balances
    for name in WORKLOADS:
        assert abs(balances.get(name, 0) - exact[name]) <= 3


@given(sure_steps)
def test_who_is_named_what_does_not_matter(found):
    names = dict(zip(WORKLOADS, ("z", "m", "b"), strict=True))
    other = [(delta, broken, {names[n]: us for n, us in by.items()}) for delta, broken, by in found]
    host, _ = run(found)
    renamed, _ = run(other)
    mine, theirs = host.balances()["package"], renamed.balances()["package"]
    for name, other_name in names.items():
        assert abs(mine.get(name, 0) - theirs.get(other_name, 0)) <= 3


@given(sure_steps)
def test_who_did_nothing_pays_nothing(found):
    host, _ = run([(delta, broken, {**by, "c": 0}) for delta, broken, by in found])
    assert "c" not in host.balances()["package"]


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(0, 6 * SECOND))
def test_splitting_an_interval_changes_no_account_by_more_than_rounding(delta, cuts, us):
    whole = account(tick(0, 0), tick(1, delta, cpu=used(a=us)))
    split = account(tick(0, 0))
    for cut in range(1, cuts + 1):
        part = Use(6 * SECOND // cuts, 10 * SECOND // cuts, {"a": us // cuts})
        split.advance(tick(cut / cuts, delta * cut // cuts, cpu=part))
    for name in ("a", SYSTEM, UNALLOCATED):
        one = whole.balances()["package"].get(name, 0)
        other = split.balances()["package"].get(name, 0)
        assert abs(one - other) <= 12
