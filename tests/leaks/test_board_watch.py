"""Clocks of suspects on boards: what starts them anew, what they count, what is forgotten."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.leaks.board_detectors import BoardLimits
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.process_tree import ProcessName
from tests.leaks.board_scripts import NOT_SHOWN, SHOWN, board, context, found, needed, played

IDLE = "pseudo_idle_context"
SMALL = BoardLimits(
    context_seconds=40.0,
    context_samples=6,
    orphan_seconds=20.0,
    allocated_seconds=40.0,
    spin_seconds=30.0,
    gap_seconds=10.0,
)


def test_thirty_minutes_without_enough_samples_are_not_enough():
    rare = BoardLimits(gap_seconds=60.0)
    watch = played(BoardWatch(rare), SHOWN[IDLE], range(0, 99 * 57, 57))
    assert found(watch, 98 * 57, IDLE) == []
    played(watch, SHOWN[IDLE], [99 * 57])
    (finding,) = found(watch, 99 * 57, IDLE)
    assert finding.evidence["samples"] == 100


def test_a_reading_that_is_shown_again_is_not_another_sample():
    untold = board(context(sm_ratio=None, dram_ratio=None), sm_active_ratio=0.0)
    watch = BoardWatch()
    for at in range(2000):
        watch.note(replace(untold, at=float(at), activity_at=at - at % 30.0))
    assert found(watch, 1999, IDLE) == []  # 67 readings
    for at in range(2000, 2971):
        watch.note(replace(untold, at=float(at), activity_at=at - at % 30.0))
    assert found(watch, 2970, IDLE)[0].evidence["samples"] == 100


def test_a_reading_from_before_a_context_was_there_says_nothing_of_it():
    untold = board(context(sm_ratio=None, dram_ratio=None), sm_active_ratio=0.0)
    few = BoardWatch(BoardLimits(context_samples=1))
    for at in range(5, 1804):
        few.note(replace(untold, at=float(at), activity_at=at - at % 10.0))
    assert found(few, 1803, IDLE) == []  # the latest reading is of 1800, and it came at 5
    for at in range(1804, 1811):
        few.note(replace(untold, at=float(at), activity_at=at - at % 10.0))
    (finding,) = found(few, 1810, IDLE)
    assert finding.since == 5.0
    assert finding.evidence["seconds"] == 1805.0
    assert finding.evidence["samples"] == 181


def test_a_gap_starts_every_clock_of_the_place_anew_and_of_no_other():
    other = replace(SHOWN[IDLE], gpu_uuid="GPU-2")
    watch = played(BoardWatch(), SHOWN[IDLE], range(0, 1000))
    played(watch, SHOWN[IDLE], range(1046, 2000))
    played(watch, other, range(2000))
    assert [finding.gpu_uuid for finding in watch.findings(1999)] == ["GPU-2"]


def test_a_gap_within_the_limit_is_none():
    watch = played(BoardWatch(), SHOWN[IDLE], [*range(0, 1000), *range(1044, 1801)])
    assert len(found(watch, 1800, IDLE)) == 1


def test_a_clock_that_steps_back_starts_anew():
    watch = played(BoardWatch(), SHOWN[IDLE], [*range(1000), *range(900, 2700)])
    assert found(watch, 2699, IDLE) == []
    played(watch, SHOWN[IDLE], [2700])
    assert found(watch, 2700, IDLE)[0].since == 900.0


def test_a_moment_that_is_noted_twice_is_one_sample():
    watch = played(
        BoardWatch(BoardLimits(gap_seconds=60)), SHOWN[IDLE], sorted([*range(0, 3420, 57)] * 2)
    )
    assert found(watch, 3363, IDLE) == []


def test_what_nobody_has_seen_lately_is_not_found():
    watch = played(BoardWatch(), SHOWN[IDLE], range(1801))
    assert len(found(watch, 1845, IDLE)) == 1
    assert found(watch, 1846, IDLE) == []


def test_a_sight_from_after_the_clock_was_read_costs_no_place_its_clocks():
    watch = BoardWatch()
    for at in range(1801):
        watch.note(replace(SHOWN[IDLE], at=float(at)))
        watch.findings(at - 0.2)
    assert len(found(watch, 1799.8, IDLE)) == 1


def test_compute_instances_of_one_instance_have_clocks_of_their_own():
    watch = BoardWatch()
    for at in range(1801):
        for number in (0, 1):
            mine = context(process=ProcessName(4711 + number, 1))
            watch.note(board(mine, at=float(at), gpu_instance=1, compute_instance=number))
    assert [finding.process.pid for finding in watch.findings(1800)] == [4711, 4712]


def test_instances_of_one_board_have_clocks_of_their_own():
    watch = BoardWatch()
    for at in range(301):
        for instance, used in ((1, 4 * 2**30), (2, 0)):
            watch.note(board(at=float(at), gpu_instance=instance, memory_used_bytes=used))
    (finding,) = watch.findings(300)
    assert finding.gpu_instance == 1


def test_a_process_that_dies_stops_being_idle_and_holds_its_memory_dead_from_then_on():
    watch = played(BoardWatch(), SHOWN[IDLE], range(1801))
    assert [finding.kind for finding in watch.findings(1800)] == [IDLE]
    dead = board(context(process=ProcessName(4711, None), alive=False))
    played(watch, dead, range(1801, 2102))
    (finding,) = watch.findings(2101)
    assert (finding.kind, finding.since) == ("dead_pid_memory", 1801.0)
    assert finding.process == ProcessName(4711, None)


def test_a_process_may_change_its_name_and_be_booked_to_another_account():
    watch = played(BoardWatch(), SHOWN[IDLE], range(1000))
    named = context(process=ProcessName(4711, 90_000, "renamed"), account="late")
    played(watch, board(named), range(1000, 1801))
    (finding,) = watch.findings(1800)
    assert (finding.process.comm, finding.account, finding.since) == ("renamed", "late", 0.0)


def test_each_idle_holder_has_a_clock_of_its_own():
    watch = played(BoardWatch(), board(idle_holders=("a",)), range(1000))
    played(watch, board(idle_holders=("b", "a")), range(1000, 1801))
    assert [finding.account for finding in watch.findings(1800)] == ["a"]
    played(watch, board(idle_holders=("b", "a")), range(1801, 2801))
    assert [finding.account for finding in watch.findings(2800)] == ["a", "b"]


def test_what_has_closed_is_forgotten():
    watch = BoardWatch()
    for at in range(500):
        pids = tuple(context(process=ProcessName(1000 * at + pid, at)) for pid in range(20))
        watch.note(board(*pids, at=float(at), gpu_uuid=f"GPU-{at // 100}"))
        watch.findings(float(at))
    assert len(watch._places) == 1
    assert len(watch._places["GPU-4", None, None].spells) == 20


STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.integers(1, 40).map(lambda quarter: quarter / 4), st.sampled_from([11.0, 30.0])
        ),
        st.integers(0, 40),
    ),
    max_size=60,
)


@pytest.mark.parametrize("kind", SHOWN)
@given(steps=STEPS)
def test_a_finding_has_its_full_time_and_samples_without_a_break(kind, steps):
    """Judged anew at each step by looking back over all of the history."""
    others = list(NOT_SHOWN[kind].values())
    watch, at, history = BoardWatch(SMALL), 0.0, []
    for step, choice in steps:
        at += step
        so = choice >= len(others)
        watch.note(replace(SHOWN[kind] if so else others[choice], at=at))
        history.append((at, so))
        mine = [
            finding
            for finding in found(watch, at, kind)
            if finding.process in (None, context().process) and finding.account != "team\x1fpod-b"
        ]
        first, samples = _looking_back(history)
        due = samples > 0 and at - first >= needed(kind, SMALL)
        due = due and (kind != IDLE or samples >= SMALL.context_samples)
        assert [finding.since for finding in mine] == ([first] if due else [])


def _looking_back(history: list[tuple[float, bool]]) -> tuple[float, int]:
    """Since when it has been so without a break up to the end, and in how many samples."""
    first, samples = history[-1][0], 0
    for at, so in reversed(history):
        if not so or first - at > SMALL.gap_seconds:
            break
        first, samples = at, samples + 1
    return first, samples


@given(st.data())
def test_the_order_of_contexts_does_not_matter(data):
    pids = [
        context(process=ProcessName(pid, pid), sm_ratio=0.0 if pid % 3 else 0.5, alive=pid % 4 != 1)
        for pid in range(8)
    ]
    straight, shuffled = BoardWatch(SMALL), BoardWatch(SMALL)
    for at in range(0, 50, 5):
        straight.note(board(*pids, at=float(at)))
        shuffled.note(board(*data.draw(st.permutations(pids)), at=float(at)))
    assert straight.findings(45) == shuffled.findings(45) != []


@pytest.mark.parametrize("kind", SHOWN)
@given(at=st.integers(0, 60), step=st.sampled_from([1, 2, 5]))
def test_one_sample_that_is_not_so_costs_the_whole_time(kind, at, step):
    watch, other = BoardWatch(SMALL), next(iter(NOT_SHOWN[kind].values()))
    seconds = round(needed(kind, SMALL))
    played(watch, SHOWN[kind], range(-at * step, 0, step))
    played(watch, other, [0])
    played(watch, SHOWN[kind], range(step, seconds + step, step))
    assert found(watch, seconds, kind) == []
