"""How fast tenants' work goes, by whatever tells of it."""

import pytest

from seedance_obs.exporter.bandwidth.progress import Progress, ProgressWatch
from seedance_obs.exporter.books.seats import Seat
from tests.exporter.bandwidth.seats import seat
from tests.exporter.books.boards import board, instance, reading

CAPPED = 0x04


def active(uuid: str = "G0", **values: float | None):
    told = {"clock_sm_hertz": 1e9, "clocks_event_reasons": 0.0, **values}
    known = {name: reading(value) for name, value in told.items() if value is not None}
    return board(uuid, readings=known)


def watched(*looks: list[Seat]) -> ProgressWatch:
    watch = ProgressWatch(window_seconds=30.0)
    for second, seats in enumerate(looks):
        watch.note(seats, float(second))
    return watch


def progress(watch: ProgressWatch, tenant: str, *gpus: str) -> dict[str, Progress]:
    return {told.proxy: told for told in watch.of(0.0, tenant, gpus or ["G0"])}


def test_progress_is_sm_activity_times_clock_of_who_has_a_board_alone():
    clock = {"clock_sm_hertz": 1.5e9}
    busy = seat("a", active(sm_active_ratio=0.8, **clock), activity=0.9)
    slow = seat("a", active(sm_active_ratio=0.4, **clock), activity=0.7)
    told = progress(watched([busy], [slow]), "a")
    assert told["sm"].progress == pytest.approx(0.6 * 1.5)
    assert (told["sm"].running, told["sm"].throttled) == (True, False)
    assert told["process"].progress == pytest.approx(0.8 * 1.5), "to compare with shared times"
    assert list(told) == ["sm", "process"], "the better one first"


def test_on_a_shared_board_progress_is_that_of_processes():
    gpu = active(sm_active_ratio=0.8)
    told = watched([seat("a", gpu, activity=0.5), seat("b", gpu, activity=0.02)])
    (only,) = progress(told, "a").values()
    assert (only.progress, only.proxy) == (0.5, "process")
    assert not progress(told, "b")["process"].running
    assert progress(watched([seat("a", gpu), seat("b", gpu)]), "a") == {}


def test_a_proxy_counts_only_where_it_was_known_in_all_looks():
    gpu = active(sm_active_ratio=0.8)
    alone = [seat("a", gpu, activity=0.8)]
    together = [seat("a", gpu, activity=0.5), seat("b", gpu, activity=0.3)]
    assert list(progress(watched(*[alone] * 20, together), "a")) == ["process"]
    assert list(progress(watched(*[alone] * 20, [seat("a", gpu)]), "a")) == ["sm"]
    elsewhere = [seat("a", active("G1", sm_active_ratio=0.8)), seat("b", gpu, activity=0.1)]
    both = watched([*alone, *elsewhere])
    assert list(progress(both, "a", "G1")) == ["sm"]
    assert list(progress(both, "a", "G0", "G1")) == []


def test_in_mig_mode_it_is_that_of_the_instances_that_one_has_to_oneself():
    gpu = active()
    one, two = (instance(n, 1, sm_active_ratio=ratio) for n, ratio in ((1, 0.7), (2, 0.1)))
    told = watched([seat("a", gpu, mig=one), seat("b", gpu, mig=two)])
    assert progress(told, "a")["sm"].progress == 0.7
    shared = watched([seat("a", gpu, mig=one), seat("b", gpu, mig=one)])
    assert progress(shared, "a") == {}


def test_a_window_with_more_than_a_tenth_throttled_counts_as_throttled():
    free = [seat("a", active(sm_active_ratio=0.8))]
    capped = [seat("a", active(sm_active_ratio=0.8, clocks_event_reasons=float(CAPPED)))]
    assert not progress(watched(*[free] * 9, capped), "a")["sm"].throttled
    assert progress(watched(*[free] * 8, capped), "a")["sm"].throttled


def test_where_nobody_tells_of_throttling_no_window_counts():
    unknown = [seat("a", active(sm_active_ratio=0.8, clocks_event_reasons=None))]
    assert progress(watched(unknown), "a")["sm"].throttled


def test_what_nobody_looked_at_has_no_progress():
    watch = watched([seat("a", active(sm_active_ratio=0.8))])
    assert watch.of(30.0, "a", ["G0"]) == ()
    assert watch.of(0.0, "b", ["G0"]) == ()
    assert watch.of(0.0, "a", ["G1"]) == ()
    assert (
        progress(watched([seat("a", active(sm_active_ratio=0.8, clock_sm_hertz=None))]), "a") == {}
    )
    for window in range(1, 20):
        watch.note([], window * 30.0)
    assert watch.of(0.0, "a", ["G0"]) == (), "only a few windows are kept"
