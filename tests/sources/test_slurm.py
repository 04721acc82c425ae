"""The job map of a Slurm prolog, and the environments of jobs."""

import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.sources import slurm
from seedance_obs.sources.slurm import (
    JobEnvironment,
    MappedGpu,
    read_job_environment,
    read_job_map,
)
from tests.privileges import as_nobody


def environ(root: Path, *words: str) -> Path:
    file = root / "42/environ"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(word.encode() + b"\0" for word in words))
    return file


def test_files_are_named_by_index_by_gpu_instance_or_by_uuid(tmp_path: Path) -> None:
    for name, text in {
        "0": "5\n",
        "1": "6\n7\n",
        "2.3": "8\n",
        "GPU-0451a3f1-f345-8e4c-6592-e96c0feca949": "9\n",
        "MIG-12aa7c89-bb90-59b7-ac2c-2e9cf0298925": "10",
    }.items():
        (tmp_path / name).write_text(text)
    assert read_job_map(tmp_path) == {
        MappedGpu(0): ("5",),
        MappedGpu(1): ("6", "7"),
        MappedGpu(2, 3): ("8",),
        MappedGpu(uuid="GPU-0451a3f1-f345-8e4c-6592-e96c0feca949"): ("9",),
        MappedGpu(uuid="MIG-12aa7c89-bb90-59b7-ac2c-2e9cf0298925"): ("10",),
    }


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        (b"", ()),
        (b"\n \n", ()),
        (b"5\r\n 6 \n5\n", ("5", "6")),
        (b"12_3\n", ("12_3",)),
        (b"\xff\x00\n5\n", ("5",)),
        (b"12+1\n12_[3-5]\n12.batch\n", ("12+1", "12_[3-5]", "12.batch")),
        (b"job/5\n6 7\n8\t9\n%s\n10\n" % (b"1" * 65), ("10",)),
    ],
)
def test_each_line_is_a_job_and_an_empty_file_a_gpu_that_nobody_holds(
    tmp_path: Path, text: bytes, jobs: tuple[str, ...]
) -> None:
    (tmp_path / "0").write_bytes(text)
    assert read_job_map(tmp_path) == {MappedGpu(0): jobs}


@pytest.mark.parametrize(
    "name", [".0.swp", "0.tmp", "a", "-1", "0.3.1", "00000", "٣", "GPU-", "README", "jobs"]
)
def test_a_file_of_another_name_is_none_of_the_map(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("5\n")
    assert read_job_map(tmp_path) == {}


def test_without_the_directory_nobody_knows(tmp_path: Path) -> None:
    assert read_job_map(tmp_path / "missing") is None


def test_an_entry_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "1").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "2")
    (tmp_path / "3").write_text("5\n")
    assert read_job_map(tmp_path) == {MappedGpu(3): ("5",)}


def test_a_gpu_has_no_more_jobs_than_anybody_would_start(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("".join(f"{job}\n" for job in range(5000)))
    assert read_job_map(tmp_path) == {MappedGpu(0): tuple(map(str, range(64)))}


@pytest.mark.parametrize("number", [errno.EACCES, errno.ESTALE, errno.EIO])
def test_a_file_that_cannot_be_looked_at_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for name in "01":
        (tmp_path / name).write_text("5\n")
    real = os.stat

    def stat(file: Path, **options: Any) -> os.stat_result:
        if str(file) == str(tmp_path / "0"):
            raise OSError(number, os.strerror(number))
        return real(file, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert read_job_map(tmp_path) == {MappedGpu(1): ("5",)}


@pytest.mark.parametrize(("mode", "jobs"), [(0o444, {}), (0o000, None)])
def test_what_this_user_may_not_look_at_nobody_knows(
    mode: int, jobs: dict[MappedGpu, tuple[str, ...]] | None
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="jobs-"))  # tmp_path is closed to other users
    (folder / "0").write_text("5\n")
    folder.chmod(mode)
    try:
        with as_nobody():
            assert read_job_map(folder) == jobs
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_a_file_that_changes_while_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "0"
    file.write_text("5\n")
    real, versions = slurm._version, []

    def version(descriptor: int) -> tuple[int, int]:
        versions.append(real(descriptor))
        if len(versions) == 1:
            file.write_text("5\n66\n")  # the prolog, in between
        return versions[-1]

    monkeypatch.setattr(slurm, "_version", version)
    assert read_job_map(tmp_path) == {MappedGpu(0): ("5", "66")}


def test_a_file_that_never_rests_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0").write_text("5\n")
    counter = iter(range(100))
    monkeypatch.setattr(slurm, "_version", lambda _: (next(counter), 0))
    assert read_job_map(tmp_path) == {}


def test_an_environment_keeps_global_and_visible_gpus_apart(tmp_path: Path) -> None:
    environ(
        tmp_path,
        "PATH=/usr/bin",
        "SLURM_JOB_ID=42",
        "SLURM_JOB_SLUID=s5K1KKYAYG5D00",
        "SLURM_JOB_ACCOUNT=physics",
        "SLURM_JOB_USER=anna",
        "SLURM_JOB_GPUS=2,3,5",
        "SLURM_STEP_GPUS=3",
        "CUDA_VISIBLE_DEVICES=0",
        "noequals",
    )
    assert read_job_environment(tmp_path, 42) == JobEnvironment(
        job="42",
        sluid="s5K1KKYAYG5D00",
        account="physics",
        user="anna",
        job_gpu_indices=frozenset({2, 3, 5}),
        step_gpu_indices=frozenset({3}),
        visible_devices=("0",),
    )


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("SLURM_JOB_GPUS=0-3,7", "job_gpu_indices", frozenset({0, 1, 2, 3, 7})),
        ("SLURM_JOB_GPUS=", "job_gpu_indices", None),
        ("SLURM_JOB_GPUS=all", "job_gpu_indices", None),
        ("SLURM_JOB_GPUS=0-999999", "job_gpu_indices", None),
        ("CUDA_VISIBLE_DEVICES=", "visible_devices", ()),
        ("CUDA_VISIBLE_DEVICES=GPU-1a,MIG-2b", "visible_devices", ("GPU-1a", "MIG-2b")),
        ("OTHER=1", "visible_devices", None),
    ],
)
def test_gpus_that_are_not_told_are_none(
    tmp_path: Path, word: str, name: str, value: object
) -> None:
    environ(tmp_path, "SLURM_JOB_ID=42", word)
    assert getattr(read_job_environment(tmp_path, 42), name) == value


def test_the_old_name_of_the_job_id_counts_too(tmp_path: Path) -> None:
    environ(tmp_path, "SLURM_JOBID=7")
    told = read_job_environment(tmp_path, 42)
    assert told is not None
    assert told.job == "7"


def test_a_process_outside_jobs_or_unreadable_has_no_job_environment(tmp_path: Path) -> None:
    assert read_job_environment(tmp_path, 42) is None
    environ(tmp_path, "PATH=/usr/bin")
    assert read_job_environment(tmp_path, 42) is None


@pytest.mark.parametrize(
    ("job", "is_of"), [("42", True), ("s5K1KKYAYG5D00", True), ("4", False), ("", False)]
)
def test_an_environment_is_of_the_job_that_the_cgroup_names(job: str, is_of: bool) -> None:
    assert JobEnvironment(job="42", sluid="s5K1KKYAYG5D00").is_of(job) is is_of
    assert JobEnvironment(job="42").is_of("") is False


@given(st.binary(max_size=400))
def test_any_bytes_are_ids_of_printable_text(raw: bytes) -> None:
    assert all(job and job.isprintable() and job == job.strip() for job in slurm._ids(raw))
