"""What each detector takes for its kind, what it does not, and what it says of it."""

from dataclasses import fields, replace

import pytest

from seedance_obs.config import NodeSettings
from seedance_obs.leaks.board_detectors import DETECTORS, BoardLimits
from seedance_obs.leaks.board_sight import Activity
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.suspect import GPU_KINDS
from seedance_obs.process_tree import ProcessName
from tests.leaks.board_scripts import (
    GIB,
    NOT_SHOWN,
    PROCESS,
    SHOWN,
    board,
    context,
    found,
    needed,
    played,
)

ELSE = [(kind, why) for kind, sights in NOT_SHOWN.items() for why in sights]


def after(seconds: float, sight, kind: str):
    """What is found of a kind once a sight has lasted, seen each second."""
    watch = played(BoardWatch(), sight, range(round(seconds) + 1))
    return found(watch, seconds, kind)


def test_every_gpu_kind_has_a_detector_and_a_script():
    assert DETECTORS.keys() == GPU_KINDS == SHOWN.keys() == NOT_SHOWN.keys()


def test_the_limits_are_those_of_the_options():
    options = {field.name: field.default for field in fields(NodeSettings)}
    shared = {
        field.name: field.default
        for field in fields(BoardLimits)
        if f"leaks_{field.name}" in options
    }
    assert len(shared) == 7
    assert shared == {name: options[f"leaks_{name}"] for name in shared}
    assert BoardLimits().gap_seconds == 3 * options["leaks_interval_seconds"]


@pytest.mark.parametrize("kind", SHOWN)
def test_each_kind_is_found_alone_when_its_time_is_full_and_not_a_second_before(kind):
    assert after(needed(kind) - 1, SHOWN[kind], kind) == []
    watch = played(BoardWatch(), SHOWN[kind], range(round(needed(kind)) + 1))
    assert [finding.kind for finding in watch.findings(needed(kind))] == [kind]


@pytest.mark.parametrize(("kind", "why"), ELSE)
def test_what_looks_nearly_like_it_is_not_found_and_starts_its_clock_anew(kind, why):
    other, seconds = NOT_SHOWN[kind][why], round(needed(kind))
    mine = SHOWN[kind]
    if why not in ("another start", "start unknown", "another holder"):  # found, but as another's
        assert after(3 * seconds, other, kind) == []
    watch = played(BoardWatch(), mine, range(seconds))
    played(watch, other, [seconds])
    played(watch, mine, range(seconds + 1, 2 * seconds + 1))
    assert found(watch, 2 * seconds, kind) == []
    played(watch, mine, [2 * seconds + 1])
    assert len(found(watch, 2 * seconds + 1, kind)) == 1


def test_each_kind_brings_its_numbers_and_those_only():
    expected = {
        "pseudo_idle_context": {"gpu_memory_bytes": 4.0 * GIB, "sm_ratio": 0, "dram_ratio": 0},
        "dead_pid_memory": {"gpu_memory_bytes": 4.0 * GIB, "sm_ratio": 0, "dram_ratio": 0},
        "memory_without_process": {"gpu_memory_bytes": 4.0 * GIB},
        "busy_without_process": {"utilization_ratio": 0.5},
        "allocated_without_process": {},
        "spinning": {
            **{"utilization_ratio": 1, "power_watts": 120, "idle_watts": 70},
            "gpu_memory_bytes": 4.0 * GIB,
        },
    }
    for kind, sight in SHOWN.items():
        (finding,) = after(needed(kind), sight, kind)
        times = {"seconds": needed(kind), "samples": needed(kind) + 1}
        assert finding.evidence == {**expected[kind], **times}
        assert finding.since == 0.0
        assert (finding.gpu_uuid, finding.gpu_instance) == ("GPU-1", None)


def test_a_finding_names_the_process_and_the_account_where_it_can_be_only_theirs():
    for kind in ("pseudo_idle_context", "dead_pid_memory", "spinning"):
        (finding,) = after(needed(kind), SHOWN[kind], kind)
        assert (finding.process, finding.account) == (PROCESS, "team\x1fpod-a")
    (finding,) = after(1800, SHOWN["allocated_without_process"], "allocated_without_process")
    assert (finding.process, finding.account) == (None, "team\x1fpod-a")
    beside = board(context(sm_ratio=1.0), idle_holders=("team\x1fpod-b",))
    (finding,) = after(1800, beside, "allocated_without_process")
    assert (finding.process, finding.account) == (None, "team\x1fpod-b")


def test_what_computes_is_not_dead_whatever_its_pid_seems_to_say():
    for ratio, told in ((0.0, 1), (0.005, 1), (None, 1), (0.02, 0)):
        sight = board(context(alive=False, sm_ratio=ratio))
        assert len(after(600, sight, "dead_pid_memory")) == told


ONE, OTHER = "team\x1fpod-a", "team\x1fpod-b"


@pytest.mark.parametrize(
    ("others", "pid", "account"),
    [
        ([(ONE, 1.0, True)], None, ONE),
        ([(OTHER, 0.51, True)], None, ""),
        ([(OTHER, 1.0, False)], 4711, ONE),
        ([(OTHER, 0.5, True)], 4711, ONE),
        ([(ONE, 1.0, True), (OTHER, 0.0, True)], None, ONE),
        ([(ONE, 0.2, True), (ONE, 0.3, True)], 4711, ONE),
    ],
    ids=["two of one", "one each", "of the dead", "half busy", "busy ones of one", "all of one"],
)
def test_who_spins_is_told_as_far_as_it_can_be_only_them(others, pid, account):
    contexts = [
        context(process=ProcessName(4712 + number, 1), account=of, sm_ratio=busy, alive=alive)
        for number, (of, busy, alive) in enumerate(others)
    ]
    both = (*SHOWN["spinning"].contexts, *contexts)
    (finding,) = after(600, replace(SHOWN["spinning"], contexts=both), "spinning")
    assert (finding.process and finding.process.pid, finding.account) == (pid, account)


def test_who_spins_is_told_with_its_own_memory_else_with_the_boards():
    sight = replace(SHOWN["spinning"], memory_used_bytes=40 * GIB)
    (finding,) = after(600, sight, "spinning")
    assert finding.evidence["gpu_memory_bytes"] == 4.0 * GIB
    (finding,) = after(600, replace(sight, contexts=()), "spinning")
    assert finding.evidence["gpu_memory_bytes"] == 40.0 * GIB


def test_what_a_board_draws_when_idle_says_something_of_who_spins_only():
    for kind in DETECTORS.keys() - {"spinning"}:
        sight = replace(SHOWN[kind], power_watts=69.0, idle_watts=86.0)
        (finding,) = after(needed(kind), sight, kind)
        assert "idle_watts" not in finding.evidence


def test_a_process_that_is_not_told_apart_is_as_idle_as_its_place():
    untold = context(sm_ratio=None, dram_ratio=None)
    quiet = board(untold, sm_active_ratio=0.004, dram_active_ratio=0.002)
    (finding,) = after(1800, quiet, "pseudo_idle_context")
    assert finding.evidence["sm_ratio"] == 0.004
    assert finding.evidence["dram_ratio"] == 0.002
    for busy in ({"sm_active_ratio": 0.02}, {"dram_active_ratio": 0.02}, {"video_ratio": 0.02}):
        assert after(1800, replace(quiet, **busy), "pseudo_idle_context") == []


def test_a_process_that_is_told_apart_is_idle_beside_a_busy_one():
    busy = context(process=ProcessName(4712, 1), sm_ratio=0.9, dram_ratio=0.9)
    sight = board(context(dram_ratio=None), busy, sm_active_ratio=0.9, dram_active_ratio=0.9)
    (finding,) = after(1800, sight, "pseudo_idle_context")
    assert finding.process == PROCESS
    assert "dram_ratio" not in finding.evidence


def test_time_with_a_kernel_stands_for_sm_activity_where_that_is_unknown():
    untold = context(sm_ratio=None, dram_ratio=None)
    (finding,) = after(1800, board(untold, utilization_ratio=0.0), "pseudo_idle_context")
    assert "sm_ratio" not in finding.evidence
    assert finding.evidence["utilization_ratio"] == 0.0
    assert after(1800, board(untold, utilization_ratio=0.01), "pseudo_idle_context") == []
    told = board(untold, utilization_ratio=1.0, sm_active_ratio=0.0)
    assert len(after(1800, told, "pseudo_idle_context")) == 1


def test_an_instance_without_utilization_is_busy_by_its_sm_activity():
    sight = board(gpu_instance=3, sm_active_ratio=0.4)
    (finding,) = after(300, sight, "busy_without_process")
    assert finding.gpu_instance == 3


def test_nobody_spins_on_a_board_whose_limit_is_no_more_than_its_idle_draw():
    sight = replace(SHOWN["spinning"], limit_watts=70.0, power_watts=70.0)
    assert after(600, sight, "spinning") == []


def test_idle_is_both_below_the_limit_and_unknown_without_sm_activity():
    assert Activity(0.009, 0.009).idle(0.01) is True
    assert Activity(0.01, 0.0).idle(0.01) is False
    assert Activity(0.0, 0.01).idle(0.01) is False
    assert Activity(0.0, None).idle(0.01) is True
    assert Activity(0.0, None, 0.01).idle(0.01) is False
    assert Activity(None, 0.0, 0.0).idle(0.01) is None
    assert Activity(0.0, None).highest == 0.0
