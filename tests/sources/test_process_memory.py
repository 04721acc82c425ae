"""What a suspect's memory is made of, its limits, and how much of it was used lately."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seedance_obs.sources import process_memory
from seedance_obs.sources.process_memory import (
    FdLimits,
    MemoryDetail,
    ReferencedMemory,
    read_fd_limit,
    read_memory,
)
from tests.privileges import as_nobody
from tests.sources.holding_process import MIB, HoldingProcess, holding_process

NOBODY_THERE = 2**22 + 1  # over any pid_max
SLACK = MIB
STATUS = """Name:\tVmRSS:\t5 kB
Uid:\t1001\t1001\t1001\t1001
VmRSS:\t    3000 kB
RssAnon:\t    1000 kB
RssFile:\t    1500 kB
RssShmem:\t     500 kB
VmData:\t    3000 kB
VmStk:\t     200 kB
VmSwap:\t      70 kB
HugetlbPages:\t    4096 kB
Threads:\t1
"""


@pytest.fixture
def child() -> Iterator[HoldingProcess]:
    with holding_process() as process:
        yield process


def detail(pid: int) -> MemoryDetail:
    found = read_memory("/", pid)
    assert found is not None
    return found


def process_folder(root: Path, pid: int = 42, *, ticks: int = 500) -> Path:
    place = root / f"proc/{pid}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "stat").write_text(f"{pid} (a) S 1 {pid} {'0 ' * 16}{ticks} 0 0\n")
    (place / "status").write_text(STATUS)
    return place


def test_every_kind_of_memory_is_told_in_bytes(tmp_path: Path) -> None:
    process_folder(tmp_path)
    assert read_memory(tmp_path, 42) == MemoryDetail(
        resident=3000 * 1024,
        rss_anon=1000 * 1024,
        rss_file=1500 * 1024,
        rss_shmem=500 * 1024,
        swap=70 * 1024,
        data=3000 * 1024,
        stack=200 * 1024,
        hugetlb=4096 * 1024,
    )


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("VmRSS", "resident"),
        ("RssAnon", "rss_anon"),
        ("RssFile", "rss_file"),
        ("RssShmem", "rss_shmem"),
        ("VmSwap", "swap"),
        ("VmData", "data"),
        ("VmStk", "stack"),
        ("HugetlbPages", "hugetlb"),
    ],
)
def test_what_a_kernel_does_not_tell_is_unknown_alone(
    tmp_path: Path, line: str, field: str
) -> None:
    status = process_folder(tmp_path) / "status"
    status.write_text(STATUS.replace(f"\n{line}:", "\nOther:"))
    found = read_memory(tmp_path, 42)
    assert found is not None
    unknown = {name for name in MemoryDetail.__slots__ if getattr(found, name) is None}
    assert unknown == {field}
    assert (found.residency is None) == (field in ("rss_anon", "data", "stack"))


def test_residency_is_the_resident_share_of_data_and_stack(tmp_path: Path) -> None:
    status = process_folder(tmp_path) / "status"
    found = read_memory(tmp_path, 42)
    assert found is not None
    assert found.residency == 1000 / 3200
    status.write_text("VmData:\t0 kB\nVmStk:\t0 kB\nRssAnon:\t0 kB\n")
    empty = read_memory(tmp_path, 42)
    assert empty is not None
    assert empty.residency is None


def test_a_process_that_is_gone_or_a_kernel_thread_has_no_memory(tmp_path: Path) -> None:
    assert read_memory("/", NOBODY_THERE) is None
    (process_folder(tmp_path) / "status").write_text("Name:\tkworker\nThreads:\t1\n")
    found = read_memory(tmp_path, 42)
    assert found is not None
    assert {getattr(found, name) for name in MemoryDetail.__slots__} == {None}


def grown(before: int | None, after: int | None) -> int:
    assert before is not None
    assert after is not None
    return after - before


def test_real_memory_shows_where_it_belongs(child: HoldingProcess, tmp_path: Path) -> None:
    file = tmp_path / "data"
    with file.open("wb") as data:
        data.truncate(24 * MIB)
    before = detail(child.pid)
    child.touch(16 * MIB)
    child.read_mapped(file)
    child.touch(8 * MIB, flags="MAP_SHARED | mmap.MAP_ANONYMOUS")
    after = detail(child.pid)
    assert abs(grown(before.rss_anon, after.rss_anon) - 16 * MIB) < SLACK
    assert abs(grown(before.rss_file, after.rss_file) - 24 * MIB) < SLACK
    assert abs(grown(before.rss_shmem, after.rss_shmem) - 8 * MIB) < SLACK
    assert abs(grown(before.resident, after.resident) - 48 * MIB) < 2 * SLACK


def test_real_memory_that_is_only_reserved_lowers_residency(child: HoldingProcess) -> None:
    child.touch(32 * MIB)
    dense = detail(child.pid).residency
    child.run(
        f"held.append(mmap.mmap(-1, {512 * MIB}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))"
    )
    sparse = detail(child.pid).residency
    assert dense is not None
    assert sparse is not None
    assert dense > 0.8
    assert sparse < 0.1


def test_real_huge_pages_are_in_no_rss(child: HoldingProcess) -> None:
    map_huge = f"mmap.mmap(-1, {4 * MIB}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)"
    child.run(f"exec('try:\\n m = {map_huge}\\nexcept OSError: m = None')")
    child.run("held.append(m); m and m.__setitem__(slice(None), bytes(len(m)))")
    found = detail(child.pid)
    if not found.hugetlb:
        pytest.skip("this machine has no huge pages set aside")
    assert found.hugetlb == 4 * MIB
    assert found.rss_anon is not None
    assert found.rss_anon < 12 * MIB


def test_the_soft_limit_of_open_files_is_the_limit(child: HoldingProcess) -> None:
    child.run("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (321, 4321))")
    assert read_fd_limit("/", child.pid) == 321
    assert read_fd_limit("/", NOBODY_THERE) is None


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (
            "Max processes             7       8       processes\n"
            "Max open files            1024    524288  files\n",
            1024,
        ),
        ("Max open files            unlimited   unlimited   files\n", None),
        ("Max open files            -1    -1  files\n", None),
        ("", None),
    ],
)
def test_no_limit_and_an_unknown_one_are_none(tmp_path: Path, text: str, limit: int | None) -> None:
    (process_folder(tmp_path) / "limits").write_text(text)
    assert read_fd_limit(tmp_path, 42) == limit


@pytest.fixture
def limits_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pids whose limit was read."""
    pids: list[int] = []

    def noted(root: str | Path, pid: int) -> int | None:
        pids.append(pid)
        return read_fd_limit(root, pid)

    monkeypatch.setattr(process_memory, "read_fd_limit", noted)
    return pids


def limit(root: Path, pid: int, soft: int) -> None:
    text = f"Max open files            {soft}    524288  files\n"
    (process_folder(root, pid) / "limits").write_text(text)


def test_limits_of_many_are_read_once_in_a_few_minutes_and_not_all_at_once(
    tmp_path: Path, limits_read: list[int]
) -> None:
    pids = range(1000, 1300)
    for pid in pids:
        limit(tmp_path, pid, 1024)
    limits = FdLimits(tmp_path)
    reads = []
    for now in range(0, 615, 15):
        limits_read.clear()
        assert {limits.of(pid, 500, float(now)) for pid in pids} == {1024}
        reads.append(len(limits_read))
    assert reads == [300, *[15] * 40]


def test_a_limit_that_was_raised_is_seen_within_minutes(tmp_path: Path) -> None:
    limits = FdLimits(tmp_path)
    limit(tmp_path, 42, 1024)
    assert limits.of(42, 500, 0.0) == 1024
    limit(tmp_path, 42, 4096)
    assert [limits.of(42, 500, now) for now in (15.0, 300.0)] == [1024, 4096]


def test_whoever_has_a_pid_next_has_a_limit_of_its_own(tmp_path: Path) -> None:
    limits = FdLimits(tmp_path)
    limit(tmp_path, 42, 1024)
    assert limits.of(42, 500, 0.0) == 1024
    limit(tmp_path, 42, 4096)
    assert limits.of(42, 900, 0.0) == 4096


def test_a_limit_that_cannot_be_read_for_a_moment_is_asked_for_again(tmp_path: Path) -> None:
    limits = FdLimits(tmp_path)
    assert limits.of(42, 500, 0.0) is None
    limit(tmp_path, 42, 1024)
    assert limits.of(42, 500, 15.0) == 1024


def test_limits_are_forgotten_with_their_processes(tmp_path: Path, limits_read: list[int]) -> None:
    limits = FdLimits(tmp_path)
    for pid in (42, 43):
        limit(tmp_path, pid, 1024)
        limits.of(pid, 500, 0.0)
    limits.keep({(43, 500)})
    assert [limits.of(pid, 500, 0.0) for pid in (42, 43)] == [1024, 1024]
    assert limits_read == [42, 43, 42]


def use(root: Path | str, *, most_bytes: int = 2**30, seconds: float = 30.0) -> ReferencedMemory:
    return ReferencedMemory(root, most_bytes=most_bytes, seconds=seconds)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The child processes that were started to read."""
    children: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def noted(*args: object, **options: object) -> subprocess.Popen[bytes]:
        children.append(real(*args, **options))
        return children[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    return children


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("Referenced:  50 kB\nAnonymous:  200 kB\n", 0.25),
        ("Referenced:  900 kB\nAnonymous:  200 kB\n", 1.0),
        ("Referenced:  0 kB\nAnonymous:  200 kB\n", 0.0),
        ("Referenced:  50 kB\nAnonymous:  0 kB\n", None),
        ("Anonymous:  200 kB\n", None),
        ("Referenced:  50 kB\n", None),
        ("garbage", None),
        ("", None),
    ],
)
def test_the_ratio_is_of_referenced_to_anonymous_memory(
    tmp_path: Path, text: str, ratio: float | None
) -> None:
    (process_folder(tmp_path) / "smaps_rollup").write_text(text)
    assert use(tmp_path).referenced_ratio(42) == ratio


def test_a_real_process_has_used_what_it_touched_until_its_marks_are_cleared(
    child: HoldingProcess,
) -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("smaps_rollup came with Linux 4.14")
    child.touch(64 * MIB)
    reader = use("/")
    touched = reader.referenced_ratio(child.pid)
    assert touched is not None
    assert touched > 0.9
    Path(f"/proc/{child.pid}/clear_refs").write_text("1")
    cleared = reader.referenced_ratio(child.pid)
    assert cleared is not None
    assert cleared < 0.5


def test_what_may_not_be_traced_is_unknown(
    child: HoldingProcess,
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    python = Path("/usr/bin/python3")  # one that any user may run
    if not python.exists():
        pytest.skip("the only Python here may be root's own")
    monkeypatch.setattr(sys, "executable", f"{python}")
    with as_nobody():
        if os.access(f"/proc/{child.pid}/fd", os.R_OK, effective_ids=True):
            pytest.skip("this user may trace it")
        assert use("/").referenced_ratio(child.pid) is None
    assert [reader.returncode for reader in started] == [1]  # it ran, and was refused


def test_a_large_process_is_not_walked(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    (process_folder(tmp_path) / "smaps_rollup").write_text("Referenced: 1 kB\nAnonymous: 2 kB\n")
    assert use(tmp_path, most_bytes=3000 * 1024 - 1).referenced_ratio(42) is None
    assert started == []
    assert use(tmp_path, most_bytes=3000 * 1024).referenced_ratio(42) == 0.5


def test_one_whose_size_is_unknown_is_not_walked(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    (process_folder(tmp_path) / "status").write_text("Name:\ta\n")
    assert use(tmp_path).referenced_ratio(42) is None
    assert use("/").referenced_ratio(NOBODY_THERE) is None
    assert started == []


def test_a_reading_is_killed_at_its_deadline_and_its_process_then_left_alone(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    os.mkfifo(process_folder(tmp_path) / "smaps_rollup")  # opening it waits for a writer
    reader = use(tmp_path, seconds=0.05)
    assert reader.referenced_ratio(42) is None
    assert [child.returncode for child in started] == [-9]
    assert reader.referenced_ratio(42) is None
    assert len(started) == 1
    process_folder(tmp_path, ticks=900)  # another process with its pid
    assert reader.referenced_ratio(42) is None
    assert len(started) == 2


def test_what_is_left_alone_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_LEFT_ALONE", 2)
    os.mkfifo(process_folder(tmp_path) / "smaps_rollup")
    reader = use(tmp_path, seconds=0.01)
    for ticks in range(4):
        process_folder(tmp_path, ticks=ticks)
        reader.referenced_ratio(42)
    assert list(reader._left_alone) == [(42, 2), (42, 3)]


def test_while_a_reading_cannot_be_ended_no_other_starts(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(process_folder(tmp_path) / "smaps_rollup")
    other = process_folder(tmp_path, 43) / "smaps_rollup"
    other.write_text("Referenced: 1 kB\nAnonymous: 2 kB\n")
    reader = use(tmp_path, seconds=0.05)

    def in_state_d(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(process_memory, "kill_process", in_state_d)
    assert reader.referenced_ratio(42) is None
    reader._seconds = 30.0
    assert reader.referenced_ratio(43) is None
    assert len(started) == 1
    started[0].kill()
    started[0].wait()
    assert reader.referenced_ratio(43) == 0.5


def test_where_no_process_can_be_started_the_use_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (process_folder(tmp_path) / "smaps_rollup").write_text("Referenced: 1 kB\nAnonymous: 2 kB\n")

    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError

    reader = use(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refused)
        assert reader.referenced_ratio(42) is None
    assert reader.referenced_ratio(42) == 0.5
