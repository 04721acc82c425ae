"""What a board's account is told of its residents: parts, activity and memory."""

import dataclasses

import pytest

from seedance_obs.attribution.tick import Holder
from seedance_obs.exporter.books.holders import holders_of
from seedance_obs.exporter.books.residency import Claim, occupancy
from seedance_obs.exporter.books.use_meter import UseMeter
from seedance_obs.sources.readings import GpuProcess, GpuReadings, ProcessUse, SourceSnapshot
from tests.exporter.books.boards import SPEECH, VISION, board, instance, reading, running

OWNERS = {1: VISION, 2: VISION, 3: SPEECH}


def told(gpu, use=None, claims=(), before=None) -> dict[str, tuple[float, float | None]]:
    """The part of the board that each pod holds, and its activity."""
    gpu = gpu if use is None else dataclasses.replace(gpu, process_use=())
    holders, parts = holders_of(
        gpu,
        occupancy(gpu, OWNERS.get, lambda _place: claims),
        before and occupancy(before, OWNERS.get, lambda _place: ()),
        use,
        owner_of=OWNERS.get,
        account_of=lambda workload: workload.pod or workload.uid,
        links_of=lambda _workload: {},
    )
    assert all(isinstance(holder, Holder) for holder in holders)
    return {holder.account: (holder.parts / parts, holder.activity) for holder in holders}


def test_a_board_alone_is_held_whole_and_as_active_as_the_board_says():
    gpu = board(processes=running(1), readings={"utilization_ratio": reading(0.4)})
    assert told(gpu) == {"train-0": (1, 0.4)}


def test_what_the_profiler_counts_goes_before_what_the_driver_estimates():
    readings = {"utilization_ratio": reading(0.9), "engine_active_ratio": reading(0.5)}
    assert told(board(processes=running(1), readings=readings)) == {"train-0": (1, 0.5)}


def test_sharers_hold_equal_parts_and_are_as_active_as_their_processes():
    gpu = board(processes=running(1, 2, 3))
    assert told(gpu, {1: 0.25, 2: 0.25}) == {"train-0": (0.5, 0.5), "asr-0": (0.5, 0.0)}


def test_without_process_use_the_activity_of_sharers_is_unknown():
    gpu = board(processes=running(1, 3), readings={"utilization_ratio": reading(0.9)})
    assert told(gpu) == {"train-0": (0.5, None), "asr-0": (0.5, None)}


def test_a_process_that_ended_since_is_there_for_its_last_activity_only():
    assert told(board(processes=running(3)), {1: 0.3, 3: 0.1}) == {
        "asr-0": (1, 0.1),
        "train-0": (0, 0.3),
    }


def test_who_came_or_went_within_a_tick_held_half_of_it():
    alone, shared = board(processes=running(3)), board(processes=running(1, 3))
    assert told(alone, {3: 0.1}, before=board(processes=())) == {"asr-0": (0.5, 0.1)}
    assert told(board(processes=()), {3: 0.1}, before=alone) == {"asr-0": (0.5, 0.1)}
    assert told(alone, {1: 0.3, 3: 0.1}, before=shared) == {
        "train-0": (0.25, 0.3),
        "asr-0": (0.75, 0.1),
    }
    busy = board(processes=running(3), readings={"utilization_ratio": reading(0.8)})
    assert told(busy, before=board(processes=running(1))) == {
        "train-0": (0.5, 0.4),
        "asr-0": (0.5, 0.4),
    }


def test_activity_nobody_can_name_is_that_of_who_has_the_board_for_itself():
    gpu = board(processes=running(3))
    found = told(gpu, {99: 0.3, 3: 0.1}, [Claim(SPEECH)])
    assert found == {"asr-0": (1, pytest.approx(0.4))}
    assert told(gpu, {99: 0.3, 3: 0.1}) == {"asr-0": (1, 0.1), "unknown": (0, 0.3)}


def test_hidden_processes_are_not_taken_for_ended_ones():
    claims = [Claim(VISION, shared=True), Claim(SPEECH, shared=True)]
    found = told(board(processes=running(71, 72)), {71: 0.5, 72: 0.1}, claims)
    assert found == {"train-0": (0.5, None), "asr-0": (0.5, None)}


def test_what_processes_used_before_the_driver_fell_silent_says_nothing_now():
    gpu = board(processes=running(3), readings={"utilization_ratio": reading(0.8)})
    holders, _ = holders_of(
        gpu,
        occupancy(gpu, OWNERS.get, lambda _place: ()),
        None,
        {},
        owner_of=OWNERS.get,
        account_of=lambda workload: workload.pod,
        links_of=lambda _workload: {},
    )
    assert [holder.activity for holder in holders] == [0.8]


def test_a_pod_without_a_process_is_known_to_be_idle():
    claims = [Claim(VISION, shared=True), Claim(SPEECH, shared=True)]
    found = told(board(processes=running(3)), {3: 0.5}, claims)
    assert found == {"asr-0": (0.5, 0.5), "train-0": (0.5, 0.0)}


def test_mig_activity_is_weighted_by_slices_and_sharers_of_an_instance_split_it():
    gpu = board(
        mig=(instance(2, 3, sm_active_ratio=0.7), instance(9, 1, engine_active_ratio=0.5)),
        mig_slices=7,
        processes=(GpuProcess(1, gpu_instance=2), GpuProcess(3, gpu_instance=9)),
    )
    assert told(gpu) == {
        "train-0": (3 / 7, pytest.approx(0.3)),
        "asr-0": (1 / 7, pytest.approx(0.5 / 7)),
    }
    shared = board(
        mig=(instance(2, 3, sm_active_ratio=0.7),),
        mig_slices=7,
        processes=(GpuProcess(1, gpu_instance=2), GpuProcess(3, gpu_instance=2)),
    )
    half = (3 / 14, pytest.approx(0.15))
    assert told(shared) == {"train-0": half, "asr-0": half}


def on_an_instance(*pids):
    return board(
        mig=(instance(2, 3, engine_active_ratio=0.7),),
        mig_slices=7,
        processes=tuple(GpuProcess(pid, gpu_instance=2) for pid in pids),
    )


def test_the_last_activity_of_an_instance_is_that_of_who_has_just_left_it():
    left = (3 / 14, pytest.approx(0.3))
    assert told(on_an_instance(), before=on_an_instance(1)) == {"train-0": left}
    half = (3 / 14, pytest.approx(0.15))
    assert told(on_an_instance(3), before=on_an_instance(1)) == {"asr-0": half, "train-0": half}
    stayed = (3 / 7, pytest.approx(0.3))
    assert told(on_an_instance(3), before=on_an_instance(3)) == {"asr-0": stayed}


def test_a_workload_on_two_instances_of_a_board_is_one_holder():
    gpu = board(
        mig=(instance(2, 2, sm_active_ratio=0.7), instance(3, 1, sm_active_ratio=0.7)),
        mig_slices=7,
        processes=(GpuProcess(1, gpu_instance=2), GpuProcess(2, gpu_instance=3)),
    )
    assert told(gpu) == {"train-0": (3 / 7, pytest.approx(0.3))}


def use_at(at: float, **shares: float) -> SourceSnapshot:
    use = tuple(ProcessUse(int(pid[1:]), share) for pid, share in shares.items())
    gpu = GpuReadings("GPU-a", processes=(), process_use=use)
    return SourceSnapshot("nvml", at, gpus=(gpu,))


def test_what_two_passes_tell_between_two_ticks_is_taken_once():
    meter = UseMeter()
    assert meter.take("GPU-a") is None
    meter.add(use_at(10.0, p1=0.9))
    assert meter.take("GPU-a") == {}
    meter.add(use_at(11.0, p1=0.5))
    meter.add(use_at(14.0, p1=0.1, p2=0.4))
    assert meter.take("GPU-a") == {1: pytest.approx(0.2), 2: pytest.approx(0.3)}
    assert meter.take("GPU-a") == {}


def test_a_driver_that_stops_telling_is_unknown_and_not_idle():
    meter = UseMeter()
    meter.add(use_at(10.0, p1=0.9))
    meter.add(SourceSnapshot("nvml", 11.0, gpus=(GpuReadings("GPU-a", processes=()),)))
    assert meter.take("GPU-a") is None
    meter.add(use_at(31.0, p1=0.9))
    meter.add(use_at(32.0, p1=0.6))
    assert meter.take("GPU-a") == {1: pytest.approx((20 * 0.9 + 1 * 0.6) / 21)}
