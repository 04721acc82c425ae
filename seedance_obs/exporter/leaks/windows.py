"""The idle windows of a node and of each workload on its GPUs.

`note` runs on the assembling thread each tick, `probe` on one that may block, the rest on any.
"""

import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.account_names import tenant_of, workload_of
from seedance_obs.exporter.leaks.gpu_activity import GpuActivity, OnBoards
from seedance_obs.exporter.view import IdleWindowView
from seedance_obs.leaks.idle_window import REASONS, IdleLimits, IdleWindow, Load
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes, CpuUse

MOST_MISSED_PROBES = 3


class Memory(Protocol):
    """Reads how much of the host's memory is in use."""

    def read(self) -> float | None:
        """As a share (0 to 1); None where it is not told."""


class Windows:
    """Judges the node by all CPUs, memory and boards, a workload by its own CPU time and boards.

    A workload's share of CPU time is of the CPUs that go with its GPUs: all of them times the
    share of the node's boards that it is on. Accounts that are not probed any more are forgotten.
    `cpu` is this one's own, since it remembers the read before.
    """

    def __init__(self, settings: NodeSettings, cpu: CpuTimes, memory: Memory) -> None:
        self._cpu = cpu
        self._memory = memory
        limits = IdleLimits(
            cpu_ratio=settings.leaks_idle_cpu_ratio,
            memory_ratio=settings.leaks_idle_memory_ratio,
            gpu_ratio=settings.leaks_idle_gpu_ratio,
            seconds=settings.leaks_idle_seconds,
            gap_seconds=MOST_MISSED_PROBES * settings.leaks_interval_seconds,
        )
        self._limits = replace(limits, memory_ratio=None)
        self._node = IdleWindow(limits)
        self._workloads: dict[str, IdleWindow] = {}
        self._skipped = dict.fromkeys(REASONS, 0)
        self._stale_seconds = settings.sampler_stale_after_seconds
        self._expected = settings.node_expected_gpus
        self._noting = GpuActivity()  # since the last probe
        self._noted = GpuActivity()  # before it
        self._noted_at: float | None = None
        self._lock = threading.Lock()

    def note(
        self,
        boards: Sequence[MergedGpu],
        accounts: Mapping[str, OnBoards],
        now: float,
        *,
        expected: int = 0,
    ) -> None:
        """Take the activity of every board and of the accounts on them at one tick.

        `expected` is how many boards the node should have; while fewer are seen than that, or than
        at any time before, the node's GPUs are unknown. Else a silent driver would look like a
        node without GPUs.
        """
        with self._lock:
            if self._noted_at is not None and now - self._noted_at > self._stale_seconds:
                self._noting.note((), {})  # a look that saw nothing
            self._noting.note(boards, accounts)
            self._noted_at = now
            self._expected = max(self._expected, expected, len(boards))

    def probe(self, now: float, owners: Mapping[str, CpuOwner]) -> None:
        """Read CPU times and memory, and move the windows of the node and of these accounts on."""
        use, memory = self._cpu.read(owners), self._memory.read()
        with self._lock:
            gpus = self._take(now)
            node_gpu = gpus.of_boards() if len(gpus.boards) >= self._expected else None
            self._node.advance(now, Load(_busy_ratio(use), memory, node_gpu))
            if not self._node.open:
                self._skipped[self._node.reason] += 1
            before = self._workloads
            self._workloads = {
                account: before.get(account) or IdleWindow(self._limits)
                for account in sorted(owners)
            }
            for account, window in self._workloads.items():
                cpu = self._cpu_ratio(use, account, gpus)
                window.advance(now, Load(cpu, None, gpus.of_account(account)))

    @property
    def node_open(self) -> bool:
        """Whether the node's window was open at the last probe."""
        with self._lock:
            return self._node.open

    def open_accounts(self) -> frozenset[str]:
        """The accounts whose windows were open at the last probe."""
        with self._lock:
            return frozenset(a for a, window in self._workloads.items() if window.open)

    @property
    def skipped(self) -> Mapping[str, int]:
        """Probes at which the node's window was closed, by each of `REASONS`."""
        with self._lock:
            return dict(self._skipped)

    def view(self, shown: Container[str] | None = None) -> tuple[IdleWindowView, ...]:
        """The node's window, then those of the `shown` accounts (None: of all) by their names."""
        with self._lock:
            node = IdleWindowView(
                self._node.open, self._node.open_seconds, reason=self._node.reason
            )
            workloads = (
                IdleWindowView(
                    window.open,
                    window.open_seconds,
                    workload_of(account),
                    tenant_of(account),
                    window.reason,
                )
                for account, window in self._workloads.items()
                if shown is None or account in shown
            )
            return (node, *workloads)

    def _take(self, now: float) -> GpuActivity:
        """What was noted since the last probe; where nothing was, what was before, while fresh."""
        if self._noting.notes:
            self._noted, self._noting = self._noting, GpuActivity()
        fresh = self._noted_at is not None and now - self._noted_at <= self._stale_seconds
        return self._noted if fresh else replace(self._noted, notes=0)

    def _cpu_ratio(self, use: CpuUse | None, account: str, gpus: GpuActivity) -> float | None:
        """The most that an account can have used of the CPU time that goes with its GPUs."""
        used = None if use is None else use.at_most.get(account)
        on = len(gpus.seats.get(account, ()))
        if use is None or used is None or not on or not use.total_us:
            return None
        return used / (use.total_us * on / max(on, len(gpus.boards), self._expected))


def _busy_ratio(use: CpuUse | None) -> float | None:
    return use.busy_us / use.total_us if use is not None and use.sure and use.total_us else None
