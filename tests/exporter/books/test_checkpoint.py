"""What an exporter that was killed finds again."""

import errno
import json
import logging
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seedance_obs.exporter.books.checkpoint import Checkpoint
from seedance_obs.sources.procfs import boot_id
from tests.exporter.books.checkpoint_writer import STEP, state_of
from tests.privileges import as_nobody

BOOT = "3f2c6f0e-5a1d-4d0c-9c5b-0a6a6f6f1b11"
ROOT = Path(__file__).parents[3]
STATE = {"boards": {"GPU-a": {"balances": {"pod-1": 5}}}, "none": None, "half": 0.5}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "accounts.json"


def kept(file: Path, boot: str = BOOT) -> Checkpoint:
    return Checkpoint(file, boot_id=boot)


def test_the_next_exporter_of_the_same_boot_finds_what_was_saved_last(file):
    first = kept(file)
    first.save({"old": 1})
    first.save(STATE)
    assert kept(file).load() == STATE
    assert first.fault == ""
    assert [found.name for found in file.parent.iterdir()] == [file.name]


def test_nobody_else_may_read_it(file):
    before = os.umask(0)
    try:
        kept(file).save(STATE)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_a_file_nothing_is_kept_and_nothing_is_wrong():
    checkpoint = Checkpoint(None, boot_id=BOOT)
    checkpoint.save(STATE)
    assert checkpoint.load() is None
    assert checkpoint.fault == ""


def test_the_state_of_another_boot_is_not_taken(file, caplog):
    caplog.set_level(logging.INFO)
    kept(file, "another").save(STATE)
    assert kept(file).load() is None
    assert "event=checkpoint_of_another_boot" in caplog.text


def test_without_a_boot_id_nothing_is_kept_or_taken(file):
    kept(file).save(STATE)
    unknown = kept(file, "")
    assert unknown.load() is None
    unknown.save({"other": 1})
    assert "check node.root" in unknown.fault
    assert kept(file).load() == STATE


def test_where_there_is_no_file_the_log_says_so(file, caplog):
    caplog.set_level(logging.INFO)
    assert kept(file).load() is None
    assert "event=checkpoint_absent" in caplog.text


def test_what_cannot_be_read_says_so_and_is_no_state(file, caplog):
    file.mkdir()
    assert kept(file).load() is None
    assert "event=checkpoint_unreadable" in caplog.text


def test_what_is_no_regular_file_holds_no_start_up(file, caplog):
    os.mkfifo(file)
    assert Checkpoint(file, boot_id=BOOT).load() is None
    assert "not a regular file" in caplog.text


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder below which other users may look, unlike `tmp_path`."""
    folder = Path(tempfile.mkdtemp(prefix="checkpoint-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_what_this_user_may_not_read_says_so_and_is_no_state(open_folder, caplog):
    file = open_folder / "accounts.json"
    kept(file).save(STATE)
    file.chmod(0o000)
    with as_nobody():
        assert kept(file).load() is None
    assert "event=checkpoint_unreadable" in caplog.text
    assert "Permission denied" in caplog.text


def test_a_folder_that_this_user_may_not_write_costs_the_checkpoint_only(open_folder):
    file = open_folder / "accounts.json"
    kept(file).save({"old": 1})
    open_folder.chmod(0o555)
    with as_nobody():
        checkpoint = kept(file)
        checkpoint.save(STATE)
    assert "Permission denied" in checkpoint.fault
    assert kept(file).load() == {"old": 1}


WHOLE = json.dumps({"version": 1, "boot_id": BOOT, "state": STATE})


@pytest.mark.parametrize(
    "text",
    [
        "",
        WHOLE[: len(WHOLE) // 2],
        WHOLE[:-1],
        "\0" * 4096,
        "[1]",
        "null",
        '{"version": 1}',
        '{"version": true, "boot_id": "", "state": {}}',
        '{"version": "1", "boot_id": "", "state": {}}',
        json.dumps({"version": 1, "boot_id": BOOT, "state": [1]}),
        "\u00e9\ud7ff".encode("utf-16").decode("latin-1"),
        "[" * 100_000,
    ],
    ids=range(12),
)
def test_a_broken_file_is_kept_aside_and_the_next_is_whole(file, caplog, text):
    file.write_text(text, encoding="latin-1")
    checkpoint = kept(file)
    assert checkpoint.load() is None
    assert "event=checkpoint_broken" in caplog.text
    assert file.with_name("accounts.json.broken").read_text(encoding="latin-1") == text
    checkpoint.save(STATE)
    assert checkpoint.load() == STATE


def test_one_goes_on_from_what_was_kept_and_anew_where_nothing_was(file):
    assert kept(file).go_on(lambda state: state) is None
    kept(file).save(STATE)
    assert kept(file).go_on(lambda state: state) == STATE


def test_a_state_that_cannot_be_taken_as_a_whole_is_set_aside_and_all_begins_anew(file, caplog):
    checkpoint = kept(file)
    checkpoint.save(STATE)
    text = file.read_text()
    taken = []

    def opened(state):
        taken.append(state)
        return "anew" if state is None else state["accounts"]

    assert checkpoint.go_on(opened) == "anew"
    assert taken == [STATE, None]
    assert "event=checkpoint_broken" in caplog.text
    assert file.with_name("accounts.json.broken").read_text() == text
    assert not file.exists()


def test_a_newer_versions_file_is_not_taken_and_not_lost(file, caplog):
    text = json.dumps({"version": 2, "boot_id": BOOT, "accounts": []})
    file.write_text(text)
    checkpoint = kept(file)
    assert checkpoint.load() is None
    assert "event=checkpoint_newer" in caplog.text
    checkpoint.save(STATE)
    assert file.with_name("accounts.json.newer").read_text() == text


def test_what_a_killed_writer_left_beside_is_no_hindrance(file):
    beside = file.with_name("accounts.json.writing")
    beside.write_text('{"half')
    beside.chmod(0o666)
    kept(file).save(STATE)
    assert kept(file).load() == STATE
    assert not beside.exists()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_planted_link_is_not_written_through(file):
    elsewhere = file.with_name("elsewhere")
    elsewhere.write_text("precious")
    file.with_name("accounts.json.writing").symlink_to(elsewhere)
    kept(file).save(STATE)
    assert elsewhere.read_text() == "precious"


def test_a_full_disk_costs_the_checkpoint_only_and_is_logged_once(file, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    checkpoint = kept(file)
    checkpoint.save({"good": 1})
    write = os.write

    def half_then_full(descriptor: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half_then_full)
    for _ in range(3):
        checkpoint.save({"lost": 2})
    assert "No space left on device" in checkpoint.fault
    assert checkpoint.load() == {"good": 1}
    assert [found.name for found in file.parent.iterdir()] == [file.name]
    monkeypatch.undo()
    checkpoint.save(STATE)
    checkpoint.save(STATE)
    assert checkpoint.fault == ""
    events = [record.message.split()[0] for record in caplog.records]
    assert events == ["event=checkpoint_failed", "event=checkpoint_recovered"]
    assert checkpoint.load() == STATE


def test_a_folder_that_is_not_there_costs_the_checkpoint_only(tmp_path):
    checkpoint = kept(tmp_path / "missing/accounts.json")
    checkpoint.save(STATE)
    assert "No such file or directory" in checkpoint.fault


def test_the_boot_id_is_the_hosts(tmp_path):
    assert boot_id(tmp_path / "proc") == ""
    folder = tmp_path / "proc/sys/kernel/random"
    folder.mkdir(parents=True)
    (folder / "boot_id").write_text(BOOT + "\n")
    assert boot_id(tmp_path / "proc") == BOOT


@contextmanager
def writer(file: Path, number: int, manner: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that saves on and on; it is killed at the end of the block."""
    command = [sys.executable, "-m", "tests.exporter.books.checkpoint_writer"]
    command += [str(file), BOOT, str(number), manner]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def check_whole(file: Path, said: list[bytes]) -> int:
    """The number of the state that is kept, which is whole and not older than the last one said."""
    last = max((int(line) for line in said if line != STEP), default=-1)
    found = kept(file).load()
    number = -1 if found is None else found["number"]
    assert found is None or found == state_of(number), "every part is of the same state"
    assert number >= last
    return number


def test_a_writer_killed_before_any_step_of_a_save_leaves_a_whole_state(tmp_path):
    for steps in range(1, 21):  # a save takes eight
        file = tmp_path / f"accounts-{steps}.json"
        with writer(file, 0, "paced") as process:
            said = []
            while said.count(STEP) < steps:
                said.append(process.stdout.readline())
                assert said[-1], "the writer ended by itself"
                if said[-1] == STEP and said.count(STEP) < steps:
                    process.stdin.write(b".")
                    process.stdin.flush()
        check_whole(file, said)
    assert b"1\n" in said


def test_a_writer_killed_at_any_moment_leaves_a_whole_state(file):
    moments, number = random.Random(4), -1
    for _ in range(12):
        with writer(file, number + 1, "free") as process:
            said = [process.stdout.readline() for _ in range(moments.randint(1, 40))]
            process.kill()
            said += process.stdout.readlines()
        assert b"" not in said, "the writer ended by itself"
        before, number = number, check_whole(file, said)
        assert number > before
