"""The host's energy by workload: who is asked for CPU time, from when, and what survives."""

import json
from collections import Counter
from collections.abc import Mapping

import pytest

from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.books.host_energy import HostEnergy
from seedance_obs.exporter.books.roster import Roster
from seedance_obs.sources.cpu_times import CpuOwner, CpuTimes, CpuUse
from seedance_obs.sources.rapl import Rapl
from seedance_obs.workload import Workload
from tests.exporter.books.test_workloads import OTHER_POD, Host
from tests.sources.host_tree import BOOT, CID, POD, TICKS, HostTree

A, B = "/kubepods/pod-a", "/kubepods/pod-b"
JOULES = 100  # that the package draws each second, in which two of four CPUs are busy
ONE_CPU = JOULES // 4


def pod(name: str, cgroup: str, *, started: int = -3600) -> Workload:
    return Workload("pod", name, BOOT + started, namespace="ml", cgroup=cgroup)


def package(tree: HostTree, second: int) -> None:
    zone = "sys/class/powercap/intel-rapl:0"
    tree.write(f"{zone}/name", "package-0\n")
    tree.write(f"{zone}/energy_uj", f"{second * JOULES * 10**6}\n")
    tree.write(f"{zone}/max_energy_range_uj", "262143328850\n")
    ticks = 2 * TICKS * second
    tree.write("proc/stat", f"cpu {ticks} 0 0 {ticks} 0 0 0 0\nbtime {BOOT}\nprocesses 9\n")


class Machine:
    """Goes on second by second; pods use CPU time as the test says."""

    def __init__(self, root) -> None:
        self.tree = HostTree(root)
        self.second = 0
        self.wall_is_late = 0
        self.roster = Roster(ended_seconds=300.0)
        self.used: Counter[str] = Counter()  # CPU seconds by cgroup
        self.open()

    def open(self) -> None:
        self.cpu = CpuTimes(self.tree.root, ticks_per_second=TICKS)
        self.host = HostEnergy(
            Rapl(self.tree.root),
            self.cpu,
            gap_seconds=30.0,
            wall=lambda: float(BOOT + self.second - self.wall_is_late),
        )

    def step(self, *on_gpu: Workload, tenant: str = "lab", cpus: Mapping[str, int]) -> None:
        """A second, in which CPUs were busy for cgroups, and at its end a reading."""
        self.second += 1
        package(self.tree, self.second)
        self.used.update(cpus)
        for cgroup, seconds in self.used.items():
            usage = f"usage_usec {seconds * 10**6}\n"
            self.tree.write(f"sys/fs/cgroup{cgroup}/cpu.stat", usage)
        pids = {self.roster.account(each, tenant, self.second): () for each in on_gpu}
        self.host.advance(self.roster.known(), pids, self.second)

    def joules(self) -> dict[str, int]:
        """By tenant."""
        tenants = self.host.view({}).tenants
        return {name: uj // 10**6 for (_, name), uj in tenants.items() if uj}

    def by_pod(self) -> dict[str, int]:
        """By account."""
        workloads = self.host.view(self.roster.known()).workloads
        return {name: uj // 10**6 for (_, name), uj in workloads.items() if uj}


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_a_pod_pays_for_its_cpu_time_and_the_rest_is_the_systems(machine):
    a = pod("a", A)
    for _ in range(11):
        machine.step(a, cpus={A: 1})
    assert machine.joules() == {
        "lab": 10 * ONE_CPU,
        "system": 10 * ONE_CPU,
        "unallocated": 20 * ONE_CPU,
    }


def test_what_a_pod_used_before_it_came_to_a_gpu_is_not_charged_to_it(machine):
    a, b = pod("a", A), pod("b", B)
    machine.used[A] = 1000
    for _ in range(5):
        machine.step(b, cpus={B: 1})
    for _ in range(5):
        machine.step(a, b, cpus={B: 1})
    assert machine.by_pod() == {account_name("lab", b.key): 9 * ONE_CPU}


def test_a_pod_that_began_since_the_last_reading_pays_for_all_of_it(machine):
    b = pod("b", B)
    machine.step(b, cpus={B: 1})
    machine.step(b, cpus={B: 1})
    a = pod("a", A, started=3)
    machine.step(a, b, cpus={A: 1, B: 1})
    assert machine.by_pod() == {
        account_name("lab", b.key): 2 * ONE_CPU,
        account_name("lab", a.key): ONE_CPU,
    }


def test_a_start_that_a_stepped_clock_puts_into_the_future_is_no_beginning(machine):
    machine.wall_is_late = 3600
    b = pod("b", B)
    machine.step(b, cpus={B: 1})
    machine.step(b, cpus={B: 1})
    machine.used[A] = 1000
    machine.step(pod("a", A, started=2), b, cpus={B: 1})
    machine.step(pod("a", A, started=2), b, cpus={B: 1})
    assert machine.by_pod() == {account_name("lab", b.key): 3 * ONE_CPU}


def test_under_new_rules_the_new_account_takes_over_the_pods_cpu_time(machine):
    a = pod("a", A)
    for _ in range(11):
        machine.step(a, cpus={A: 1})
    for _ in range(11):
        machine.step(a, tenant="institute", cpus={A: 1})
    # The first second of the new account is the system's: nobody knows since when it counts.
    assert machine.joules() == {
        "lab": 10 * ONE_CPU,
        "institute": 10 * ONE_CPU,
        "system": 22 * ONE_CPU,
        "unallocated": 42 * ONE_CPU,
    }


def test_a_pod_that_is_not_seen_for_a_moment_loses_nothing(machine):
    a = pod("a", A)
    for second in range(11):
        machine.step(*[a] if second not in (4, 5) else [], cpus={A: 1})
    assert machine.joules()["lab"] == 10 * ONE_CPU


def test_a_pod_that_left_its_gpu_long_ago_is_the_systems(machine):
    a = pod("a", A)
    machine.step(a, cpus={A: 1})
    for _ in range(60):
        machine.step(cpus={A: 1})
    assert machine.joules()["lab"] == 30 * ONE_CPU


def test_two_jobs_in_one_cgroup_pay_by_their_processes(machine):
    shared = "/system.slice/slurmd.service"
    jobs = [Workload("slurm", job, BOOT, cgroup=shared) for job in ("1", "2")]
    for second in range(11):
        machine.second = second
        package(machine.tree, second)
        machine.tree.write(f"sys/fs/cgroup{shared}/cpu.stat", f"usage_usec {second * 10**6}\n")
        for pid, used in ((1, second * TICKS), (2, 0)):
            between, after = " ".join(["0"] * 8), " ".join(["0"] * 7)
            fields = f"R 1 {pid} {pid} {between} {used} {after} 500 0 0"
            machine.tree.write(f"proc/{pid}/stat", f"{pid} (job) {fields}\n")
        pids = {machine.roster.account(job, "lab", second): (int(job.uid),) for job in jobs}
        machine.host.advance(machine.roster.known(), pids, second)
    assert machine.by_pod() == {account_name("lab", jobs[0].key): 10 * ONE_CPU}


def test_an_ended_pod_leaves_what_it_burned_to_its_tenant(machine):
    a = pod("a", A)
    for _ in range(5):
        machine.step(a, cpus={A: 1})
    machine.host.leave([account_name("lab", a.key)])
    assert machine.by_pod() == {}
    assert machine.joules()["lab"] == 4 * ONE_CPU
    kept = json.loads(json.dumps(machine.host.as_state()))
    machine.open()
    machine.host.restore(kept)
    assert machine.joules()["lab"] == 4 * ONE_CPU


def test_a_pod_that_leaves_while_it_is_read_does_not_come_back(machine, monkeypatch):
    a = pod("a", A)
    for _ in range(5):
        machine.step(a, cpus={A: 1})
    (account,) = machine.roster.known()
    read = machine.cpu.read

    def leaving(owners: Mapping[str, CpuOwner]) -> CpuUse | None:
        found = read(owners)
        machine.host.leave([account])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(machine.cpu, "read", leaving)
        machine.step(a, cpus={A: 1})
    assert machine.by_pod() == {}
    assert machine.joules() == {
        "lab": 4 * ONE_CPU,
        "system": 6 * ONE_CPU,
        "unallocated": 10 * ONE_CPU,
    }
    machine.step(a, cpus={A: 1})
    assert machine.by_pod() == {account: ONE_CPU}, "it was on a GPU once more"


def test_what_burned_while_the_exporter_was_down_is_unobserved(machine):
    a = pod("a", A)
    for _ in range(5):
        machine.step(a, cpus={A: 1})
    kept = json.loads(json.dumps(machine.host.as_state()))
    machine.second += 10
    machine.open()
    machine.host.restore(kept)
    assert machine.by_pod() == {account_name("lab", a.key): 4 * ONE_CPU}, (
        "it is there before any reading"
    )
    for _ in range(5):
        machine.step(a, cpus={A: 1})
    assert machine.joules() == {
        "lab": 8 * ONE_CPU,
        "system": 8 * ONE_CPU,
        "unallocated": 16 * ONE_CPU,
        "unobserved": 11 * JOULES,
    }


def test_a_node_whose_rules_change_goes_on_billing_the_hosts_energy(clock, tmp_path):
    rules = tmp_path / "tenants.toml"
    rules.write_text('[[rule]]\nnamespace = "ml"\ntenant = "lab"\n')
    host = Host(clock, tmp_path, tenants_file=str(rules))
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope")
    host.tree.containerd(CID, "trainer")
    host.tree.start(8, f"{OTHER_POD}/cri-containerd-{CID[:-1]}0.scope")
    host.driver.on = {"GPU-0": {7: 0.5}, "GPU-1": {8: 0.5}}
    for second in range(22):
        if second == 11:
            rules.write_text('[[rule]]\nnamespace = "ml"\ntenant = "institute of it"\n')
        package(host.tree, second)
        host.tree.write(f"sys/fs/cgroup{POD}/cpu.stat", f"usage_usec {second * 10**6}\n")
        host.tree.write(f"sys/fs/cgroup{OTHER_POD}/cpu.stat", "usage_usec 5\n")
        host.run(1)
    tenants = host.node.view.attribution.host.tenants
    joules = {tenant: uj // 10**6 for (_, tenant), uj in tenants.items() if uj}
    assert joules["lab"] + joules["institute of it"] >= 18 * ONE_CPU
    assert joules["institute of it"] >= 8 * ONE_CPU
