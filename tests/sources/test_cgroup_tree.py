"""Which hierarchies of cgroups a host has."""

from pathlib import Path

import pytest

from seedance_obs.sources.cgroup_tree import CgroupTree, all_processes, hierarchies


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "sys/fs/cgroup"
    for name in ("cpuacct", "memory", "unified"):
        (folder / name / "a").mkdir(parents=True)
    return folder


def test_with_cgroup_v1_those_wanted_come_in_order_and_the_unified_one_last(top: Path) -> None:
    wanted = hierarchies(str(top), ("memory", "pids", "cpuacct"))
    assert wanted == (f"{top}/memory", f"{top}/cpuacct", f"{top}/unified")


def test_without_a_wish_all_are_told_and_the_top(top: Path) -> None:
    (top / "cpu").symlink_to("cpuacct")
    names = ("", "/cpuacct", "/memory", "/unified")
    assert hierarchies(str(top)) == tuple(f"{top}{name}" for name in names)


@pytest.mark.parametrize("wanted", [None, ("memory",)])
def test_with_cgroup_v2_the_top_is_the_only_one(top: Path, wanted: tuple[str] | None) -> None:
    (top / "cgroup.controllers").touch()
    assert hierarchies(str(top), wanted) == (str(top),)


def test_where_none_is_seen_the_top_is_tried(tmp_path: Path) -> None:
    assert hierarchies(str(tmp_path), ("memory",)) == (str(tmp_path),)
    assert hierarchies(f"{tmp_path}/gone") == (f"{tmp_path}/gone",)


def test_a_cgroup_may_lie_in_several_hierarchies(top: Path, tmp_path: Path) -> None:
    found = [f"{top}/memory/a", f"{top}/unified/a"]  # cpuacct alone nobody places processes by
    assert list(CgroupTree(tmp_path).folders("/a")) == found
    assert CgroupTree(tmp_path).folder("/a") == found[0]
    assert list(CgroupTree(tmp_path).folders("/a/../a")) == []


def test_all_processes_are_those_of_a_cgroup_and_inside_it(tmp_path: Path) -> None:
    for folder, pids in (("", "5\n"), ("x", "0\n7\n8\n"), ("x/y/z/u/v/w", "9\n")):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "cgroup.procs").write_text(pids)
    assert all_processes(str(tmp_path)) == {5, 7, 8, 9}
    assert all_processes(f"{tmp_path}/gone") == frozenset()
