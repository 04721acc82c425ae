"""The detectors over a public trace of a serving fleet, beside another way to count."""

from collections import defaultdict
from itertools import groupby

import pytest

from seedance_obs.leaks.board_detectors import BoardLimits
from seedance_obs.leaks.board_sight import Activity, BoardSight, ContextSight
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.held_memory import HeldMemory, held_together
from seedance_obs.process_tree import ProcessName
from tests.leaks.genai import STEP_SECONDS, TRACES, Sample, reference_percents, samples

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the shared data set is not here")

GAP_SECONDS = 3 * STEP_SECONDS
HALF_HOUR = 1800.0
Moments = set[tuple[float, str]]


@pytest.fixture(scope="module")
def trace() -> list[Sample]:
    return samples()


def by_pod(trace: list[Sample]) -> dict[str, list[Sample]]:
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in trace:
        found[sample.pod].append(sample)
    return found


def flagged(trace: list[Sample], limits: BoardLimits) -> Moments:
    """The moments and pods at which the watch finds an idle context; each pod is a board."""
    watch, found = BoardWatch(limits), set()
    for at, group in groupby(trace, key=lambda sample: sample.at):
        for sample in group:
            held = ContextSight(ProcessName(1, 1), memory_bytes=sample.memory_bytes)
            watch.note(
                BoardSight(
                    sample.pod, at, sm_active_ratio=sample.utilization_ratio, contexts=(held,)
                )
            )
        found |= {(at, finding.gpu_uuid) for finding in watch.findings(at)}
    return found


def flagged_by_hand(trace: list[Sample], limits: BoardLimits) -> Moments:
    """The same for moments at which a pod has a sample, each by looking back over the samples."""
    found = set()
    for pod, mine in by_pod(trace).items():
        for last in range(len(mine)):
            first = last + 1
            while first and is_idle(mine[first - 1], limits):
                if first <= last and mine[first].at - mine[first - 1].at > limits.gap_seconds:
                    break
                first -= 1
                count, seconds = last - first + 1, mine[last].at - mine[first].at
                if count >= limits.context_samples and seconds >= limits.context_seconds:
                    found.add((mine[last].at, pod))
                    break
    return found


def is_idle(sample: Sample, limits: BoardLimits) -> bool:
    held = sample.memory_bytes or 0
    return sample.utilization_ratio < 0.01 and held >= limits.gpu_memory_bytes


def test_memory_held_while_nothing_runs_is_what_the_publishers_samples_say(trace):
    memory = HeldMemory(idle_below_ratio=0.01, least_bytes=2**30)
    for sample in trace:
        activity = Activity(sample.utilization_ratio)
        memory.note(sample.pod, activity, sample.memory_bytes, seconds=STEP_SECONDS)
    total = held_together(map(memory.of, {sample.pod for sample in trace}))
    shares = (
        total.busy_seconds / total.seconds,
        total.zero_samples / total.samples,
        total.zero_byte_seconds / total.byte_seconds,
        total.zero_holding_samples / total.zero_samples,
    )
    assert [f"{100 * share:.2f}" for share in shares] == reference_percents()
    assert total.samples == len(trace)
    assert total.zero_byte_seconds < total.idle_byte_seconds < total.byte_seconds


@pytest.mark.parametrize("least", [1, 100])
def test_pods_are_flagged_when_and_only_when_all_samples_of_long_enough_are_idle(trace, least):
    limits = BoardLimits(gap_seconds=GAP_SECONDS, context_samples=least)
    by_hand = flagged_by_hand(trace, limits)
    sampled = {(sample.at, sample.pod) for sample in trace}
    assert flagged(trace, limits) & sampled == by_hand
    pods = {pod for _, pod in by_hand}
    assert 0 < len(pods) < len(by_pod(trace))


def test_no_pod_is_flagged_while_it_is_new_or_was_active_within_half_an_hour(trace):
    pods, limits = by_pod(trace), BoardLimits(gap_seconds=GAP_SECONDS, context_samples=1)
    assert any(mine[0].at > trace[0].at for mine in pods.values())  # pods that start later
    moments = flagged(trace, limits)
    assert moments
    for at, pod in moments:
        assert at - pods[pod][0].at >= HALF_HOUR
        lately = [sample for sample in pods[pod] if at - HALF_HOUR <= sample.at <= at]
        assert all(sample.utilization_ratio < 0.01 for sample in lately)


def test_no_pod_is_flagged_before_it_has_a_hundred_samples(trace):
    pods = by_pod(trace)
    for at, pod in flagged(trace, BoardLimits(gap_seconds=GAP_SECONDS)):
        assert sum(sample.at <= at for sample in pods[pod]) >= 100
