"""Processes and users under a made-up root."""

import os
from pathlib import Path

import pytest

from seedance_obs.sources import procfs
from seedance_obs.sources.procfs import (
    Process,
    ProcessStart,
    boot_time,
    read_cgroups,
    read_process,
    read_start,
    user_name,
)

AFTER_NAME = "S 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 {start} 1000 200 18446744073709551615"


def start(
    root: Path, *, name: str = "python3", ticks: int = 98765, cgroup: str = "0::/a\n"
) -> Path:
    folder = root / "42"
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"42 ({name}) {AFTER_NAME.format(start=ticks)}\n")
    (folder / "status").write_text(
        "Name:\tx\nUmask:\t0022\nUid:\t1001\t0\t0\t0\nGid:\t5\t5\t5\t5\n"
    )
    (folder / "cgroup").write_text(cgroup)
    return folder


def test_a_process_has_start_real_user_name_and_cgroup(tmp_path: Path) -> None:
    start(tmp_path)
    assert read_process(tmp_path, 42) == Process(42, 98765, 1001, "python3", "/a")


@pytest.mark.parametrize("name", ["a) S 1 (b", "two words", "((", ")", "", "n\nl"])
def test_a_name_with_parentheses_and_spaces_moves_no_field(tmp_path: Path, name: str) -> None:
    start(tmp_path, name=name)
    process = read_process(tmp_path, 42)
    assert process is not None
    assert (process.comm, process.start_ticks) == (name, 98765)


@pytest.mark.parametrize("name", ["python3", "a) S 1 (b", "((", ")", "", "n\nl"])
def test_a_start_is_read_with_its_process_group(tmp_path: Path, name: str) -> None:
    start(tmp_path, name=name)
    assert read_start(tmp_path, 42) == ProcessStart(start_ticks=98765, process_group=42)


@pytest.mark.parametrize("text", ["", "42 (x", "42 (x) S 1 2", "42 (x) S 1 b 3 " + "0 " * 40])
def test_a_garbled_or_missing_start_is_none(tmp_path: Path, text: str) -> None:
    assert read_start(tmp_path, 42) is None
    (start(tmp_path) / "stat").write_text(text)
    assert read_start(tmp_path, 42) is None


def test_every_controllers_path_is_listed_once(tmp_path: Path) -> None:
    text = "9:memory:/a\n5:cpu,cpuacct:/b:c\n4:freezer:/a\ngarbage\n0::/\n"
    start(tmp_path, cgroup=text)
    assert read_cgroups(tmp_path, 42) == ("/a", "/b:c", "/")
    assert read_cgroups(tmp_path, 43) == ()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("cpu 1 2\nbtime 1732960000\nprocesses 3\n", 1_732_960_000), ("cpu 1\n", None), ("", None)],
)
def test_the_boot_time_is_the_kernels_or_unknown(
    tmp_path: Path, text: str, seconds: int | None
) -> None:
    assert boot_time(tmp_path) is None
    (tmp_path / "stat").write_text(text)
    assert boot_time(tmp_path) == seconds


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("0::/kubepods.slice/pod1\n", "/kubepods.slice/pod1"),
        (
            "12:memory:/kubepods/pod1\n5:cpu,cpuacct:/x\n0::/system.slice/kubelet\n",
            "/kubepods/pod1",
        ),
        ("9:devices:/slurm/job_7\n4:memory:/\n1:name=systemd:/y\n0::/\n", "/slurm/job_7"),
        ("5:cpu,cpuacct:/docker/abc\n4:memory:/\n", "/docker/abc"),
        ("1:name=systemd:/user.slice\n", "/user.slice"),
        ("0::/with:colons\n", "/with:colons"),
        ("0::/\n", "/"),
        ("", None),
        ("garbage\n", None),
    ],
)
def test_the_cgroup_is_the_one_its_runtime_uses(
    tmp_path: Path, text: str, path: str | None
) -> None:
    start(tmp_path, cgroup=text)
    process = read_process(tmp_path, 42)
    assert process is not None
    assert process.cgroup == path


@pytest.mark.parametrize("missing", ["stat", "status"])
def test_a_process_that_went_while_being_read_is_none(tmp_path: Path, missing: str) -> None:
    (start(tmp_path) / missing).unlink()
    assert read_process(tmp_path, 42) is None


def test_an_unreadable_cgroup_costs_only_itself(tmp_path: Path) -> None:
    (start(tmp_path) / "cgroup").unlink()
    process = read_process(tmp_path, 42)
    assert process is not None
    assert process.cgroup is None


def test_a_pid_given_to_another_process_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = start(tmp_path)
    real = procfs._cgroup

    def replaced(path: Path) -> str | None:
        (folder / "stat").write_text(f"42 (other) {AFTER_NAME.format(start=99999)}\n")
        return real(path)

    monkeypatch.setattr(procfs, "_cgroup", replaced)
    assert read_process(tmp_path, 42) is None


@pytest.mark.parametrize("text", ["", "42 (x", "42 (x) S 1 2", "42 x) S", "42 (x) " + "a " * 30])
def test_a_stat_that_is_not_one_is_none(tmp_path: Path, text: str) -> None:
    (start(tmp_path) / "stat").write_text(text)
    assert read_process(tmp_path, 42) is None


def test_this_very_process_is_read_from_the_real_proc() -> None:
    process = read_process("/proc", os.getpid())
    assert process is not None
    assert (process.pid, process.uid) == (os.getpid(), os.getuid())
    assert process.start_ticks > 0
    assert read_process("/proc", 2**22 + 1) is None


def users(root: Path, text: str) -> Path:
    (root / "etc").mkdir(exist_ok=True)
    file = root / "etc/passwd"
    file.write_text(text)
    return file


def test_user_names_come_from_the_root_given(tmp_path: Path) -> None:
    users(
        tmp_path,
        "root:x:0:0:root:/root:/bin/sh\n# comment\n\nbroken\n+::::::\nbad:x:abc:0::/:\n"
        "anna:x:1001:1001:Anna:/home/anna:/bin/sh\nsecond:x:1001:1::/:\n",
    )
    assert user_name(tmp_path, 0) == "root"
    assert user_name(tmp_path, 1001) == "anna"
    assert user_name(tmp_path, 7) == "7"


def test_without_a_user_file_a_user_is_its_number(tmp_path: Path) -> None:
    assert user_name(tmp_path, 1001) == "1001"


def test_the_user_file_is_read_again_only_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = users(tmp_path, "anna:x:1001:1::/:\n")
    reads: list[Path] = []
    real = Path.read_text

    def counted(self: Path, *args: str, **options: str) -> str:
        reads.append(self)
        return real(self, *args, **options)

    monkeypatch.setattr(Path, "read_text", counted)
    assert [user_name(tmp_path, 1001) for _ in range(3)] == ["anna"] * 3
    file.write_text("berta:x:1001:1::/:\n")
    assert user_name(tmp_path, 1001) == "berta"
    assert reads == [file, file]
