"""CPU times from trees laid out as Linux lays them out."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes, CpuUse

POD = "/kubepods.slice/kubepods-pod1.slice"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def stat(root: Path, *modes: int) -> None:
    write(root / "proc/stat", f"cpu  {' '.join(map(str, modes))}\ncpu0 1 2 3 4\nbtime 5\n")


def process(root: Path, pid: int, *, user: int, system: int = 0, start: int = 50) -> None:
    fields = ["S", *["0"] * 10, str(user), str(system), "900", "900", *["0"] * 4, str(start), "0"]
    write(root / f"proc/{pid}/stat", f"{pid} (a b) c) {' '.join(fields)}\n")


def unified(root: Path, cgroup: str, usec: int, *, below: str = "") -> None:
    text = f"usage_usec {usec}\nuser_usec 1\nsystem_usec 2\n"
    write(root / f"sys/fs/cgroup{below}{cgroup}/cpu.stat", text)


def times(root: Path) -> CpuTimes:
    return CpuTimes(root, ticks_per_second=100)


def used(found: CpuUse | None) -> dict[str, int]:
    assert found is not None
    return dict(found.by_account)


def test_busy_is_every_mode_but_idle_and_iowait_and_steal_and_a_guest_counts_once(tmp_path):
    reader = times(tmp_path)
    stat(tmp_path, *[0] * 10)
    assert reader.read({}) is None, "one reading is no interval"
    stat(tmp_path, 1, 2, 4, 8, 16, 32, 64, 128, 1, 2)
    busy, total = 1 + 2 + 4 + 32 + 64, 255
    assert reader.read({}) == CpuUse(busy * 10_000, total * 10_000, {})


def test_a_mode_that_runs_backwards_takes_nothing_away(tmp_path):
    reader = times(tmp_path)
    stat(tmp_path, 100, 0, 0, 100, 50, 0, 0, 0)
    reader.read({})
    stat(tmp_path, 110, 0, 0, 130, 40, 0, 0, 0)
    assert reader.read({}) == CpuUse(100_000, 400_000, {})


def test_an_old_kernel_tells_fewer_modes(tmp_path):
    reader = times(tmp_path)
    stat(tmp_path, 1, 0, 0, 1)
    reader.read({})
    stat(tmp_path, 2, 0, 0, 4)
    assert reader.read({}) == CpuUse(10_000, 40_000, {})


@pytest.mark.parametrize("text", ["", "cpu", "cpu  1 2 x 4", "intr 1 2 3 4"])
def test_times_that_cannot_be_read_for_a_moment_come_with_the_next(tmp_path, text):
    reader, owners = times(tmp_path), {"a": CpuOwner(POD)}
    stat(tmp_path, 0, 0, 0, 0)
    unified(tmp_path, POD, 1_000)
    reader.read(owners)
    write(tmp_path / "proc/stat", text)
    unified(tmp_path, POD, 2_000)
    assert reader.read(owners) is None
    stat(tmp_path, 3, 0, 0, 4)
    unified(tmp_path, POD, 4_000)
    assert reader.read(owners) == CpuUse(30_000, 70_000, {"a": 3_000}, {"a": 3_000})


@pytest.mark.parametrize(
    ("file", "per_us", "text"),
    [
        ("{}/cpu.stat", 1, "user_usec 7\nusage_usec {}\n"),
        ("unified{}/cpu.stat", 1, "usage_usec {}\n"),
        ("cpuacct{}/cpuacct.usage", 1000, "{}\n"),
        ("cpu,cpuacct{}/cpuacct.usage", 1000, "{}\n"),
    ],
    ids=["v2", "hybrid", "v1", "v1-joined"],
)
def test_the_time_of_a_cgroup_is_found_in_every_hierarchy(tmp_path, file, per_us, text):
    reader, owners = times(tmp_path), {"a": CpuOwner(POD)}
    place = tmp_path / "sys/fs/cgroup" / file.format(POD).lstrip("/")
    stat(tmp_path, 0, 0, 0, 0)
    write(place, text.format(5_000 * per_us))
    reader.read(owners)
    write(place, text.format(12_500 * per_us))
    assert used(reader.read(owners)) == {"a": 7_500}


def test_a_hierarchy_that_is_mounted_late_is_found(tmp_path):
    reader, owners = times(tmp_path), {"a": CpuOwner(POD)}
    stat(tmp_path, 0, 0, 0, 0)
    reader.read(owners)
    place = tmp_path / f"sys/fs/cgroup/cpuacct{POD}/cpuacct.usage"
    write(place, "5000000\n")
    reader.read(owners)
    write(place, "7000000\n")
    assert used(reader.read(owners)) == {"a": 2_000}


def test_what_is_seen_first_is_noted_and_what_began_since_counts_whole(tmp_path):
    reader = times(tmp_path)
    stat(tmp_path, 0, 0, 0, 0)
    reader.read({})
    unified(tmp_path, "/old.service", 9_000_000)
    unified(tmp_path, "/new.service", 4_000)
    owners = {"old": CpuOwner("/old.service"), "new": CpuOwner("/new.service", began=True)}
    assert used(reader.read(owners)) == {"old": 0, "new": 4_000}


def test_a_cgroup_that_goes_costs_itself_and_one_that_is_back_lost_nothing(tmp_path):
    reader = times(tmp_path)
    owners = {"a": CpuOwner("/a"), "b": CpuOwner("/b")}
    stat(tmp_path, 0, 0, 0, 0)
    for name in "ab":
        unified(tmp_path, f"/{name}", 100)
    reader.read(owners)
    (tmp_path / "sys/fs/cgroup/b/cpu.stat").unlink()
    unified(tmp_path, "/a", 150)
    assert used(reader.read(owners)) == {"a": 50}
    unified(tmp_path, "/b", 190)
    assert used(reader.read(owners)) == {"a": 0, "b": 90}


def test_without_a_cgroup_the_times_of_the_processes_add_up(tmp_path):
    reader, owners = times(tmp_path), {"a": CpuOwner("/hidden", pids=(7, 8, 9))}
    stat(tmp_path, 0, 0, 0, 0)
    process(tmp_path, 7, user=100, system=10)
    process(tmp_path, 8, user=5)
    reader.read(owners)
    process(tmp_path, 7, user=101, system=12)
    process(tmp_path, 8, user=9)
    assert used(reader.read(owners)) == {"a": 70_000}, "not the 900 of children it waited for"


def test_a_process_that_ends_takes_nothing_back_and_a_reused_pid_inherits_nothing(tmp_path):
    reader, owners = times(tmp_path), {"a": CpuOwner(pids=(7, 8))}
    stat(tmp_path, 0, 0, 0, 0)
    process(tmp_path, 7, user=1000)
    process(tmp_path, 8, user=10)
    reader.read(owners)
    (tmp_path / "proc/7/stat").unlink()
    process(tmp_path, 8, user=13)
    assert used(reader.read(owners)) == {"a": 30_000}
    process(tmp_path, 7, user=5000, start=60)
    assert used(reader.read(owners)) == {"a": 0}


def test_cgroups_that_hold_each_other_are_not_counted_twice(tmp_path):
    reader = times(tmp_path)
    owners = {
        "outer": CpuOwner("/s", pids=(1,)),
        "inner": CpuOwner("/s/job", pids=(2,)),
        "beside": CpuOwner("/s-2", pids=(3,)),
    }
    stat(tmp_path, 0, 0, 0, 0)
    for cgroup in ("/s", "/s/job", "/s-2"):
        unified(tmp_path, cgroup, 0)
    for pid in (1, 2, 3):
        process(tmp_path, pid, user=0)
    reader.read(owners)
    unified(tmp_path, "/s", 90_000)
    unified(tmp_path, "/s/job", 60_000)
    unified(tmp_path, "/s-2", 10_000)
    process(tmp_path, 1, user=2)
    assert used(reader.read(owners)) == {"outer": 20_000, "inner": 60_000, "beside": 10_000}


@pytest.mark.parametrize("cgroup", ["/session", "/", "", "/../..", "/a/../../x"])
def test_a_cgroup_that_is_no_accounts_own_is_not_taken(tmp_path, cgroup):
    reader = times(tmp_path)
    owners = {"a": CpuOwner(cgroup, pids=(1,)), "b": CpuOwner(cgroup, pids=(2,))}
    stat(tmp_path, 0, 0, 0, 0)
    unified(tmp_path, "/session", 0)
    unified(tmp_path, "/", 0)
    process(tmp_path, 1, user=0)
    process(tmp_path, 2, user=0)
    reader.read(owners)
    unified(tmp_path, "/session", 500_000)
    unified(tmp_path, "/", 900_000)
    process(tmp_path, 1, user=3)
    assert used(reader.read(owners)) == {"a": 30_000, "b": 0}


def bounds(found: CpuUse | None) -> dict[str, int]:
    assert found is not None
    return dict(found.at_most)


@pytest.mark.parametrize("mode", [0, 1, 2, 5, 6])
def test_a_busy_mode_that_runs_backwards_leaves_nobody_sure(tmp_path, mode):
    reader, modes = times(tmp_path), [100] * 8
    stat(tmp_path, *modes)
    reader.read({})
    modes[mode] = 99
    stat(tmp_path, *modes)
    assert reader.read({}) == CpuUse(0, 0, {}, sure=False)
    stat(tmp_path, *[each + 1 for each in modes])
    assert reader.read({}) == CpuUse(50_000, 80_000, {}), "the next is from where it is now"


def test_at_most_is_what_was_used_where_all_of_it_was_seen(tmp_path):
    reader = times(tmp_path)
    owners = {"a": CpuOwner("/a"), "b": CpuOwner(pids=(7, 8))}
    stat(tmp_path, 0, 0, 0, 0)
    unified(tmp_path, "/a", 1_000)
    process(tmp_path, 7, user=10)
    process(tmp_path, 8, user=20)
    reader.read(owners)
    unified(tmp_path, "/a", 1_500)
    process(tmp_path, 8, user=23)
    assert bounds(reader.read(owners)) == {"a": 500, "b": 30_000}


def test_of_an_account_seen_first_nobody_can_tell_at_most_but_of_one_that_began(tmp_path):
    reader = times(tmp_path)
    stat(tmp_path, 0, 0, 0, 0)
    reader.read({})
    unified(tmp_path, "/old", 9_000)
    unified(tmp_path, "/new", 4_000)
    owners = {"old": CpuOwner("/old"), "new": CpuOwner("/new", began=True)}
    assert bounds(reader.read(owners)) == {"new": 4_000}
    assert bounds(reader.read(owners)) == {"old": 0, "new": 0}


def test_a_counter_of_an_account_that_runs_backwards_leaves_it_unknown_once(tmp_path):
    reader, owners = times(tmp_path), {"a": CpuOwner("/a"), "b": CpuOwner("/b")}
    stat(tmp_path, 0, 0, 0, 0)
    for name in "ab":
        unified(tmp_path, f"/{name}", 1_000)
    reader.read(owners)
    unified(tmp_path, "/a", 10)
    assert bounds(reader.read(owners)) == {"b": 0}
    unified(tmp_path, "/a", 15)
    assert bounds(reader.read(owners)) == {"a": 5, "b": 0}


def test_a_process_that_ended_may_have_used_anything_and_one_that_came_what_it_has(tmp_path):
    reader = times(tmp_path)
    stat(tmp_path, 0, 0, 0, 0)
    process(tmp_path, 7, user=10)
    process(tmp_path, 8, user=10)
    reader.read({"a": CpuOwner(pids=(7, 8))})
    process(tmp_path, 9, user=4)
    assert bounds(reader.read({"a": CpuOwner(pids=(7, 8, 9))})) == {"a": 40_000}
    (tmp_path / "proc/8/stat").unlink()
    owners = {"a": CpuOwner(pids=(7, 9))}
    assert bounds(reader.read(owners)) == {}
    assert bounds(reader.read(owners)) == {"a": 0}
    process(tmp_path, 7, user=10, start=99)
    assert bounds(reader.read(owners)) == {}, "another of its number"


def test_a_cgroup_that_cannot_be_read_any_more_leaves_its_processes_unknown_once(tmp_path):
    reader, owners = times(tmp_path), {"a": CpuOwner("/a", pids=(7,))}
    stat(tmp_path, 0, 0, 0, 0)
    unified(tmp_path, "/a", 1_000)
    process(tmp_path, 7, user=10)
    reader.read(owners)
    (tmp_path / "sys/fs/cgroup/a/cpu.stat").unlink()
    assert bounds(reader.read(owners)) == {}
    assert bounds(reader.read(owners)) == {"a": 0}


@given(cgroup=st.text())
def test_no_text_as_a_cgroup_is_an_error(tmp_path_factory, cgroup):
    root = tmp_path_factory.getbasetemp() / "hostile"
    stat(root, 0, 0, 0, 0)
    reader = times(root)
    reader.read({"a": CpuOwner(cgroup)})
    assert used(reader.read({"a": CpuOwner(cgroup)})) in ({}, {"a": 0})
