"""The simulated cgroups, pod logs, CPU times and RAPL counters say what one host would say."""

from pathlib import Path

import pytest
from one_gpu import machine_with

from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.hostfs import write_proc
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.pods import cgroup_path, pod_uid
from seedance_obs.sources.sim.programs import busy_seconds, programs

POD = {"namespace": "ns", "name": "pod-0", "container": "main"}
TICKS_PER_SECOND = 100


def group_of(root: Path, pid: int) -> Path:
    path = (root / "proc" / str(pid) / "cgroup").read_text().strip().removeprefix("0::")
    return root / f"sys/fs/cgroup{path}"


def pids(root: Path) -> set[int]:
    return {int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdecimal()}


def stat(root: Path, pid: int) -> list[int]:
    """The fields of proc(5) stat from the fourth on."""
    tail = (root / f"proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [int(field) for field in tail[1:]]


def usage_us(group: Path) -> int:
    lines = (group / "cpu.stat").read_text().splitlines()
    values = {name: int(value) for name, value in map(str.split, lines)}
    assert values["usage_usec"] == values["user_usec"] + values["system_usec"]
    return values["usage_usec"]


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def two_containers(**changes: object) -> Machine:
    sidecar = {"name": "side", "share": 0.5, "pod": POD | {"container": "side"}, **changes}
    return machine_with({"share": 0.5, "pod": POD, **changes}, sidecar, kubernetes=True)


@pytest.mark.parametrize("name", machine_names())
def test_every_process_is_in_the_group_it_names(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    for t in (0.0, 11.0, 13.5, 19.0, 40.0):
        write_proc(machine, tmp_path, t)
        listed = [
            (int(pid), file.parent)
            for file in (tmp_path / "sys/fs/cgroup").rglob("cgroup.procs")
            for pid in file.read_text().split()
        ]
        assert sorted(listed) == sorted((pid, group_of(tmp_path, pid)) for pid in pids(tmp_path))


def test_a_pod_has_one_uid_for_all_its_containers_and_another_when_it_runs_again() -> None:
    machine = two_containers(duration_s=3, repeat_every_s=8)
    first, side = machine.workloads
    assert pod_uid(machine, first, 0) == pod_uid(machine, side, 0)
    assert pod_uid(machine, first, 0) != pod_uid(machine, first, 1)
    uid = str(pod_uid(machine, first, 0)).replace("-", "_")
    paths = {cgroup_path(machine, workload, 0) for workload in machine.workloads}
    assert len(paths) == 2
    assert all(f"/kubepods-burstable-pod{uid}.slice/cri-containerd-" in path for path in paths)


def test_there_are_no_pods_where_kubernetes_is_not() -> None:
    machine = machine_with({"pod": POD})
    assert pod_uid(machine, machine.workloads[0], 0) is None
    assert cgroup_path(machine, machine.workloads[0], 0).startswith("/user.slice/user-2001.slice/")


def test_a_process_lives_before_its_run_but_not_before_the_run_before_has_ended() -> None:
    apart = machine_with({"start_s": 10, "duration_s": 3, "repeat_every_s": 8})
    lives = [[program.run for program in programs(apart, t)] for t in (7.9, 8, 12.9, 13, 15.9, 16)]
    assert lives == [[], [0], [0], [], [], [1]]
    close = machine_with({"duration_s": 7.5, "repeat_every_s": 8})
    assert [len(programs(close, t)) for t in (7.4, 7.5, 7.6, 8.0)] == [1, 1, 1, 1]
    assert [programs(close, t)[0].run for t in (7.4, 7.6)] == [0, 1]


def test_a_process_ends_with_its_board() -> None:
    machine = machine_with({}, faults=[{"at_s": 4, "gpu": 0, "lost": True}])
    assert [len(programs(machine, t)) for t in (3.9, 4.0)] == [1, 0]


def test_a_container_comes_with_its_logs_and_goes_with_them(tmp_path: Path) -> None:
    machine = two_containers(start_s=10, duration_s=3, repeat_every_s=8)
    write_proc(machine, tmp_path, 1.0)
    empty = tree(tmp_path)
    for t, run in ((10.5, 0), (18.5, 1)):
        write_proc(machine, tmp_path, t)
        uid = pod_uid(machine, machine.workloads[0], run)
        folder = tmp_path / f"var/log/pods/ns_pod-0_{uid}"
        assert {path.name for path in folder.parent.iterdir()} == {folder.name}
        assert {path.name for path in folder.iterdir()} == {"main", "side"}
        links = sorted((tmp_path / "var/log/containers").iterdir())
        assert [link.name[:14] for link in links] == ["pod-0_ns_main-", "pod-0_ns_side-"]
        for link, container in zip(links, ("main", "side"), strict=True):
            assert str(link.readlink()) == f"/var/log/pods/ns_pod-0_{uid}/{container}/0.log"
            scope = f"cri-containerd-{link.name[14:].removesuffix('.log')}.scope"
            assert len(list((tmp_path / "sys/fs/cgroup").rglob(scope))) == 1
    write_proc(machine, tmp_path, 14.0)
    emptied = {"var", "var/log", "var/log/pods", "var/log/containers"}
    burstable = "kubepods.slice/kubepods-burstable.slice"
    left = {f"sys/fs/cgroup/{path}" for path in ("kubepods.slice", burstable)}
    assert tree(tmp_path) == empty | emptied | left


def test_cpu_time_is_the_same_by_process_by_container_and_by_pod(tmp_path: Path) -> None:
    machine = machine_with(
        {"phases": [[2, 1.0], [2, 0.5]], "pod": POD, "share": 0.5}, kubernetes=True
    )
    write_proc(machine, tmp_path, 4.0)
    (pid,) = pids(tmp_path)
    group = group_of(tmp_path, pid)
    used = 0.1 * 4 + 0.9 * 3  # cores while it waits, and on top while it works
    assert usage_us(group) == pytest.approx(used * 1e6, abs=2)
    assert usage_us(group.parent) == usage_us(group)
    fields = stat(tmp_path, pid)
    assert sum(fields[10:12]) == pytest.approx(used * TICKS_PER_SECOND, abs=2)
    write_proc(machine, tmp_path, 5.0)
    assert usage_us(group) == pytest.approx((used + 1) * 1e6, abs=2)
    assert sum(stat(tmp_path, pid)[10:12]) == pytest.approx((used + 1) * TICKS_PER_SECOND, abs=2)


def test_the_host_is_busy_with_its_processes_and_itself_and_idle_for_the_rest(
    tmp_path: Path,
) -> None:
    machine = machine_with({"duration_s": 5, "phases": [[1, 0.5]]}, uptime_s=1000)
    write_proc(machine, tmp_path, 10.0)
    busy = 1.5 * 1010 + 5 * 0.55  # who has ended still counts
    assert busy_seconds(machine, 10.0) == pytest.approx(busy)
    modes = [int(text) for text in (tmp_path / "proc/stat").read_text().split("\n")[0].split()[1:]]
    assert sum(modes) == pytest.approx(8 * 1010 * TICKS_PER_SECOND, abs=3)
    assert sum(modes) - modes[3] == pytest.approx(busy * TICKS_PER_SECOND, abs=3)
    assert usage_us(tmp_path / "sys/fs/cgroup") == pytest.approx(busy * 1e6, abs=2)


def test_the_processes_of_a_run_are_one_group(tmp_path: Path) -> None:
    machine = load_machine("h100-nvswitch")
    write_proc(machine, tmp_path, 1.0)
    groups: dict[str, set[int]] = {}
    for pid in pids(tmp_path):
        name = (tmp_path / f"proc/{pid}/comm").read_text().strip()
        groups.setdefault(name, set()).add(stat(tmp_path, pid)[1])
    assert {len(leaders) for leaders in groups.values()} == {1}
    assert groups["llm-pretrain"] <= pids(tmp_path)


def test_rapl_counts_each_package_and_its_memory_and_wraps(tmp_path: Path) -> None:
    machine = machine_with({}, rapl_packages=2, uptime_s=6000)
    power = tmp_path / "sys/class/powercap"
    seen = []
    for t in (0.0, 100.0):
        write_proc(machine, tmp_path, t)
        zones = {
            (power / name / "name").read_text().strip(): int(
                (power / name / "energy_uj").read_text()
            )
            for name in ("intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:1:0")
        }
        seen.append(zones)
    assert {path.name for path in power.iterdir()} == {
        "intel-rapl:0",
        "intel-rapl:0:0",
        "intel-rapl:1",
        "intel-rapl:1:0",
    }
    wrap = int((power / "intel-rapl:0/max_energy_range_uj").read_text())
    cores = (1.5 + 0.55) / 2
    before, after = (zones["package-0"] for zones in seen)
    assert before == pytest.approx((6000 * (58 + 4.2 * 1.5 / 2) * 1e6) % wrap, abs=2)
    assert (after - before) % wrap == pytest.approx(100 * (58 + 4.2 * cores) * 1e6, abs=2)
    assert 6000 * 58 * 1e6 > wrap > before


def test_a_host_without_rapl_shows_none(tmp_path: Path) -> None:
    write_proc(machine_with({}), tmp_path, 1.0)
    assert not (tmp_path / "sys/class/powercap").exists()
