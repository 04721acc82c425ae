"""The tenant rules' file while it is edited, swapped, broken, taken away and brought back."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from seedance_obs.attribution.tenants import TenantRules
from seedance_obs.errors import UsageError
from seedance_obs.tenant_file import LARGEST_BYTES, TenantFile
from seedance_obs.workload import Workload

GOOD = '[[rule]]\nnamespace = "*"\ntenant = "{name}"\n'


def rules_for(name: str) -> str:
    return GOOD.format(name=name)


def tenant(file: TenantFile) -> str:
    return file.rules().tenant_of(Workload("pod", "u", 1, namespace="n"))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "tenants.toml"
    file.write_text(rules_for("old"))
    return file


@pytest.fixture
def file(path: Path) -> TenantFile:
    return TenantFile(path, clock=Clock())


def test_without_a_file_the_rules_are_the_plain_ones():
    file = TenantFile(None, clock=Clock())
    assert file.rules() == TenantRules()
    assert (file.fault, file.loaded_at, file.reloads) == ("", None, 0)


def test_a_file_is_read_once_while_it_stays(file):
    assert tenant(file) == "old"
    assert file.rules() is file.rules()
    assert (file.fault, file.loaded_at, file.reloads) == ("", 1001.0, 0)


def rewritten(path: Path, text: str) -> None:
    path.write_text(text)


def moved_over(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


def same_size_and_mtime(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [rewritten, moved_over, same_size_and_mtime])
def test_a_changed_file_is_taken_at_the_second_look(
    file: TenantFile, path: Path, change: Callable[[Path, str], None]
) -> None:
    change(path, rules_for("new"))
    assert tenant(file) == "old"
    assert tenant(file) == "new"
    assert tenant(file) == "new"
    assert (file.fault, file.loaded_at, file.reloads) == ("", 1002.0, 1)


def test_a_config_map_whose_link_is_swung_is_read_again(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tenants.toml").write_text(rules_for(name))
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "tenants.toml").symlink_to("..data/tenants.toml")
    file = TenantFile(tmp_path / "tenants.toml", clock=Clock())
    assert tenant(file) == "one"
    (tmp_path / "..data_tmp").symlink_to("two")
    os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
    assert [tenant(file), tenant(file)] == ["one", "two"]


def test_a_file_that_is_being_written_is_left_alone(file, path):
    for name in ("half", "halfway", "whole"):
        path.write_text(rules_for(name))  # each is valid, and none has settled
        assert tenant(file) == "old"
    assert tenant(file) == "whole"
    assert file.reloads == 1


def test_a_file_that_changes_while_it_is_read_waits_for_the_next_look(file, path, monkeypatch):
    path.write_text(rules_for("half"))
    file.rules()
    real = os.fstat

    def written_meanwhile(descriptor: int) -> os.stat_result:
        monkeypatch.setattr(os, "fstat", real)
        with path.open("a") as more:
            more.write(rules_for("more"))
        return real(descriptor)

    monkeypatch.setattr(os, "fstat", written_meanwhile)
    assert tenant(file) == "old"
    assert file.fault == ""
    assert [tenant(file), tenant(file)] == ["old", "half"]


BROKEN = {
    "truncated": (b"", "a [[rule]] or a default is wanted"),
    "cut": (b'[[rule]]\nnamespace = "', "this is not TOML"),
    "wrong": (b'[[rule]]\nnamspace = "x"\ntenant = "y"\n', "rule 1, namspace: "),
    "binary": (b"\xff\xfe", "this is not UTF-8"),
    "huge": (b"#" * (LARGEST_BYTES + 1), f"{LARGEST_BYTES} bytes at most are wanted"),
}


@pytest.mark.parametrize(("content", "sentence"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_keeps_the_old_rules_and_says_so_once(
    file: TenantFile,
    path: Path,
    caplog: pytest.LogCaptureFixture,
    content: bytes,
    sentence: str,
) -> None:
    caplog.set_level(logging.INFO, "seedance_obs.tenant_file")
    path.write_bytes(content)
    assert [tenant(file) for _ in range(5)] == ["old"] * 5
    assert sentence in file.fault
    assert str(path) in file.fault
    assert (file.loaded_at, file.reloads) == (1001.0, 0)
    (line,) = caplog.messages
    assert line.startswith("event=tenant_rules_kept file=")
    path.write_text(rules_for("new"))
    assert [tenant(file), tenant(file), tenant(file)] == ["old", "new", "new"]
    assert (file.fault, file.reloads) == ("", 1)
    assert caplog.messages[1:] == [
        f"event=tenant_rules_reloaded file={path} rules=1",
        f"event=tenant_rules_recovered file={path}",
    ]


def test_a_broken_file_is_parsed_once(file, path, monkeypatch):
    path.write_bytes(b"rule =")
    file.rules()
    file.rules()
    assert file.fault
    monkeypatch.setattr("seedance_obs.tenant_file._parse", lambda *_: pytest.fail("parsed again"))
    assert tenant(file) == "old"


def test_a_file_that_vanished_keeps_the_old_rules_until_it_is_back(file, path, tmp_path):
    path.rename(tmp_path / "away")
    assert tenant(file) == "old"
    assert "No such file" in file.fault
    (tmp_path / "away").rename(path)
    assert [tenant(file), tenant(file)] == ["old", "old"]
    assert file.fault == ""


def test_what_broke_before_it_vanished_is_broken_when_it_is_back(file, path, tmp_path):
    path.write_text("rule =")
    file.rules()
    file.rules()
    broken = file.fault
    path.rename(tmp_path / "away")
    file.rules()
    assert "No such file" in file.fault
    (tmp_path / "away").rename(path)
    assert [tenant(file), tenant(file)] == ["old", "old"]
    assert file.fault == broken


def test_a_file_that_cannot_be_opened_is_tried_at_each_look(file, path, monkeypatch):
    path.write_text(rules_for("new"))
    real = Path.open

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    assert [tenant(file), tenant(file)] == ["old", "old"]
    assert file.fault == f"cannot read the tenant rules {path}: Permission denied"
    monkeypatch.setattr(Path, "open", real)
    assert tenant(file) == "new"
    assert file.fault == ""


def test_a_folder_or_a_pipe_in_its_place_is_a_fault_and_blocks_nothing(file, path):
    path.unlink()
    os.mkfifo(path)
    assert tenant(file) == "old"
    assert "it is not a file" in file.fault


@pytest.mark.parametrize("content", [None, "rule ="])
def test_at_the_start_a_missing_or_broken_file_is_refused(tmp_path, content):
    path = tmp_path / "tenants.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=r"tenants\.toml: "):
        TenantFile(path, clock=Clock())
