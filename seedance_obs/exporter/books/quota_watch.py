"""What each workload may use of each board, and how long it has stood at its limits.

Reading quotas opens files of other processes, which may block: `refresh` runs on a thread of its
own, `note` on the one that books.
"""

import threading
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from seedance_obs.attribution.state import number, text
from seedance_obs.exporter.books.seats import Seat
from seedance_obs.exporter.view import QuotaRow
from seedance_obs.sources.procfs import read_process
from seedance_obs.sources.quota_reader import QuotaReader
from seedance_obs.sources.quotas import Quota, mig_quota, over

Number = TypeVar("Number", int, float)

NEARLY = 0.02  # of a limit: the allocation that would reach it is the one that fails
_KEPT = ("account", "gpu_uuid", "source", "limit", "seconds")
# Their SM share is of the board's SMs, which the time that kernels ran does not tell.
_OF_SMS = ("mig", "mps")


class QuotaWatch:
    """Remembers the quotas of the seats that there were last.

    Longer than `gap_seconds` after a look nobody knows what was used.
    """

    def __init__(self, reader: QuotaReader, proc_root: str, *, gap_seconds: float) -> None:
        self._reader = reader
        self._proc_root = proc_root
        self._gap_seconds = gap_seconds
        self._lock = threading.Lock()
        self._seats: Sequence[Seat] = ()
        self._quotas: dict[tuple[str, str], tuple[Quota, ...]] = {}  # by account and board
        self._at_limit: defaultdict[tuple[str, str, str, str], float] = defaultdict(float)

    def note(self, seats: Sequence[Seat], seconds: float) -> None:
        """Count `seconds`, those since the last look, for every limit that is reached now."""
        seconds = min(seconds, self._gap_seconds)
        with self._lock:
            self._seats, quotas = seats, self._quotas
        for seat in seats:
            for quota in quotas.get((seat.account, seat.gpu.uuid), ()):
                sm = None if quota.source in _OF_SMS else seat.activity
                reached = over(quota, seat.memory_bytes, sm, slack_ratio=NEARLY)
                for limit, at in zip(("memory", "sm"), reached, strict=True):
                    if at is not None:
                        key = (seat.account, seat.gpu.uuid, quota.source, limit)
                        self._at_limit[key] += seconds if at else 0.0

    def refresh(self) -> None:
        """Read the quotas of everything that is on a board."""
        with self._lock:
            seats = self._seats
        boards: defaultdict[str, set[str]] = defaultdict(set)
        for seat in seats:
            boards[seat.account].add(seat.gpu.uuid)
        quotas: dict[tuple[str, str], tuple[Quota, ...]] = {}
        for seat in seats:
            found = self._of(seat, only=len(boards[seat.account]) == 1)
            key = (seat.account, seat.gpu.uuid)
            quotas[key] = _together(quotas[key], found) if key in quotas else found
        with self._lock:
            self._quotas = quotas

    def leave(self, accounts: Iterable[str]) -> None:
        """Forget ended workloads."""
        gone = set(accounts)
        for key in [key for key in self._at_limit if key[0] in gone]:
            del self._at_limit[key]

    def as_state(self) -> list[Any]:
        """What a checkpoint keeps: the seconds at limits, in rows."""
        return [[*key, seconds] for key, seconds in self._at_limit.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up what a checkpoint kept.

        Raises:
            SeedanceError, TypeError, ValueError: the state is of another form.
        """
        for row in state:
            kept = dict(zip(_KEPT, row, strict=True))
            account, uuid, source, limit = (text(kept, name) for name in _KEPT[:-1])
            self._at_limit[account, uuid, source, limit] = number(kept, "seconds")

    def view(self, shown: Container[str] | None = None) -> tuple[QuotaRow, ...]:
        """Every quota of those shown, else of all, that holds now; and the seconds at limits."""
        return tuple(
            QuotaRow(
                gpu_uuid=uuid,
                account=account,
                source=quota.source,
                memory_bytes=quota.memory_bytes,
                sm_ratio=quota.sm_ratio,
                changed_at=quota.changed_at,
                at_limit={
                    limit: self._at_limit[key]
                    for limit in ("memory", "sm")
                    if (key := (account, uuid, quota.source, limit)) in self._at_limit
                },
            )
            for (account, uuid), quotas in sorted(self._quotas.items(), key=lambda item: item[0])
            if shown is None or account in shown
            for quota in quotas
        )

    def _of(self, seat: Seat, *, only: bool) -> tuple[Quota, ...]:
        found: dict[str, Quota] = {}
        if seat.instance is not None:
            found["mig"] = mig_quota(seat.instance, seat.gpu.mig_slices)
        for pid in seat.pids[:1]:
            process = read_process(self._proc_root, pid)
            if process is None:
                continue
            workload = seat.workload
            for quota in self._reader.quotas(
                pid,
                process.start_ticks,
                process.cgroup,
                pod_uid=workload.uid if workload.kind == "pod" else "",
                container=workload.container,
            ):
                if quota.holds_on(seat.gpu.uuid, only=only):
                    found.setdefault(quota.source, quota)
        return tuple(found.values())


def _together(some: Sequence[Quota], more: Sequence[Quota]) -> tuple[Quota, ...]:
    """The quotas of a workload that holds several MIG instances of a board: their sizes add up."""
    found = {quota.source: quota for quota in some}
    for quota in more:
        before = found.get(quota.source)
        if before is not None and quota.source == "mig":
            quota = replace(
                quota,
                memory_bytes=_sum(before.memory_bytes, quota.memory_bytes),
                sm_ratio=_sum(before.sm_ratio, quota.sm_ratio),
            )
        found[quota.source] = quota
    return tuple(found.values())


def _sum(one: Number | None, other: Number | None) -> Number | None:
    return None if one is None or other is None else one + other
