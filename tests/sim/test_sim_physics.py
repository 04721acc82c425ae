"""The closed forms of the simulator against adding up small steps."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_gpu import board_with

from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.physics import Board, boards


@st.composite
def workloads(draw: st.DrawFn) -> dict[str, Any]:
    phase = st.tuples(st.floats(0.3, 6), st.floats(0, 1)).map(list)
    workload: dict[str, Any] = {
        "phases": draw(st.lists(phase, min_size=1, max_size=5)),
        "start_s": draw(st.floats(0, 20)),
        "intensity": draw(st.floats(0, 1)),
        "share": 0.5,
        "load_s": draw(st.sampled_from([0.0, 0.0, 0.4, 3.0, 40.0])),
        "stagger_s": draw(st.floats(0, 4)),
    }
    if draw(st.booleans()):
        workload["duration_s"] = draw(st.floats(0.5, 15))
        if draw(st.booleans()):
            workload["repeat_every_s"] = workload["duration_s"] + draw(st.floats(0, 9))
    return workload


def small_steps(board: Board, t0: float, t1: float, count: int) -> float:
    width = (t1 - t0) / count
    return sum(board.power_watts(t0 + (i + 0.5) * width) for i in range(count)) * width


@settings(max_examples=60, deadline=None)
@given(workloads(), workloads(), st.floats(0, 30), st.floats(0.5, 20))
def test_energy_is_the_integral_of_power(
    one: dict[str, Any], other: dict[str, Any], t0: float, length: float
) -> None:
    board = board_with(one, other | {"name": "other", "tenant": "risk"})
    count = 2000
    changes = 2 * (4 + length / 0.3)
    tolerance = board.model.limit_watts * (length / count) * changes / 4
    exact = board.energy_joules(t0 + length) - board.energy_joules(t0)
    assert exact == pytest.approx(small_steps(board, t0, t0 + length, count), abs=tolerance)


@settings(max_examples=100, deadline=None)
@given(workloads(), st.lists(st.floats(-5, 200), min_size=2, max_size=20))
def test_energy_never_falls_and_power_stays_in_range(
    workload: dict[str, Any], moments: list[float]
) -> None:
    board = board_with(workload)
    joules = [board.energy_joules(t) for t in sorted(moments)]
    assert joules == sorted(joules)
    for t in moments:
        assert board.idle_watts <= board.power_watts(t) <= board.model.limit_watts + 1e-9


@settings(max_examples=100, deadline=None)
@given(workloads(), st.floats(-5, 200))
def test_busy_ratio_is_a_ratio_and_zero_long_after_the_end(
    workload: dict[str, Any], t: float
) -> None:
    board = board_with(workload)
    assert 0 <= board.busy_ratio(t) <= 1
    if "duration_s" in workload and "repeat_every_s" not in workload:
        assert board.busy_ratio(300.0) == 0


def test_full_activity_draws_the_power_limit() -> None:
    board = board_with({"phases": [[1, 1.0]]})
    assert board.power_watts(5) == pytest.approx(board.model.limit_watts)
    assert board.busy_ratio(5) == pytest.approx(1.0)
    assert board.sm_mhz(5) < board.model.sm_mhz[1]
    assert board.event_reasons(5) == 0x4


def test_power_is_concave_in_activity() -> None:
    watts = [board_with({"phases": [[1, a]]}).power_watts(3) for a in (0.0, 0.5, 1.0)]
    assert watts[1] - watts[0] > watts[2] - watts[1] > 0


def test_an_idle_process_costs_its_context_and_holds_its_memory() -> None:
    board = board_with({"phases": [[1, 0.0]], "start_s": 10})
    assert board.power_watts(11) - board.power_watts(9) == pytest.approx(board.model.context_watts)
    assert (board.memory_used_mib(9), board.memory_used_mib(11)) == (0, 1000)
    assert board.event_reasons(11) == 0x1


def test_every_run_holds_its_context_idle_while_it_loads() -> None:
    job = {"duration_s": 4, "repeat_every_s": 6, "load_s": 1.5, "phases": [[1, 1.0], [1, 0.5]]}
    board = board_with(job)
    context = board.idle_watts + board.model.context_watts
    assert [board.power_watts(t) for t in (0.1, 1.4, 6.1, 7.4)] == pytest.approx([context] * 4)
    assert board.power_watts(1.6) == board.power_watts(7.6) == board.model.limit_watts


def test_two_half_shares_at_full_activity_fill_the_board_once() -> None:
    full = {"phases": [[1, 1.0]], "share": 0.5}
    board = board_with(full, full | {"name": "other"})
    assert board.power_watts(5) == pytest.approx(board.model.limit_watts)
    assert board.busy_ratio(5) == pytest.approx(1.0)


def test_each_repetition_is_a_new_process() -> None:
    board = board_with({"duration_s": 3, "repeat_every_s": 5, "start_s": 2})
    alive = [[p.pid for p in board.processes(t)] for t in (1.9, 2, 4.9, 5, 6.9, 7, 9.9)]
    first, second = alive[1], alive[5]
    assert alive == [[], first, first, [], [], second, second]
    assert first != second
    assert [p.start_s for p in board.processes(7.5)] == [7.0]


def test_temperature_follows_the_mean_power_of_half_a_minute() -> None:
    board = board_with({"phases": [[1, 1.0]], "start_s": 100})
    cold, rising, hot = (board.temperature_celsius(t) for t in (99, 115, 131))
    assert cold < rising < hot
    assert rising == pytest.approx((cold + hot) / 2, abs=1)
    assert board.temperature_celsius(500) == pytest.approx(hot)


def test_a_lost_board_draws_nothing_more() -> None:
    board = board_with({}, faults=[{"at_s": 7, "gpu": 0, "lost": True}])
    assert board.energy_joules(7) == board.energy_joules(70)
    assert board.power_watts(6.9) > 0
    assert (board.power_watts(7), board.processes(7)) == (0, [])


@pytest.mark.parametrize("name", machine_names())
def test_counters_of_shipped_machines_rise_until_the_board_is_lost(name: str) -> None:
    for board in boards(load_machine(name)):
        moments = [t / 7 for t in range(700)]
        for earlier, later in pairwise(moments):
            gained = board.energy_joules(later) - board.energy_joules(earlier)
            assert gained > 0 or later > board.lost_at
            assert gained >= 0
