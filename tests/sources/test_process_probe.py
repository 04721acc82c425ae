"""Descriptors and anonymous memory, of real processes and of folders that look like some."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seedance_obs.sources import process_probe
from seedance_obs.sources.process_probe import OUTCOMES, Counts, ProcessProbe
from seedance_obs.sources.procfs import ProcessStart, read_start
from tests.chosen_pid import stranger
from tests.no_descriptors import no_descriptors
from tests.privileges import as_nobody
from tests.sources.holding_process import MIB, HoldingProcess, holding_process
from tests.sources.test_proc_mount import own

NOBODY_THERE = 2**22 + 1  # over any pid_max
SLACK = MIB  # what an interpreter may allocate beside what it is told to


@pytest.fixture
def child() -> Iterator[HoldingProcess]:
    with holding_process() as process:
        yield process


@pytest.fixture
def old_kernel(monkeypatch: pytest.MonkeyPatch) -> ProcessProbe:
    """One from before Linux 6.2, to which the size of a folder of descriptors is 0."""
    real = os.stat

    def uncounted(path: str, **options: int) -> os.stat_result:
        found = real(path, **options)
        if not str(path).endswith("/fd"):
            return found
        return os.stat_result([0 if place == 6 else value for place, value in enumerate(found)])

    monkeypatch.setattr(os, "stat", uncounted)
    return ProcessProbe("/")


def look(probe: ProcessProbe, pid: int) -> Counts:
    return probe.read([pid]).counts[pid]


def outcome(probe: ProcessProbe, pid: int) -> str:
    """How the reading of the one process went."""
    ((name, count),) = probe.read([pid]).outcomes.items()
    assert count == 1
    assert name in OUTCOMES
    return name


def starts_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    read: list[int] = []

    def noted(proc: str, pid: int) -> ProcessStart | None:
        read.append(pid)
        return read_start(proc, pid)

    monkeypatch.setattr(process_probe, "read_start", noted)
    return read


def test_descriptors_are_counted_as_a_listing_counts_them(child: HoldingProcess) -> None:
    probe = ProcessProbe("/")
    before = look(probe, child.pid)
    assert before.fds == len(os.listdir(f"/proc/{child.pid}/fd"))
    child.open_fds(300)
    after = look(probe, child.pid)
    assert (after.start_ticks, after.fds) == (before.start_ticks, before.fds + 300)


def test_a_kernel_that_does_not_count_has_them_listed(
    child: HoldingProcess, old_kernel: ProcessProbe
) -> None:
    child.open_fds(100)
    assert not old_kernel.mount.counts_fds
    assert look(old_kernel, child.pid).fds == len(os.listdir(f"/proc/{child.pid}/fd"))


def test_without_the_right_to_list_descriptors_are_unknown_and_never_0(
    child: HoldingProcess, old_kernel: ProcessProbe
) -> None:
    with as_nobody():
        if os.access(f"/proc/{child.pid}/fd", os.R_OK, effective_ids=True):
            pytest.skip("this user may list them")
        reading = old_kernel.read([child.pid])
    assert reading.outcomes == {"fds_unknown": 1}
    counts = reading.counts[child.pid]
    assert counts.fds is None
    assert counts.anonymous_bytes


def test_a_kernel_that_counts_tells_anyone(child: HoldingProcess) -> None:
    probe = ProcessProbe("/")
    if not probe.mount.counts_fds:
        pytest.skip("Linux counts descriptors since 6.2")
    counts = look(probe, child.pid)
    with as_nobody():
        assert look(ProcessProbe("/"), child.pid) == counts


def test_none_that_a_kernel_counts_are_none_and_nothing_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probe = ProcessProbe("/")
    if not probe.mount.counts_fds:
        pytest.skip("Linux counts descriptors since 6.2")
    monkeypatch.setattr(process_probe, "_listed", lambda _: pytest.fail("a folder was listed"))
    closes = "import os, time; os.closerange(2, 256); os.close(0); os.close(1); time.sleep(600)"
    command = [sys.executable, "-I", "-S", "-c", closes]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.read()  # until it has closed all
            assert look(probe, process.pid).fds == 0
        finally:
            process.kill()


def test_touched_memory_is_what_grows(child: HoldingProcess) -> None:
    probe = ProcessProbe("/")
    before = look(probe, child.pid).anonymous_bytes
    child.touch(48 * MIB)
    after = look(probe, child.pid).anonymous_bytes
    assert before is not None
    assert after is not None
    assert abs(after - before - 48 * MIB) < SLACK


def test_transparent_huge_pages_are_memory_like_any_other(child: HoldingProcess) -> None:
    probe = ProcessProbe("/")
    before = look(probe, child.pid).anonymous_bytes or 0
    child.run(f"m = mmap.mmap(-1, {64 * MIB}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)")
    child.run("m.madvise(14); m[:] = bytes(len(m)); held.append(m)")  # MADV_HUGEPAGE
    after = look(probe, child.pid).anonymous_bytes or 0
    assert abs(after - before - 64 * MIB) < 3 * MIB


def test_files_and_shared_and_reserved_memory_are_no_leak(
    child: HoldingProcess, tmp_path: Path
) -> None:
    file = tmp_path / "data"
    with file.open("wb") as data:
        data.truncate(64 * MIB)
    probe = ProcessProbe("/")
    before = look(probe, child.pid).anonymous_bytes or 0
    child.read_mapped(file)
    child.touch(32 * MIB, flags="MAP_SHARED | mmap.MAP_ANONYMOUS")
    child.run(f"held.append(mmap.mmap(-1, {256 * MIB}, flags=mmap.MAP_PRIVATE))")
    resident = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * 4096
    assert resident > 90 * MIB
    assert abs((look(probe, child.pid).anonymous_bytes or 0) - before) < SLACK


def test_a_zombie_and_a_kernel_thread_have_no_memory_and_nothing_unknown() -> None:
    ended = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    reading = ProcessProbe("/").read([ended.pid])
    assert reading.outcomes == {"read": 1}
    assert reading.counts[ended.pid][1:] == (0, None, None)
    ended.wait()
    if Path("/proc/2/comm").is_file() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        assert ProcessProbe("/").read([2]).outcomes == {"read": 1}


def test_a_start_is_read_once_of_each_process(
    child: HoldingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = starts_read(monkeypatch)
    probe = ProcessProbe("/")
    pids = [child.pid, os.getpid()]
    readings = [probe.read(pids) for _ in range(5)]
    assert read == pids
    first = read_start("/proc", child.pid)
    assert first is not None
    assert {reading.counts[child.pid].start_ticks for reading in readings} == {first.start_ticks}


def test_a_pid_that_is_used_again_has_another_inode_and_start(
    child: HoldingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = ProcessProbe("/")
    look(probe, child.pid)
    inode = os.stat(f"/proc/{child.pid}/fd").st_ino
    child.kill()
    with stranger(child.pid):
        assert os.stat(f"/proc/{child.pid}/fd").st_ino != inode
        read = starts_read(monkeypatch)
        counts = look(probe, child.pid)
        start = read_start("/proc", child.pid)
        assert start is not None
        assert (counts.start_ticks, read) == (start.start_ticks, [child.pid])
        assert (counts.anonymous_bytes or 0) < MIB  # nothing of the one before


def test_a_pid_that_is_handed_on_meanwhile_is_counted_for_nobody(
    child: HoldingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    successor = stranger(child.pid)

    def handed_on(proc: str, pid: int) -> ProcessStart | None:
        child.kill()
        successor.__enter__()
        return read_start(proc, pid)

    monkeypatch.setattr(process_probe, "read_start", handed_on)
    reading = ProcessProbe("/").read([child.pid])
    successor.__exit__(None, None, None)
    assert (reading.counts, reading.outcomes) == ({}, {"gone": 1})


def test_a_process_that_ends_while_being_read_is_gone(
    child: HoldingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = process_probe._statm

    def dying(file: str) -> bytes:
        child.kill()
        return real(file)

    monkeypatch.setattr(process_probe, "_statm", dying)
    reading = ProcessProbe("/").read([child.pid])
    assert (reading.counts, reading.outcomes) == ({}, {"gone": 1})


def test_one_that_is_gone_costs_no_other(child: HoldingProcess) -> None:
    reading = ProcessProbe("/").read([NOBODY_THERE, child.pid, NOBODY_THERE + 1, child.pid])
    assert list(reading.counts) == [child.pid]
    assert reading.outcomes == {"read": 1, "gone": 2}


def test_a_process_is_not_called_gone_because_we_are_short_of_descriptors(
    child: HoldingProcess,
) -> None:
    with no_descriptors():
        assert outcome(ProcessProbe("/"), child.pid) == "unreadable"


def test_while_we_are_short_of_descriptors_those_of_known_processes_are_counted(
    child: HoldingProcess,
) -> None:
    probe = ProcessProbe("/")
    if not probe.mount.counts_fds:
        pytest.skip("Linux counts descriptors since 6.2")
    before = look(probe, child.pid)
    child.open_fds(100)
    with no_descriptors():
        reading = probe.read(probe.all_pids())
    assert reading.outcomes == {"memory_unknown": 1}
    assert reading.counts[child.pid] == Counts(before.start_ticks, before.fds + 100, None, None)
    assert outcome(probe, child.pid) == "read"


def test_where_a_mount_hides_processes_a_missing_one_is_not_called_gone(
    child: HoldingProcess, tmp_path: Path
) -> None:
    probe = ProcessProbe("/", own=own(tmp_path, "rw,hidepid=invisible", groups="5"))
    assert probe.read([child.pid, NOBODY_THERE]).outcomes == {"read": 1, "hidden": 1}


def test_a_mount_that_is_changed_while_we_run_is_noticed(tmp_path: Path) -> None:
    probe = ProcessProbe("/", own=own(tmp_path, "rw"))
    assert outcome(probe, NOBODY_THERE) == "gone"
    own(tmp_path, "rw,hidepid=ptraceable")
    assert outcome(probe, NOBODY_THERE) == "hidden"
    assert probe.mount.shows_all is False


def test_processes_that_are_not_asked_for_again_are_forgotten(child: HoldingProcess) -> None:
    probe = ProcessProbe("/")
    probe.read([child.pid, os.getpid()])
    probe.read([os.getpid()])
    assert list(probe._places) == [os.getpid()]


def test_probing_leaves_no_descriptor_open(child: HoldingProcess, tmp_path: Path) -> None:
    folder(tmp_path, 42)
    probes = [ProcessProbe("/"), ProcessProbe(tmp_path)]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        for probe in probes:
            probe.read([child.pid, NOBODY_THERE, 42])
    # Threads of other tests may open a file meanwhile; fifty rounds that leak leave fifty.
    assert len(os.listdir("/proc/self/fd")) < before + 10


def test_all_processes_are_listed_and_no_thread(child: HoldingProcess) -> None:
    stop, started = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        stop.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    try:
        pids = ProcessProbe("/").all_pids()
    finally:
        stop.set()
        thread.join()
    assert {child.pid, os.getpid()} <= set(pids)
    assert thread.native_id not in pids


def test_where_nothing_can_be_listed_there_is_nothing(tmp_path: Path) -> None:
    assert ProcessProbe(tmp_path).all_pids() == []
    assert ProcessProbe(tmp_path).read([1]).outcomes == {"hidden": 1}


def folder(root: Path, pid: int, *, ticks: int = 500, fds: int = 3, statm: str = "") -> Path:
    """A process as plain files."""
    place = root / f"proc/{pid}"
    (place / "fd").mkdir(parents=True)
    for number in range(fds):
        (place / f"fd/{number}").touch()
    (place / "stat").write_text(f"{pid} (a) b) S 1 {pid} {'0 ' * 16}{ticks} 0 0\n")
    (place / "statm").write_text(statm or "2000 700 200 5 0 600 0\n")
    return place


def test_a_folder_of_files_is_read_by_listing(tmp_path: Path) -> None:
    folder(tmp_path, 42, fds=7)
    folder(tmp_path, 43, fds=0, statm="0 0 0 0 0 0 0\n")
    (tmp_path / "proc/self").mkdir()
    probe = ProcessProbe(tmp_path, page_bytes=65536)
    reading = probe.read(sorted(probe.all_pids()))
    assert reading.counts == {
        42: Counts(500, 7, 500 * 65536, 700 * 65536),
        43: Counts(500, 0, None, None),
    }
    assert reading.outcomes == {"read": 2}


def test_in_a_folder_a_start_is_read_each_time(tmp_path: Path) -> None:
    place = folder(tmp_path, 42)
    probe = ProcessProbe(tmp_path)
    look(probe, 42)
    stat = place / "stat"
    stat.write_text(stat.read_text().replace("500", "900"))
    assert look(probe, 42).start_ticks == 900


def spoil(*names: str) -> Callable[[Path], None]:
    def remove(place: Path) -> None:
        for name in names:
            (place / name).rename(place / f"was-{name}")

    return remove


@pytest.mark.parametrize(
    ("spoilt", "expected", "counts"),
    [
        (spoil("fd"), "fds_unknown", Counts(500, None, 500 * 4096, 700 * 4096)),
        (spoil("statm"), "memory_unknown", Counts(500, 3, None, None)),
        (spoil("fd", "statm"), "unreadable", None),
        (spoil("stat"), "unreadable", None),
    ],
)
def test_what_is_missing_is_unknown_and_costs_only_itself(
    tmp_path: Path,
    spoilt: Callable[[Path], None],
    expected: str,
    counts: Counts | None,
) -> None:
    spoilt(folder(tmp_path, 42))
    reading = ProcessProbe(tmp_path, page_bytes=4096).read([42])
    assert reading.outcomes == {expected: 1}
    assert reading.counts.get(42) == counts


@pytest.mark.parametrize("statm", [" ", "2000", "2000 700", "2000 x 1 0", "2000 100 200 0", "\0"])
def test_garbled_memory_is_unknown(tmp_path: Path, statm: str) -> None:
    folder(tmp_path, 42, statm=statm)
    assert ProcessProbe(tmp_path).read([42]).outcomes == {"memory_unknown": 1}
