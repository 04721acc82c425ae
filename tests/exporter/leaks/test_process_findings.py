"""What a probe's counts, and the files of a made-up host, make of each process."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from seedance_obs.exporter.leaks.process_findings import FEW_FDS, ProcessFindings, ProcessLimits
from seedance_obs.leaks.growth_rules import GrowthRule
from seedance_obs.leaks.suspect import Finding
from seedance_obs.process_tree import ProcessName
from seedance_obs.sources.process_probe import Counts

GB = 10**9
PID, START = 7, 700
LIMITS = ProcessLimits(
    fd_growth=(GrowthRule("fast", 8.0, 180.0, 1000),),
    memory_growth=(GrowthRule("fast", 1e6, 180.0),),
    fd_limit_ratio=0.8,
    residency_ratio=0.3,
    residency_least_bytes=2 * GB,
    gap_seconds=45.0,
)


class Host:
    """The files of processes below a folder, and what each probe finds of one process."""

    def __init__(
        self, root: Path, limits: ProcessLimits = LIMITS, *, referenced: object = None
    ) -> None:
        self.root = root
        self.findings = ProcessFindings(str(root), limits, referenced=referenced)

    def write(self, *, fd_limit: int = 65_536, pid: int = PID, **status_kb: int) -> None:
        folder = self.root / f"proc/{pid}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "limits").write_text(f"Max open files   {fd_limit}   {fd_limit}  files\n")
        lines = (f"{name}:\t{value} kB\n" for name, value in status_kb.items())
        (folder / "status").write_text("".join(lines))

    def probe(self, now: float, *, idle: bool = True, **counts: int | None) -> list[Finding]:
        return self.probe_all({PID: counts}, now, idle=idle)

    def probe_all(
        self, counts: Mapping[int, Mapping[str, int | None]], now: float, *, idle: bool = True
    ) -> list[Finding]:
        none = {"fds": None, "anonymous_bytes": None, "resident_bytes": None}
        every = {pid: Counts(START, **none | dict(one)) for pid, one in counts.items()}
        return self.findings.advance(every, {}, lambda _: idle, now)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.write()
    return made


def test_descriptors_that_grow_are_told_with_the_time_until_the_limit(host: Host) -> None:
    for now in range(0, 3600, 15):
        found = host.probe(now, fds=1000 + 9 * now)
    (growth,) = found
    assert (growth.kind, growth.rule, growth.process) == (
        "fd_growth",
        "fast",
        ProcessName(PID, START),
    )
    open_fds = 1000 + 9 * now
    assert growth.evidence["open_fds"] == open_fds
    assert growth.evidence["fd_limit"] == 65_536
    assert growth.evidence["growth_fds_per_second"] == pytest.approx(9.0)
    assert growth.evidence["exhaustion_seconds"] == pytest.approx((65_536 - open_fds) / 9.0)


def test_without_a_limit_nothing_is_said_of_when_it_is_reached(host: Host) -> None:
    (host.root / f"proc/{PID}/limits").unlink()
    for now in range(0, 1800, 15):
        found = host.probe(now, fds=1000 + 9 * now)
    assert found[0].evidence.keys().isdisjoint({"fd_limit", "exhaustion_seconds"})


@pytest.mark.parametrize(("fd_limit", "told"), [(65_536, []), (900, ["fd_growth"])])
def test_growth_at_a_low_level_is_worth_a_word_only_below_a_low_limit(
    tmp_path: Path, fd_limit: int, told: list[str]
) -> None:
    slow = GrowthRule("slow", 0.05, 180.0, 1000)
    host = Host(tmp_path, replace(LIMITS, fd_growth=(slow,)))
    host.write(fd_limit=fd_limit)
    for now in range(0, 1815, 15):
        found = host.probe(now, fds=now // 10)
    assert [finding.kind for finding in found] == told


@pytest.mark.parametrize(("fds", "told"), [(799, False), (800, True)])
def test_a_limit_is_near_from_a_share_of_it_on(host: Host, fds: int, told: bool) -> None:
    host.write(fd_limit=1000)
    found = host.probe(0.0, fds=fds)
    assert [finding.kind for finding in found] == (["fd_near_limit"] if told else [])


def test_of_few_descriptors_no_limit_is_asked_for(host: Host) -> None:
    host.write(fd_limit=FEW_FDS)
    assert host.probe(0.0, fds=FEW_FDS - 1) == []
    assert [finding.kind for finding in host.probe(15.0, fds=FEW_FDS)] == ["fd_near_limit"]


def test_what_is_near_a_limit_was_so_since_it_was_first_seen_so_without_a_break(host: Host) -> None:
    host.write(fd_limit=1000)
    since = [
        [finding.since for finding in host.probe(now, fds=fds)]
        for now, fds in ((0.0, 500), (15.0, 900), (30.0, 950), (45.0, 500), (60.0, 900))
    ]
    assert since == [[], [15.0], [15.0], [], [60.0]]


@pytest.mark.parametrize(("idle", "kinds"), [(True, ["anonymous_growth"]), (False, [])])
def test_memory_is_judged_only_where_its_owner_is_idle(host: Host, idle: bool, kinds: list) -> None:
    host.write(RssFile=8, VmSwap=4)
    for now in range(0, 1800, 15):
        found = host.probe(now, idle=idle, anonymous_bytes=2_000_000 * now)
    assert [finding.kind for finding in found] == kinds
    for finding in found:
        assert finding.evidence["growth_bytes_per_second"] == pytest.approx(2e6)
        assert finding.evidence["anonymous_bytes"] == 2_000_000 * now
        assert (finding.evidence["file_bytes"], finding.evidence["swap_bytes"]) == (8192, 4096)


@pytest.mark.parametrize(
    ("resident", "anon_kb", "told"),
    [(2 * GB, 299, True), (2 * GB - 1, 299, False), (2 * GB, 300, False)],
)
def test_little_of_a_large_memory_is_sparse(
    host: Host, resident: int, anon_kb: int, told: bool
) -> None:
    host.write(RssAnon=anon_kb, VmData=900, VmStk=100)
    found = host.probe(0.0, resident_bytes=resident)
    assert [finding.kind for finding in found] == (["sparse_residency"] if told else [])


class Walked:
    """Tells how much was used lately, and keeps whom it was asked of."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def referenced_ratio(self, pid: int) -> float | None:
        self.asked.append(pid)
        return None if pid == 9 else 0.25


def test_page_tables_are_walked_of_one_suspect_a_probe_and_once_of_each(tmp_path: Path) -> None:
    walked = Walked()
    host = Host(tmp_path, referenced=walked)
    for pid in (PID, 8, 9):
        host.write(pid=pid, RssAnon=1, VmData=900, VmStk=100)
    large = {pid: {"resident_bytes": 3 * GB} for pid in (PID, 8, 9)}
    told = [
        [finding.evidence.get("referenced_ratio") for finding in host.probe_all(large, now)]
        for now in (0.0, 15.0, 30.0, 45.0)
    ]
    assert walked.asked == [PID, 8, 9]
    assert told[0] == [0.25, None, None]
    assert told[3] == [0.25, 0.25, None]


def test_without_the_option_no_page_table_is_walked(host: Host) -> None:
    host.write(RssAnon=1, VmData=900, VmStk=100)
    (finding,) = host.probe(0.0, resident_bytes=3 * GB)
    assert "referenced_ratio" not in finding.evidence


def test_unknown_counts_are_no_finding(host: Host) -> None:
    for now in range(0, 1800, 15):
        assert host.probe(now) == []
