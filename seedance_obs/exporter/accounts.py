"""The running accounts of a node: GPU time and energy by tenant, XID errors by GPU.

Sums over the tenants of a GPU equal the time it was observed and its board's energy-counter
delta, in integer microseconds and millijoules. Until per-process shares are known a GPU that
several tenants hold is split equally among them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from seedance_obs.attribution.shares import split_exactly
from seedance_obs.exporter.view import TenantAccount
from seedance_obs.merge import Chosen, MergedGpu
from seedance_obs.sources.readings import Xid

UNALLOCATED = "unallocated"
UNOBSERVED = "unobserved"  # what passed while nobody looked, or by holders nobody could list
UNKNOWN_TENANT = "unknown"


def tenants_of(gpu: MergedGpu, user_of: Callable[[int], str | None]) -> tuple[str, ...]:
    """Who holds a GPU now: the namespaces of its pods, else the users of its compute processes."""
    if gpu.pods:
        return tuple(sorted({pod.namespace for pod in gpu.pods}))
    if gpu.processes is None or (gpu.pods is None and gpu.pod_managed):
        return (UNOBSERVED,)
    users = {
        user_of(process.pid) or UNKNOWN_TENANT for process in gpu.processes if not process.graphics
    }
    return tuple(sorted(users)) or (UNALLOCATED,)


@dataclass(slots=True)
class _Board:
    """The running state of one GPU's accounts."""

    seen_at: float
    energy: Chosen | None = None
    held_us: Counter[str] = field(default_factory=Counter)
    energy_mj: Counter[str] = field(default_factory=Counter)


class Accounts:
    """Accounts that only grow; `gap_seconds` without a sighting are booked as unobserved."""

    def __init__(self, *, gap_seconds: float) -> None:
        self._gap_seconds = gap_seconds
        self._boards: dict[str, _Board] = {}
        self._xids: dict[str, Counter[tuple[str, int]]] = {}  # by source

    def advance(self, gpu: MergedGpu, tenants: Sequence[str]) -> None:
        """Book what passed on one GPU since its last sighting to those who hold it now."""
        energy = gpu.readings.get("energy_mj")
        board = self._boards.get(gpu.uuid)
        if board is None:
            board = self._boards[gpu.uuid] = _Board(seen_at=gpu.seen_at, energy=energy)
        elapsed = gpu.seen_at - board.seen_at
        holders = dict.fromkeys(tenants if elapsed <= self._gap_seconds else (UNOBSERVED,), 1)
        elapsed_us = round(gpu.seen_at * 1e6) - round(board.seen_at * 1e6)
        if elapsed_us > 0 or not board.held_us:
            board.held_us.update(split_exactly(max(0, elapsed_us), holders))
        board.seen_at = max(board.seen_at, gpu.seen_at)
        if energy is not None:
            self._book_energy(board, energy, holders)

    def count_xids(self, source: str, xids: Iterable[Xid]) -> None:
        """Count the XID events that a source tells of."""
        counts = self._xids.setdefault(source, Counter())
        counts.update((xid.uuid, xid.code) for xid in xids)

    def tenants(self) -> tuple[TenantAccount, ...]:
        """Every account, in a stable order."""
        return tuple(
            TenantAccount(
                gpu_uuid=uuid,
                tenant=tenant,
                held_us=board.held_us[tenant],
                energy_mj=None if board.energy is None else board.energy_mj[tenant],
            )
            for uuid, board in self._boards.items()
            for tenant in sorted({*board.held_us, *board.energy_mj})
        )

    def xids(
        self, labels_of: Callable[[str], tuple[str, ...]]
    ) -> dict[tuple[tuple[str, ...], int], int]:
        """XID counts by GPU labels and code, lost GPUs included.

        Sources tell of the same events and each may miss some: the one that saw most is right.
        """
        most: Counter[tuple[str, int]] = Counter()
        for counts in self._xids.values():
            most |= counts
        return {(labels_of(uuid), code): count for (uuid, code), count in sorted(most.items())}

    def _book_energy(self, board: _Board, energy: Chosen, holders: dict[str, int]) -> None:
        last = board.energy
        board.energy = energy
        if last is None or energy == last:
            return
        if energy.taken_at - last.taken_at > self._gap_seconds:
            holders = {UNOBSERVED: 1}
        delta_mj = int(energy.value) - int(last.value)
        if delta_mj < 0:
            # The counter restarted with the driver; what it shows now nobody watched being burned.
            board.energy_mj[UNOBSERVED] += int(energy.value)
        else:
            board.energy_mj.update(split_exactly(delta_mj, holders))
