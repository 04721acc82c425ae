"""Puppets hold what they are told to, as the kernel counts it."""

import os
import signal
from pathlib import Path

import pytest

from tests.leaks.puppet import Puppet, PuppetError, puppet, reborn

PAGE = os.sysconf("SC_PAGE_SIZE")
SLACK_PAGES = 64  # what an interpreter may take for itself meanwhile


def open_fds(process: Puppet) -> int:
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def pages(process: Puppet) -> tuple[int, int]:
    """Anonymous and other resident pages."""
    fields = Path(f"/proc/{process.pid}/statm").read_text().split()
    resident, shared = int(fields[1]), int(fields[2])
    return resident - shared, shared


def status_kb(process: Puppet, name: str) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_holds_exactly_so_many_descriptors(tmp_path: Path) -> None:
    file = tmp_path / "mapped"
    file.write_bytes(bytes(PAGE))
    with puppet() as process:
        for count in (500, 3, 4000, 3999):
            process.fds(count)
            assert open_fds(process) == count
        process.fork()
        process.map(file)
        process.fds(100)
        assert open_fds(process) == 100
        with pytest.raises(PuppetError, match="needed"):
            process.fds(2)


def test_anonymous_memory_is_what_was_asked_for() -> None:
    with puppet() as process:
        process.anon(PAGE)
        before, _ = pages(process)
        for size in (20_000_000, 20_208_333, 60_000_000, 1_000_000, 0):
            process.anon(size)
            held = pages(process)[0] - before
            assert held == pytest.approx(size // PAGE, abs=SLACK_PAGES)


def test_steps_of_less_than_a_page_do_not_add_up_to_more() -> None:
    with puppet() as process:
        process.anon(PAGE)
        before, _ = pages(process)
        for step in range(1, 300):
            process.anon(step * (PAGE // 2 + 1))
        assert pages(process)[0] - before == pytest.approx(150, abs=SLACK_PAGES)


def test_shared_memory_and_mapped_files_are_not_anonymous(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    file.touch()
    os.truncate(file, 64_000_000)
    with puppet() as process:
        process.anon(PAGE)
        anonymous, other = pages(process)
        process.shm(8_000_000)
        shared = status_kb(process, "RssShmem") * 1024
        assert shared == pytest.approx(8_000_000, abs=SLACK_PAGES * PAGE)
        process.map(file, 16_000_000)
        part = pages(process)[1] - other
        assert part * PAGE == pytest.approx(24_000_000, abs=2**21)
        process.map(file)
        assert (pages(process)[1] - other) * PAGE == pytest.approx(72_000_000, abs=2**21)
        process.shm(0)
        assert status_kb(process, "RssShmem") == 0
        assert pages(process)[0] == pytest.approx(anonymous, abs=SLACK_PAGES)


def test_huge_pages_are_held_or_refused() -> None:
    with puppet() as process:
        if process.huge(2**22):
            assert status_kb(process, "HugetlbPages") == 4096
            process.huge(0)
        assert status_kb(process, "HugetlbPages") == 0
        before, _ = pages(process)
        process.advised(2**23)
        assert pages(process)[0] - before == pytest.approx(2**23 // PAGE, abs=SLACK_PAGES)


def test_it_uses_cpu_time() -> None:
    with puppet() as process:
        process.spin(0.1)
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks = int(fields[11]) + int(fields[12])
        assert ticks / os.sysconf("SC_CLK_TCK") >= 0.09


def test_a_child_is_a_puppet_and_ends_with_its_parent() -> None:
    with puppet() as process:
        child = process.fork()
        grandchild = child.fork()
        grandchild.fds(40)
        assert open_fds(grandchild) == 40
        assert open_fds(process) == 4
        assert status_kb(grandchild, "PPid") == child.pid
        grandchild.exit()
        assert not lives(grandchild.pid)
        with pytest.raises(PuppetError, match="gone"):
            grandchild.fds(40)
    assert not lives(process.pid)
    assert not lives(child.pid)


def test_one_that_was_killed_says_so_and_is_reaped() -> None:
    with puppet() as process:
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(PuppetError, match="it has ended"):
            process.fds(10)
    assert not lives(process.pid)


def test_a_pid_can_be_had_again_by_another_process() -> None:
    starts = set()
    with puppet() as process:
        pid = process.pid
        starts.add(os.stat(f"/proc/{pid}").st_ctime_ns)
    with reborn(pid) as process:
        assert process.pid == pid
        process.fds(77)
        assert open_fds(process) == 77
        starts.add(os.stat(f"/proc/{pid}").st_ctime_ns)
    assert len(starts) == 2
    assert not lives(pid)
