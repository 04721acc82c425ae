"""A whole node over a made-up host: who is told, what survives, and what one fault costs."""

import dataclasses
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from seedance_obs.config import NodeSettings
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.books.account_names import account_name
from seedance_obs.exporter.node import Node
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.exporter.view import NodeView
from seedance_obs.sources.podresources.devices import HeldDevice
from seedance_obs.sources.podresources.pods import PodContainer
from seedance_obs.sources.readings import (
    GpuProcess,
    GpuReadings,
    ProcessUse,
    SourceSnapshot,
    VgpuInstance,
)
from tests.sources.host_tree import CID, POD, UID, HostTree

OTHER_UID = "0e4c5f1a-2b3c-4d5e-8f90-a1b2c3d4e5f6"
OTHER_POD = POD.replace(UID.replace("-", "_"), OTHER_UID.replace("-", "_"))
WATTS = 100


class Driver:
    """Boards that draw 100 W each, with the processes the test puts on them."""

    name = "nvml"

    def __init__(self, clock) -> None:
        self._clock = clock
        self.on: dict[str, dict[int, float]] = {"GPU-0": {}}
        self.models: dict[str, str] = {}

    def read(self) -> SourceSnapshot:
        return SourceSnapshot("nvml", self._clock(), gpus=tuple(map(self._board, self.on)))

    def _board(self, uuid: str) -> GpuReadings:
        index = int(uuid[-1])
        return GpuReadings(
            uuid,
            model=self.models.get(uuid),
            index=index,
            pci_bus_id=f"0000:0{index}:00.0",
            values={"energy_mj": self._clock() * WATTS * 1000},
            processes=tuple(GpuProcess(pid, memory_bytes=1000) for pid in self.on[uuid]),
            process_use=tuple(ProcessUse(pid, busy) for pid, busy in self.on[uuid].items()),
        )

    def close(self) -> None:
        pass


class Kubelet:
    """Lists what the test puts into it."""

    name = "podresources"

    def __init__(self, clock) -> None:
        self._clock = clock
        self.containers: tuple[PodContainer, ...] | None = ()

    def read(self) -> SourceSnapshot:
        if self.containers is None:
            raise SourceUnavailableError("the kubelet did not answer within 3 s")
        return SourceSnapshot("podresources", self._clock(), containers=self.containers)

    def close(self) -> None:
        pass


def holds(namespace: str, pod: str, uuid: str, replica: int | None = None) -> PodContainer:
    return PodContainer(namespace, pod, "main", (HeldDevice(gpu_uuid=uuid, replica=replica),))


class Host:
    """The node and everything below it."""

    def __init__(self, clock, root, **settings) -> None:
        self.clock, self.tree = clock, HostTree(root)
        self.driver, self.kubelet = Driver(clock), Kubelet(clock)
        self.settings = NodeSettings(node_root=str(root), **settings)
        self.open()

    def open(self) -> None:
        """Start the exporter; again, as after a crash."""
        sources = [self.driver, self.kubelet]
        self.node = Node(
            self.settings, sources, node_name="n", monotonic=self.clock, wall=self.clock
        )

    def run(self, seconds: int) -> NodeView:
        for _ in range(seconds):
            self.clock.advance(1.0)
            for name in self.node.sources:
                self.node.poll(name)
            self.node.refresh()
            self.node.assemble()
        return self.node.view

    def joules(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for account in self.node.view.attribution.tenants:
            balance = account.balance
            found[account.tenant] += (balance.active_mj + balance.reserved_mj) // 1000
        return {tenant: joules for tenant, joules in found.items() if joules}

    def workloads(self) -> list[str]:
        return [shown.workload.key for shown in self.node.view.attribution.workloads]


@pytest.fixture
def host(clock, tmp_path) -> Host:
    return Host(clock, tmp_path)


def test_a_pod_is_known_by_its_uid_and_start_and_pays_by_its_namespace(host):
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope", ticks=500)
    host.tree.containerd(CID, "trainer")
    host.driver.on["GPU-0"] = {7: 0.5}
    host.run(11)
    assert host.workloads() == [f"pod-{UID}-1732960005"]
    assert host.joules() == {"ml": 10 * WATTS}
    (account,) = host.node.view.attribution.workload_accounts
    assert account.balance.active_us == account.balance.reserved_us == 5_000_000
    assert account.memory_bytes == 1000


def test_a_reused_pid_inherits_nothing(host):
    host.tree.start(7, None, ticks=500, group=7, uid=1001)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.run(6)
    host.tree.end(7)
    host.tree.start(7, None, ticks=900, group=7, uid=0)
    host.run(5)
    assert host.joules() == {"anna": 5 * WATTS, "root": 5 * WATTS}
    assert host.workloads() == ["process-7-1732960005", "process-7-1732960009"]


def test_pods_of_one_name_in_two_namespaces_are_two_workloads(host):
    host.driver.on = {"GPU-0": {}, "GPU-1": {}}
    host.kubelet.containers = (holds("red", "train-0", "GPU-0"), holds("blue", "train-0", "GPU-1"))
    host.run(11)
    assert host.joules() == {"red": 10 * WATTS, "blue": 10 * WATTS}
    assert len(set(host.workloads())) == 2


def test_a_restarted_pod_of_the_same_name_begins_at_zero(host):
    for uid, pod, pid in ((UID, POD, 7), (OTHER_UID, OTHER_POD, 8)):
        host.tree.write(f"var/log/pods/ml_train-0_{uid}/main/0.log", "")
        host.tree.start(pid, f"{pod}/cri-containerd-{CID[:-1]}{pid}.scope", ticks=100 * pid)
        host.driver.on["GPU-0"] = {pid: 1.0}
        host.run(5)
        host.tree.end(pid)
    first, second = host.node.view.attribution.workload_accounts
    assert {first.account, second.account} == {
        account_name("ml", f"pod-{OTHER_UID}-1732960008"),
        account_name("ml", f"pod-{UID}-1732960007"),
    }
    assert first.balance.active_mj + second.balance.active_mj == 9 * WATTS * 1000
    assert host.joules() == {"ml": 9 * WATTS}


def test_without_host_pids_a_board_is_its_pods_and_two_sharers_are_split_equally(host):
    host.driver.on["GPU-0"] = {41: 0.9, 42: 0.1}  # pids of another namespace: nobody here has them
    host.kubelet.containers = (
        holds("red", "a", "GPU-0", replica=0),
        holds("blue", "b", "GPU-0", replica=1),
    )
    host.run(11)
    assert host.joules() == {"red": 5 * WATTS, "blue": 5 * WATTS}
    (evidence,) = host.node.view.attribution.evidence
    assert evidence.estimators["residency"] == 10 * WATTS * 1000


def test_a_kubelet_that_fails_costs_only_pods_without_processes(host):
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope")
    host.tree.containerd(CID, "trainer")
    host.driver.on["GPU-0"] = {7: 0.5}
    host.kubelet.containers = None
    view = host.run(11)
    assert host.joules() == {"ml": 10 * WATTS}
    assert not view.sources["podresources"].up
    assert view.sources["nvml"].up


def test_pods_outlive_a_kubelet_that_is_down_for_a_while(host):
    host.kubelet.containers = (holds("red", "a", "GPU-0"),)
    host.run(3)
    host.kubelet.containers = None
    host.run(60)
    assert host.joules() == {"red": 62 * WATTS}


def test_a_pod_that_ended_holds_nothing_though_the_kubelet_lists_it(host):
    host.tree.write(f"var/log/pods/red_a_{UID}/main/0.log", "")
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope")
    host.tree.join(99, f"{OTHER_POD}/cri-containerd-{CID}.scope")  # another pod lives on
    host.kubelet.containers = (holds("red", "a", "GPU-0"),)
    host.run(6)
    host.tree.end(7)
    for folder in sorted((host.tree.cgroups / POD.strip("/")).rglob("*"), reverse=True):
        folder.unlink() if folder.is_file() else folder.rmdir()
    (host.tree.cgroups / POD.strip("/")).rmdir()
    host.run(10)
    assert host.joules() == {"red": 6 * WATTS, "unallocated": 9 * WATTS}


def test_an_idle_pod_that_no_file_here_tells_of_is_believed_though_others_have_cgroups(host):
    host.tree.join(99, f"{OTHER_POD}/cri-containerd-{CID}.scope")
    host.kubelet.containers = (holds("red", "a", "GPU-0"),)
    host.run(11)
    assert host.joules() == {"red": 10 * WATTS}


def test_what_a_board_of_pods_burns_when_no_kubelet_answers_for_long_is_unobserved(host):
    host.kubelet.containers = (holds("red", "a", "GPU-0"),)
    host.run(2)
    host.kubelet.containers = None
    host.clock.advance(1801.0)
    host.run(11)
    assert host.joules()["unobserved"] == (1802 + 10) * WATTS
    assert "unallocated" not in host.joules()


def test_an_ended_workload_is_shown_for_five_minutes_and_its_tenant_for_ever(host):
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.run(6)
    host.tree.end(7)
    host.driver.on["GPU-0"] = {}
    host.run(300)
    assert host.workloads() == ["process-7-1732960005"]
    (account,) = host.node.view.attribution.workload_accounts
    assert account.memory_bytes is None
    host.run(2)
    assert host.workloads() == []
    # Without a known floor the tick in which it ended is all its own.
    assert host.joules() == {"anna": 6 * WATTS, "unallocated": 301 * WATTS}


def test_a_driver_that_is_away_for_long_ends_no_workload(host):
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.run(6)
    (before,) = host.node.view.attribution.workload_accounts
    there = host.driver.on
    host.driver.on = {}
    host.run(400)
    host.driver.on = there
    host.run(5)
    (after,) = host.node.view.attribution.workload_accounts
    assert after.account == before.account
    assert after.balance.active_mj == before.balance.active_mj + 4 * WATTS * 1000
    assert host.joules() == {"anna": 9 * WATTS, "unobserved": 401 * WATTS}


def test_a_board_that_is_never_idle_is_lent_the_floor_of_its_model(host):
    host.driver.on = {"GPU-0": {}, "GPU-1": {7: 1.0}, "GPU-2": {7: 1.0}}
    host.driver.models = {"GPU-0": "H100", "GPU-1": "H100", "GPU-2": "A100"}
    host.tree.start(7, None, group=7)
    host.run(30)
    floors = {
        evidence.gpu_uuid: (evidence.floor_watts, evidence.floor_source)
        for evidence in host.node.view.attribution.evidence
    }
    assert floors["GPU-0"] == (pytest.approx(WATTS), "measured")
    assert floors["GPU-1"] == (pytest.approx(WATTS), "same_model")
    assert floors["GPU-2"] == (None, None)


def test_workloads_beyond_the_limit_are_hidden_and_billed(clock, tmp_path):
    host = Host(clock, tmp_path, attribution_workload_limit=2)
    for pid in (11, 12, 13):
        host.tree.start(pid, None, group=pid)
    host.driver.on["GPU-0"] = {11: 0.2, 12: 0.2, 13: 0.2}
    view = host.run(11)
    assert len(view.attribution.workloads) == 2
    assert len(view.attribution.workload_accounts) == 2
    assert view.attribution.hidden_workloads == 1
    assert host.joules() == {"anna": 10 * WATTS}


def test_new_rules_bill_from_now_on_and_a_broken_file_changes_nothing(clock, tmp_path):
    rules = tmp_path / "tenants.toml"
    rules.write_text('[[rule]]\nuser = "anna"\ntenant = "lab"\n')
    host = Host(clock, tmp_path, tenants_file=str(rules))
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.run(6)
    rules.write_text('[[rule]]\nuser = "anna"\ntenant = "institute of machines"\n')
    host.run(5)
    after = host.joules()
    assert set(after) == {"lab", "institute of machines"}
    assert sum(after.values()) == 10 * WATTS
    rules.write_text("[[rule]\n")
    view = host.run(5)
    assert host.joules()["lab"] == after["lab"]
    assert sum(host.joules().values()) == 15 * WATTS
    assert not view.sources["tenants_file"].up


def test_a_crash_loses_no_joule_and_books_none_twice(clock, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    host = Host(clock, tmp_path, state_directory=str(state))
    host.tree.write("proc/sys/kernel/random/boot_id", "0b3a1c5e-0000-4000-8000-000000000001\n")
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.open()
    host.run(6)
    clock.advance(7.0)
    host.open()
    host.run(5)
    assert host.joules() == {"anna": 9 * WATTS, "unobserved": 8 * WATTS}
    host.tree.write("proc/sys/kernel/random/boot_id", "0b3a1c5e-0000-4000-8000-000000000002\n")
    host.open()
    host.run(3)
    assert host.joules() == {"anna": 2 * WATTS}


def test_what_a_quota_file_allows_is_shown_beside_the_use(host):
    cgroup = f"{POD}/cri-containerd-{CID}.scope"
    host.tree.start(7, cgroup)
    host.tree.write(f"sys/fs/cgroup{cgroup}/cgroup.gpu-quota", "1000:40%\n")
    host.driver.on["GPU-0"] = {7: 0.39}
    view = host.run(8)
    (row,) = view.attribution.quotas
    assert (row.source, row.memory_bytes, row.sm_ratio) == ("gpu-quota", 1000, 0.4)
    assert row.at_limit == {"memory": 7.0, "sm": 0.0}


def test_a_workload_adds_at_most_twelve_series_to_its_board(host):
    """Quotas come on top where something limits it."""
    host.driver.on["GPU-0"] = {7: 0.5, 8: 0.2}
    for pid in (7, 8):
        host.tree.start(pid, None, group=pid)
    host.run(20)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CollectorSet(lambda: host.node.view, host.settings, monotonic=host.clock))
    page = generate_latest(registry).decode()
    mine = [line for line in page.splitlines() if 'workload="process-7-1732960005"' in line]
    assert len(mine) >= 8
    # Traffic of two kinds, an intensity and the host's energy may be missing here.
    assert len(mine) + 4 <= 12


def test_guests_of_a_virtual_gpu_host_share_it_by_what_they_use(host, monkeypatch):
    plain = host.driver._board

    def with_guests(uuid: str) -> GpuReadings:
        guests = (VgpuInstance("v1", "vm-a", 10, 0.6), VgpuInstance("v2", "vm-b", 20, 0.2))
        return dataclasses.replace(plain(uuid), vgpus=guests)

    monkeypatch.setattr(host.driver, "_board", with_guests)
    view = host.run(11)
    active = {a.account: a.balance.active_us for a in view.attribution.workload_accounts}
    guests = {"vgpu-vm-a-0": 6_000_000, "vgpu-vm-b-0": 2_000_000}
    assert active == {account_name("unknown", guest): us for guest, us in guests.items()}


def test_a_slurm_job_is_known_by_its_map_before_its_first_process(clock, tmp_path):
    host = Host(clock, tmp_path, slurm_job_map_directory="/var/run/job_maps")
    host.tree.write("var/run/job_maps/0", "42\n")
    view = host.run(6)
    assert [shown.workload.slurm_job for shown in view.attribution.workloads] == ["42"]
    assert view.sources["slurm_job_map"].up


def test_bytes_are_booked_by_the_class_of_link_they_took(host, monkeypatch):
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    plain = host.driver._board

    def with_traffic(uuid: str) -> GpuReadings:
        gpu = plain(uuid)
        moved = {"pcie_transmit_bytes": 10.0 * host.clock(), "pcie_receive_bytes": 0.0}
        return dataclasses.replace(gpu, values={**gpu.values, **moved})

    monkeypatch.setattr(host.driver, "_board", with_traffic)
    host.run(11)
    (account,) = host.node.view.attribution.workload_accounts
    assert account.balance.link_bytes == {"PHB": 100}
