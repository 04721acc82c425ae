"""Puts the leak probes together from a node's settings."""

from collections.abc import Callable, Mapping
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.leaks.costs import Costs
from seedance_obs.exporter.leaks.held import HeldOnBoards
from seedance_obs.exporter.leaks.process_findings import ProcessFindings, ProcessLimits
from seedance_obs.exporter.leaks.sights import Sights
from seedance_obs.exporter.leaks.warm import WarmServers
from seedance_obs.exporter.leaks.watch import LeakParts, LeakWatch, Prices
from seedance_obs.exporter.leaks.whose import Whose
from seedance_obs.exporter.leaks.windows import MOST_MISSED_PROBES, Windows
from seedance_obs.leaks.board_detectors import BoardLimits, seconds_needed
from seedance_obs.leaks.board_watch import BoardWatch
from seedance_obs.leaks.growth_buckets import WATCHED_WINDOWS
from seedance_obs.leaks.growth_rules import read_growth_rules
from seedance_obs.leaks.suspect import GPU_KINDS
from seedance_obs.sources.cpu_times import CpuTimes
from seedance_obs.sources.host_load import MemoryUse
from seedance_obs.sources.process_members import ProcessMembers
from seedance_obs.sources.process_memory import ReferencedMemory
from seedance_obs.sources.process_probe import ProcessProbe
from seedance_obs.sources.sandbox import Sandboxes

MOST_MISSED_PASSES = 3  # over a source of boards


def open_leaks(
    settings: NodeSettings,
    *,
    host_pids: Callable[[], bool | None],
    wall: Callable[[], float],
    cpu_clock: Callable[[], float],
) -> LeakWatch | None:
    """The probes that the settings ask for; None where they ask for none.

    Raises:
        UsageError: as `leak_parts` does.
    """
    if settings.leaks_processes == "none":
        return None
    return LeakWatch(
        leak_parts(settings, wall=wall),
        every_process=settings.leaks_processes == "all",
        most_shown=settings.leaks_shown,
        prices=Prices(
            settings.prices_currency, settings.prices_kwh or None, settings.prices_gpu_hour or None
        ),
        judged_after_seconds=_judged_after_seconds(settings),
        gap_seconds=MOST_MISSED_PROBES * settings.leaks_interval_seconds,
        host_pids=host_pids,
        cpu_clock=cpu_clock,
    )


def leak_parts(settings: NodeSettings, *, wall: Callable[[], float]) -> LeakParts:
    """What the probes are made of, over the files of the node's root.

    Raises:
        UsageError: a growth rule or an entry of the warm servers cannot be read.
    """
    root = Path(settings.node_root)
    limits = _board_limits(settings)
    return LeakParts(
        proc=str(root / "proc"),
        probe=ProcessProbe(root),
        members=ProcessMembers(root),
        windows=Windows(settings, CpuTimes(root), MemoryUse(root)),
        processes=ProcessFindings(
            str(root), _process_limits(settings), referenced=_referenced_memory(settings)
        ),
        sights=Sights(WarmServers(settings.leaks_warm_servers)),
        boards=BoardWatch(limits),
        held=HeldOnBoards(limits),
        whose=Whose(Sandboxes(root), root=root, wall=wall),
        costs=Costs(),
    )


def _process_limits(settings: NodeSettings) -> ProcessLimits:
    return ProcessLimits(
        fd_growth=read_growth_rules(settings.leaks_fd_growth, "fds"),
        memory_growth=read_growth_rules(settings.leaks_memory_growth, "bytes"),
        fd_limit_ratio=settings.leaks_fd_limit_ratio,
        residency_ratio=settings.leaks_residency_ratio,
        residency_least_bytes=settings.leaks_residency_least_bytes,
        gap_seconds=MOST_MISSED_PROBES * settings.leaks_interval_seconds,
    )


def _referenced_memory(settings: NodeSettings) -> ReferencedMemory | None:
    if not settings.leaks_smaps:
        return None
    return ReferencedMemory(
        settings.node_root,
        most_bytes=settings.leaks_smaps_most_bytes,
        seconds=settings.leaks_smaps_seconds,
    )


def _judged_after_seconds(settings: NodeSettings) -> Mapping[str, float]:
    """For how long something of a kind must be watched, by kind."""
    limits = _process_limits(settings)
    boards = _board_limits(settings)
    growth = {"fd_growth": limits.fd_growth, "anonymous_growth": limits.memory_growth}
    return {
        **{kind: seconds_needed(kind, boards) for kind in GPU_KINDS},
        **{
            kind: WATCHED_WINDOWS * min(rule.window_seconds for rule in rules)
            for kind, rules in growth.items()
            if rules
        },
    }


def _board_limits(settings: NodeSettings) -> BoardLimits:
    slowest = max(
        settings.sampler_interval_seconds,
        settings.dcgm_interval_seconds if settings.dcgm_url else 0.0,
    )
    return BoardLimits(
        context_seconds=settings.leaks_context_seconds,
        context_samples=settings.leaks_context_samples,
        context_activity_ratio=settings.leaks_context_activity_ratio,
        gpu_memory_bytes=settings.leaks_gpu_memory_bytes,
        orphan_seconds=settings.leaks_orphan_seconds,
        allocated_seconds=settings.leaks_allocated_seconds,
        spin_seconds=settings.leaks_spin_seconds,
        gap_seconds=max(BoardLimits().gap_seconds, MOST_MISSED_PASSES * slowest),
    )
