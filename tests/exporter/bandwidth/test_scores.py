"""Which scores tenants have, however they come and go."""

from collections.abc import Callable, Iterable

import pytest

from seedance_obs.bandwidth.reading import SegmentName, TenantSensitivity
from seedance_obs.bandwidth.segment_windows import WINDOW_SECONDS, SegmentWindow
from seedance_obs.exporter.bandwidth.progress import Progress
from seedance_obs.exporter.bandwidth.scores import (
    EVALUATED_EVERY_SECONDS,
    FORGOTTEN_AFTER_SECONDS,
    SHOWN_SECONDS,
    Scores,
)

MEMORY = SegmentName("hbm", "G0")
FULL = 3e12
SLOWED = 0.5  # of progress, under full pressure


class Told:
    """Progress as a test wants it: by which proxies, and how fast."""

    def __init__(self) -> None:
        self.by: dict[str, float] = {}

    def of(self, _start: float, tenant: str, _gpus: Iterable[str]) -> tuple[Progress, ...]:
        """What is told of tenant a."""
        found = self.by if tenant == "a" else {}
        return tuple(Progress(speed, True, False, proxy) for proxy, speed in found.items())


class Days:
    """Windows of a tenant, and of a neighbour in every other one."""

    def __init__(self) -> None:
        self.told = Told()
        self.scores = Scores(self.told)
        self.now = 0.0

    def windows(self, count: int, proxies: Callable[[bool], Iterable[str]]) -> None:
        """Go on; `proxies` says what tells of progress while a neighbour is there or not."""
        for number in range(count):
            near = number % 2 == 1
            self.told.by = dict.fromkeys(proxies(near), 1 - SLOWED * near)
            tenants = {"a": 1e11, "unallocated": 1e10} | ({"b": FULL} if near else {})
            window = SegmentWindow(MEMORY, self.now, FULL, sum(tenants.values()), tenants)
            self.scores.add(window, ("G0",))
            self.rest(WINDOW_SECONDS)

    def rest(self, seconds: float) -> None:
        """Let time pass in which nothing is told."""
        for _ in range(round(seconds / EVALUATED_EVERY_SECONDS)):
            self.now += EVALUATED_EVERY_SECONDS
            self.scores.advance(self.now)

    @property
    def shown(self) -> list[TenantSensitivity]:
        """The scores at present."""
        return list(self.scores.view(self.now))


def test_a_tenant_that_shares_its_gpu_now_and_then_gets_a_score_by_its_processes():
    days = Days()
    days.windows(60, lambda near: ["process"] if near else ["sm", "process"])
    (only,) = days.shown
    assert (only.segment, only.tenant) == (MEMORY, "a")
    assert only.sensitivity.score == pytest.approx(SLOWED)
    assert (only.sensitivity.proxy, only.sensitivity.windows) == ("process", 60)


def test_a_tenant_by_itself_is_told_of_by_its_boards():
    days = Days()
    days.windows(60, lambda _near: ["sm", "process"])
    (only,) = days.shown
    assert only.sensitivity.proxy == "sm"


def test_a_score_is_shown_for_ten_minutes_after_the_tenant_left_and_its_history_kept():
    days = Days()
    days.windows(30, lambda _near: ["sm"])
    days.rest(SHOWN_SECONDS)
    assert len(days.shown) == 1
    days.rest(EVALUATED_EVERY_SECONDS)
    assert days.shown == []
    days.windows(2, lambda _near: ["sm"])
    assert [each.sensitivity.windows for each in days.shown] == [32]


def test_who_has_been_gone_for_hours_begins_anew():
    days = Days()
    days.windows(30, lambda _near: ["sm"])
    days.rest(FORGOTTEN_AFTER_SECONDS + EVALUATED_EVERY_SECONDS)
    days.windows(2, lambda _near: ["sm"])
    assert days.shown == []
    days.windows(28, lambda _near: ["sm"])
    assert [each.sensitivity.windows for each in days.shown] == [30]
