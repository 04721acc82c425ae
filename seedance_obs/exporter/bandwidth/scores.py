"""The sensitivity of each tenant to each segment, kept and worked out a few at a time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seedance_obs.bandwidth.loads import NOBODY
from seedance_obs.bandwidth.reading import SegmentName, Sensitivity, TenantSensitivity
from seedance_obs.bandwidth.segment_windows import SegmentWindow
from seedance_obs.bandwidth.sensitivity import sensitivity
from seedance_obs.bandwidth.sensitivity_history import History, Observation
from seedance_obs.exporter.bandwidth.progress import ProgressWatch

EVALUATED_EVERY_SECONDS = 5.0  # one pair: working out its p-value takes a few milliseconds
FORGOTTEN_AFTER_SECONDS = 7200.0


class _Pair(NamedTuple):
    segment: SegmentName
    tenant: str


class Scores:
    """Collects windows and gives what was worked out of them last."""

    def __init__(self, progress: ProgressWatch) -> None:
        self._progress = progress
        self._histories: dict[_Pair, History] = {}
        self._proxies: dict[_Pair, str] = {}
        self._seen_at: dict[_Pair, float] = {}
        self._found: dict[_Pair, Sensitivity] = {}
        self._due: list[_Pair] = []  # in the order of their turns
        self._evaluated_at: float | None = None

    def add(self, window: SegmentWindow, gpus: Sequence[str]) -> None:
        """Take one window of a segment; `gpus` are the UUIDs of its members."""
        for tenant, own in window.tenants.items():
            if tenant in NOBODY:
                continue
            told = self._progress.of(window.start, tenant, gpus)
            if told is None:
                continue
            pair = _Pair(window.segment, tenant)
            if self._proxies.get(pair) != told.proxy:  # what went before is of another measure
                self._histories[pair] = History()
                self._proxies[pair] = told.proxy
                self._found.pop(pair, None)
            self._histories[pair].add(
                Observation(
                    at=window.start,
                    progress=told.progress,
                    pressure=_pressure(window, tenant),
                    own=own / window.capacity,
                    running=told.running,
                    throttled=told.throttled,
                )
            )
            self._seen_at[pair] = window.start
            if pair not in self._due:
                self._due.append(pair)

    def advance(self, now: float) -> None:
        """Work out the pair whose turn it is, and forget those long gone."""
        if self._evaluated_at is not None and now - self._evaluated_at < EVALUATED_EVERY_SECONDS:
            return
        self._evaluated_at = now
        for pair in [p for p, at in self._seen_at.items() if now - at > FORGOTTEN_AFTER_SECONDS]:
            self._forget(pair)
        if self._due:
            pair = self._due.pop(0)
            found = sensitivity(self._histories[pair], self._proxies[pair])
            if found is None:
                self._found.pop(pair, None)
            else:
                self._found[pair] = found

    def view(self) -> Iterator[TenantSensitivity]:
        """What is known now."""
        for pair, found in self._found.items():
            yield TenantSensitivity(pair.segment, pair.tenant, found)

    def _forget(self, pair: _Pair) -> None:
        for kept in (self._histories, self._proxies, self._seen_at, self._found):
            kept.pop(pair, None)
        if pair in self._due:
            self._due.remove(pair)


def _pressure(window: SegmentWindow, tenant: str) -> float:
    """What the other tenants put on a segment, as a share of its capacity, 1 at most."""
    others = sum(
        level for other, level in window.tenants.items() if other != tenant and other not in NOBODY
    )
    return min(1.0, others / window.capacity)
