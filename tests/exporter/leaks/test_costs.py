from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED, Balance
from seedance_obs.exporter.leaks.costs import Costs
from seedance_obs.exporter.view import (
    AttributionView,
    BoardEvidence,
    TenantAccount,
    WorkloadAccount,
)
from seedance_obs.leaks.suspect import GPU_KINDS, KINDS, Finding
from seedance_obs.process_tree import ProcessName

JOB = "research\x1fslurm-42-1"
IDLE = Finding("pseudo_idle_context", 0.0, gpu_uuid="GPU-a", account=JOB)
DEAD = replace(IDLE, kind="dead_pid_memory")
SPINS = replace(IDLE, kind="spinning")
ORPHAN = Finding("memory_without_process", 0.0, gpu_uuid="GPU-b")
BUSY_ALONE = replace(ORPHAN, kind="busy_without_process")
FDS = Finding("fd_growth", 0.0, account=JOB)
HALF = Balance(active_mj=300_000, reserved_mj=60_000, active_us=500_000, reserved_us=500_000)
UNUSED = Balance(reserved_mj=70_000, reserved_us=1_000_000)


def times(balance: Balance, count: int) -> Balance:
    return Balance(
        active_mj=balance.active_mj * count,
        reserved_mj=balance.reserved_mj * count,
        active_us=balance.active_us * count,
        reserved_us=balance.reserved_us * count,
    )


def books(
    seconds: int,
    *,
    job: Balance = HALF,
    free: Balance = UNUSED,
    metered: bool = True,
    floor_watts: float | None = 60.0,
    unobserved_seconds: int = 0,
) -> AttributionView:
    """So much a second: by a job on the whole of one board, and by nobody on another."""
    job, free = times(job, seconds), times(free, seconds)
    blind = times(UNUSED, unobserved_seconds)
    evidence = BoardEvidence("GPU-a", "counter", floor_watts, "measured", 9.0, {}, 0, 0, None)
    return AttributionView(
        workload_accounts=(WorkloadAccount("GPU-a", JOB, job, metered, None),),
        tenants=(
            TenantAccount("GPU-a", "research", job, metered),
            TenantAccount("GPU-a", UNOBSERVED, blind, metered),
            TenantAccount("GPU-b", UNALLOCATED, free, metered),
        ),
        evidence=(evidence,),
    )


def course(costs: Costs, *findings: Finding, until: int = 60, **changes) -> Costs:
    """Probe every 15 s from the start on."""
    for at in range(0, until + 1, 15):
        costs.advance(books(at, **changes), findings, float(at))
    return costs


def told(costs: Costs) -> tuple[dict[str, float], dict[str, int]]:
    """The kinds that cost anything; all kinds are there from the start."""
    assert costs.gpu_seconds.keys() == costs.gpu_energy_mj.keys() == GPU_KINDS
    return (
        {kind: seconds for kind, seconds in costs.gpu_seconds.items() if seconds},
        {kind: used for kind, used in costs.gpu_energy_mj.items() if used},
    )


def test_what_passes_while_a_kind_is_suspect_is_booked_to_it():
    costs = Costs()
    costs.advance(books(0), [], 0.0)
    costs.advance(books(15), [IDLE], 15.0)
    assert told(costs) == ({}, {})  # nobody was suspect while that passed
    costs.advance(books(30), [IDLE, ORPHAN], 30.0)
    costs.advance(books(45), [ORPHAN], 45.0)
    assert told(costs) == (
        {"pseudo_idle_context": 7.5, "memory_without_process": 15.0},
        {"pseudo_idle_context": 15 * 60_000, "memory_without_process": 15 * 70_000},
    )


@pytest.mark.parametrize(
    "kind", ["pseudo_idle_context", "dead_pid_memory", "allocated_without_process"]
)
def test_the_work_of_whoever_is_busy_is_no_waste_of_what_lies_idle_beside_it(kind):
    idle = replace(IDLE, kind=kind, part=0.5)
    costs = course(Costs(), idle)
    assert told(costs) == ({kind: 60 * 0.25}, {kind: 60 * 30_000})
    assert costs.draw(idle) == pytest.approx((30.0, 0.25))


def test_what_spins_costs_all_that_its_account_is_booked():
    costs = course(Costs(), SPINS)
    assert told(costs) == ({"spinning": 60.0}, {"spinning": 60 * 360_000})
    assert costs.draw(SPINS) == pytest.approx((360.0, 1.0))


def test_memory_left_on_one_instance_costs_no_more_than_its_part_of_what_is_free():
    left = replace(ORPHAN, gpu_instance=7, part=0.25)
    costs = course(Costs(), left)
    assert told(costs)[0] == {"memory_without_process": 15.0}
    assert costs.draw(left) == pytest.approx((17.5, 0.25))


def test_two_contexts_of_one_account_on_a_board_cost_once():
    costs = course(Costs(), *[replace(IDLE, process=ProcessName(pid, 1)) for pid in (7, 8)])
    assert told(costs) == ({"pseudo_idle_context": 30.0}, {"pseudo_idle_context": 60 * 60_000})


@pytest.mark.parametrize("kinds", [(IDLE, DEAD), (ORPHAN, BUSY_ALONE)])
def test_two_kinds_of_one_account_share_what_it_costs(kinds):
    alone, together = course(Costs(), kinds[0]), course(Costs(), *kinds)
    whole_watts, whole_share = alone.draw(kinds[0])
    for finding in kinds:
        assert together.gpu_seconds[finding.kind] == alone.gpu_seconds[kinds[0].kind] / 2
        assert together.draw(finding) == pytest.approx((whole_watts / 2, whole_share / 2))


balances = st.builds(
    Balance,
    active_mj=st.integers(0, 10**6),
    reserved_mj=st.integers(0, 10**6),
    active_us=st.integers(0, 10**6),
    reserved_us=st.integers(0, 10**6),
)
claims = st.builds(
    lambda kind, part, process: Finding(
        kind,
        0.0,
        process=process,
        gpu_uuid="GPU-b" if kind in ("memory_without_process", "busy_without_process") else "GPU-a",
        account=JOB,
        part=part,
    ),
    st.sampled_from(list(KINDS)),
    st.floats(0.0, 1.0),
    st.builds(ProcessName, st.integers(1, 5), st.none()),
)


@given(st.lists(st.tuples(st.lists(claims, max_size=6), balances, balances), max_size=8))
def test_all_kinds_together_cost_no_more_than_was_booked_and_draws_add_up_to_no_more(course):
    costs, job, free = Costs(), Balance(), Balance()
    for at, (findings, job_more, free_more) in enumerate(course):
        job.add(job_more)
        free.add(replace(free_more, active_mj=0, active_us=0))
        costs.advance(books(1, job=job, free=free), findings, float(at))
        by_board: Counter[str] = Counter()
        for finding in findings:
            by_board[finding.gpu_uuid] += costs.draw(finding)[1] or 0.0
        assert all(share <= 1.0 + 1e-9 for share in by_board.values())
    passed_us = [each.active_us + each.reserved_us for each in (job, free)]
    burned_mj = [each.active_mj + each.reserved_mj for each in (job, free)]
    assert sum(round(seconds * 1e6) for seconds in costs.gpu_seconds.values()) <= sum(passed_us)
    assert sum(costs.gpu_energy_mj.values()) <= sum(burned_mj)


def test_leaks_of_descriptors_cost_no_gpu():
    costs = course(Costs(), FDS)
    assert told(costs) == ({}, {})
    assert costs.draw(FDS) == (None, None)


@pytest.mark.parametrize(("busy_until", "watts"), [(180, 70.0), (195, 70 + 330 * 15 / 120)])
def test_power_is_the_mean_of_the_last_two_minutes(busy_until, watts):
    costs = Costs()
    for at in range(0, 301, 15):
        energy_mj = 400_000 * min(at, busy_until) + 70_000 * max(0, at - busy_until)
        free = Balance(reserved_mj=energy_mj, reserved_us=at * 1_000_000)
        costs.advance(books(1, free=free), [ORPHAN], float(at))
    assert costs.draw(ORPHAN) == pytest.approx((watts, 1.0))


def test_the_power_of_a_board_without_a_meter_is_unknown():
    costs = course(Costs(), IDLE, ORPHAN, metered=False)
    assert costs.draw(IDLE) == (None, 0.5)
    assert costs.draw(ORPHAN) == (None, 1.0)
    assert told(costs)[1] == {}


def test_what_idleness_costs_is_unknown_until_it_is_known_what_an_idle_board_draws():
    costs = course(Costs(), IDLE, floor_watts=None)
    assert costs.draw(IDLE) == (None, 0.5)
    assert told(costs) == ({"pseudo_idle_context": 30.0}, {})


def test_a_draw_is_unknown_once_the_books_have_stood_still_for_two_minutes():
    costs = course(Costs(), IDLE)
    for at in range(75, 181, 15):
        assert costs.draw(IDLE) == pytest.approx((60.0, 0.5))  # as it was while it was seen
        costs.advance(books(60), [IDLE], float(at))
    assert costs.draw(IDLE) == (None, None)


def test_time_that_nobody_observed_thins_no_draw():
    costs = course(Costs(), IDLE, until=45)
    costs.advance(books(60, unobserved_seconds=50), [IDLE], 110.0)
    assert costs.draw(IDLE) == pytest.approx((60.0, 0.5))


def test_two_probes_of_one_moment_draw_what_was_booked_between_them():
    costs = Costs()
    costs.advance(books(1), [IDLE], 5.0)
    costs.advance(books(1), [IDLE], 5.0)
    assert costs.draw(IDLE) == (None, None)
    costs.advance(books(2), [IDLE], 5.0)
    assert costs.draw(IDLE) == pytest.approx((60.0, 0.5))


def test_an_account_that_begins_anew_takes_nothing_back():
    costs = Costs()
    for at, seconds in ((0, 100), (15, 115), (30, 3)):
        costs.advance(books(seconds), [IDLE], float(at))
    assert told(costs) == ({"pseudo_idle_context": 7.5}, {"pseudo_idle_context": 15 * 60_000})
    assert costs.draw(IDLE) == (None, None)
    costs.advance(books(18), [IDLE], 45.0)
    assert costs.gpu_seconds["pseudo_idle_context"] == 15.0


def test_an_account_that_left_the_books_is_forgotten():
    costs = course(Costs(), IDLE)
    costs.advance(AttributionView(), [IDLE], 75.0)
    assert costs.draw(IDLE) == (None, None)
