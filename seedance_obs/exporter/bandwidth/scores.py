"""The sensitivity of each tenant to each segment, kept and worked out a few at a time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from seedance_obs.bandwidth.loads import NOBODY
from seedance_obs.bandwidth.reading import SegmentName, Sensitivity, TenantSensitivity
from seedance_obs.bandwidth.segment_windows import WINDOW_SECONDS, SegmentWindow
from seedance_obs.bandwidth.sensitivity import sensitivity
from seedance_obs.bandwidth.sensitivity_history import History, Observation
from seedance_obs.exporter.bandwidth.progress import PROXIES, Progress, ProgressWatch

EVALUATED_EVERY_SECONDS = 5.0  # one score: working out its p-value takes a few milliseconds
SHOWN_SECONDS = 600.0  # after the last window that a score has
FORGOTTEN_AFTER_SECONDS = 7200.0


class _Case(NamedTuple):
    """What a history is of: measures of progress that differ are not compared with each other."""

    segment: SegmentName
    tenant: str
    proxy: str


class Scores:
    """Collects windows and gives what was worked out of them last.

    A tenant that now has a GPU to itself and now shares it has a history by each proxy.
    """

    def __init__(self, progress: ProgressWatch) -> None:
        self._progress = progress
        self._histories: dict[_Case, History] = {}
        self._seen_at: dict[_Case, float] = {}
        self._found: dict[_Case, Sensitivity] = {}
        self._due: dict[_Case, None] = {}  # in the order of their turns
        self._evaluated_at: float | None = None

    def add(self, window: SegmentWindow, gpus: Sequence[str]) -> None:
        """Take one window of a segment; `gpus` are the UUIDs of its members."""
        for tenant in window.tenants.keys() - NOBODY:
            for told in self._progress.of(window.start, tenant, gpus):
                case = _Case(window.segment, tenant, told.proxy)
                self._histories.setdefault(case, History()).add(_observed(window, tenant, told))
                self._seen_at[case] = window.start + WINDOW_SECONDS
                self._due.setdefault(case)

    def advance(self, now: float) -> None:
        """Work out the next score whose turn it is, and forget those long gone."""
        if self._evaluated_at is not None and now - self._evaluated_at < EVALUATED_EVERY_SECONDS:
            return
        self._evaluated_at = now
        for case in [c for c, at in self._seen_at.items() if now - at > FORGOTTEN_AFTER_SECONDS]:
            self._forget(case)
        while self._due:
            case = next(iter(self._due))
            del self._due[case]
            found = sensitivity(self._histories[case], case.proxy)
            if found is not None:
                self._found[case] = found
                return
            self._found.pop(case, None)  # that cost nothing

    def view(self, now: float) -> Iterator[TenantSensitivity]:
        """What is known now, of each tenant on each segment by the best proxy."""
        best: dict[tuple[SegmentName, str], Sensitivity] = {}
        for proxy in reversed(PROXIES):
            for case, found in self._found.items():
                if case.proxy == proxy and now - self._seen_at[case] <= SHOWN_SECONDS:
                    best[case.segment, case.tenant] = found
        for (segment, tenant), found in best.items():
            yield TenantSensitivity(segment, tenant, found)

    def _forget(self, case: _Case) -> None:
        del self._histories[case], self._seen_at[case]
        self._found.pop(case, None)
        self._due.pop(case, None)


def _observed(window: SegmentWindow, tenant: str, told: Progress) -> Observation:
    return Observation(
        at=window.start,
        progress=told.progress,
        pressure=_pressure(window.tenants, tenant, window.capacity),
        own=window.tenants[tenant] / window.capacity,
        running=told.running,
        throttled=told.throttled,
    )


def _pressure(tenants: Mapping[str, float], tenant: str, capacity: float) -> float:
    """What the other tenants put on a segment, as a share of its capacity, 1 at most."""
    others = sum(tenants[other] for other in tenants.keys() - NOBODY - {tenant})
    return min(1.0, others / capacity)
