"""What the numbers of processes say: descriptors and memory that grow, limits that are near."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from seedance_obs.leaks.growth import Growth, GrowthWatch
from seedance_obs.leaks.growth_rules import GrowthRule
from seedance_obs.leaks.idle_growth import IdleGrowth, Owned
from seedance_obs.leaks.suspect import Finding
from seedance_obs.process_tree import ProcessName
from seedance_obs.sources.process_memory import (
    FdLimits,
    MemoryDetail,
    ReferencedMemory,
    read_memory,
)
from seedance_obs.sources.process_probe import Counts

FEW_FDS = 200  # below these no limit is asked for: soft limits are seldom under 256

Key = tuple[int, int]  # pid and start


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """From when on a process is suspect; see the options `leaks_*`."""

    fd_growth: tuple[GrowthRule, ...]
    memory_growth: tuple[GrowthRule, ...]
    fd_limit_ratio: float
    residency_ratio: float
    residency_least_bytes: int
    gap_seconds: float  # between two probes: growth is not judged over a longer one


class ProcessFindings:
    """Judges the processes of a host by what each probe counts of them."""

    def __init__(
        self, root: str, limits: ProcessLimits, *, referenced: ReferencedMemory | None = None
    ) -> None:
        """Take where to read, and what reads how much memory was used lately, if that is wanted."""
        self._root = root
        self._limits = limits
        self._fds = GrowthWatch[Key](limits.fd_growth, gap_seconds=limits.gap_seconds)
        self._memory = IdleGrowth[Key](limits.memory_growth, gap_seconds=limits.gap_seconds)
        self._fd_limits = FdLimits(root)
        self._since: dict[tuple[str, Key], float] = {}  # what is near a limit, or sparse
        self._referenced: dict[Key, float | None] = {}  # None: tried in vain
        self._referenced_memory = referenced

    def advance(
        self,
        counts: Mapping[int, Counts],
        account_of: Mapping[int, str],
        is_idle: Callable[[str], bool],
        now: float,
    ) -> list[Finding]:
        """The findings of one probe.

        `is_idle` is asked of each account, and of "" for processes that are no account's: growth of
        memory counts only where it says so.
        """
        fds: dict[Key, int] = {}
        anonymous: defaultdict[str, dict[Key, int]] = defaultdict(dict)
        large: list[Key] = []
        for pid, count in counts.items():
            key = (pid, count.start_ticks)
            if count.fds is not None:
                fds[key] = count.fds
            if count.anonymous_bytes is not None:
                anonymous[account_of.get(pid, "")][key] = count.anonymous_bytes
            if (count.resident_bytes or 0) >= self._limits.residency_least_bytes:
                large.append(key)
        self._fds.note(now, fds)
        owners = {name: Owned(is_idle(name), values) for name, values in anonymous.items()}
        self._memory.note(now, owners)
        self._fd_limits.keep(fds)
        before, self._since = self._since, {}
        found = [
            *self._growing_fds(fds, now),
            *self._near_limit(fds, before, now),
            *self._growing_memory(now),
            *self._sparse(large, before, now),
        ]
        return self._with_references(found)

    def _growing_fds(self, fds: Mapping[Key, int], now: float) -> Iterator[Finding]:
        for key, growths in self._fds.growing(now).items():
            limit = self._fd_limits.of(*key, now)
            for growth in growths:
                if not growth.matters(limit):
                    continue
                evidence = {
                    "open_fds": float(fds[key]),
                    "growth_fds_per_second": growth.per_second,
                    "low_water_fds_per_second": growth.low_water_per_second,
                }
                if limit is not None:
                    evidence["fd_limit"] = float(limit)
                    evidence["exhaustion_seconds"] = (limit - fds[key]) / growth.per_second
                yield _finding("fd_growth", key, growth, evidence)

    def _near_limit(
        self, fds: Mapping[Key, int], before: Mapping[tuple[str, Key], float], now: float
    ) -> Iterator[Finding]:
        for key, count in fds.items():
            if count < FEW_FDS:
                continue
            limit = self._fd_limits.of(*key, now)
            if limit is not None and count >= self._limits.fd_limit_ratio * limit:
                since = self._seen_since(("fd_near_limit", key), before, now)
                evidence = {"open_fds": float(count), "fd_limit": float(limit)}
                yield Finding("fd_near_limit", since, process=_name(key), evidence=evidence)

    def _growing_memory(self, now: float) -> Iterator[Finding]:
        for key, growths in self._memory.growing(now).items():
            detail = read_memory(self._root, key[0])
            for growth in growths:
                evidence = {
                    "anonymous_bytes": float(growth.level),
                    "growth_bytes_per_second": growth.per_second,
                    "low_water_bytes_per_second": growth.low_water_per_second,
                    **_detail(detail),
                }
                yield _finding("anonymous_growth", key, growth, evidence)

    def _sparse(
        self, large: list[Key], before: Mapping[tuple[str, Key], float], now: float
    ) -> Iterator[Finding]:
        for key in large:
            detail = read_memory(self._root, key[0])
            ratio = detail.residency if detail else None
            if ratio is not None and ratio < self._limits.residency_ratio:
                since = self._seen_since(("sparse_residency", key), before, now)
                evidence = _detail(detail)
                yield Finding("sparse_residency", since, process=_name(key), evidence=evidence)

    def _seen_since(
        self, what: tuple[str, Key], before: Mapping[tuple[str, Key], float], now: float
    ) -> float:
        since = self._since[what] = before.get(what, now)
        return since

    def _with_references(self, found: list[Finding]) -> list[Finding]:
        """The findings of memory with how much of it was used lately; one is read a probe."""
        if self._referenced_memory is None:
            return found
        keys = dict.fromkeys(filter(None, map(_key_of_memory, found)))
        self._referenced = {k: r for k, r in self._referenced.items() if k in keys}
        due = next((key for key in keys if key not in self._referenced), None)
        if due is not None:
            self._referenced[due] = self._referenced_memory.referenced_ratio(due[0])
        return [self._with_reference(finding) for finding in found]

    def _with_reference(self, finding: Finding) -> Finding:
        key = _key_of_memory(finding)
        ratio = None if key is None else self._referenced.get(key)
        if ratio is None:
            return finding
        return replace(finding, evidence={**finding.evidence, "referenced_ratio": ratio})


def _key_of_memory(finding: Finding) -> Key | None:
    """The process of a finding that concerns memory."""
    process = finding.process
    if finding.kind not in ("anonymous_growth", "sparse_residency") or process is None:
        return None
    return None if process.start_ticks is None else (process.pid, process.start_ticks)


def _finding(kind: str, key: Key, growth: Growth, evidence: Mapping[str, float]) -> Finding:
    return Finding(kind, growth.since, growth.rule.name, _name(key), evidence=evidence)


def _name(key: Key) -> ProcessName:
    return ProcessName(*key)


def _detail(detail: MemoryDetail | None) -> dict[str, float]:
    """What `status` says of a suspect's memory, by names of evidence."""
    if detail is None:
        return {}
    told = {
        "resident_bytes": detail.resident,
        "file_bytes": detail.rss_file,
        "shared_bytes": detail.rss_shmem,
        "swap_bytes": detail.swap,
        "residency_ratio": detail.residency,
    }
    return {name: float(value) for name, value in told.items() if value is not None}
