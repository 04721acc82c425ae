"""One fault costs one thing: a board, a process, a quota, an answer of the kubelet."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.exporter.books import attribution
from seedance_obs.exporter.registry import CollectorSet
from tests.exporter.books.test_workloads import WATTS, Host, holds
from tests.sources.host_tree import CID, POD


@pytest.fixture
def host(clock, tmp_path) -> Host:
    return Host(clock, tmp_path)


@pytest.fixture
def two_boards(host) -> Host:
    for pid in (7, 8):
        host.tree.start(pid, None, group=pid)
    host.driver.on = {"GPU-0": {7: 1.0}, "GPU-1": {8: 1.0}}
    host.run(3)
    return host


def breaking(monkeypatch, name: str, is_bad) -> None:
    """Make a step of the attribution raise for what `is_bad` finds in its first argument."""
    real = getattr(attribution, name)

    def broken(first, *rest, **options):
        if is_bad(first):
            raise ZeroDivisionError
        return real(first, *rest, **options)

    monkeypatch.setattr(attribution, name, broken)


def booked(host) -> dict[str, dict[str, int]]:
    """Joules by board and tenant."""
    found: dict[str, dict[str, int]] = {"GPU-0": {}, "GPU-1": {}}
    for account in host.node.view.attribution.tenants:
        joules = (account.balance.active_mj + account.balance.reserved_mj) // 1000
        if joules:
            found[account.gpu_uuid][account.tenant] = joules
    return found


@pytest.mark.parametrize("step", ["occupancy", "holders_of"])
def test_a_board_whose_holders_cannot_be_told_is_unobserved_and_others_go_on(
    two_boards, monkeypatch, caplog, step
):
    breaking(monkeypatch, step, lambda gpu: gpu.uuid == "GPU-1")
    two_boards.run(4)
    monkeypatch.undo()
    two_boards.run(3)
    assert booked(two_boards) == {
        "GPU-0": {"anna": 9 * WATTS},
        "GPU-1": {"anna": 5 * WATTS, "unobserved": 4 * WATTS},
    }
    assert [record.message.split()[0] for record in caplog.records] == [
        "event=fault_started",
        "event=fault_ended",
    ]
    assert all("GPU-1" in record.message for record in caplog.records)


def test_a_board_that_cannot_be_booked_costs_its_own_books(two_boards, monkeypatch, caplog):
    books = two_boards.node._attribution._parts.books
    real = books.advance

    def broken(uuid, model, tick):
        if uuid == "GPU-1":
            raise ZeroDivisionError
        real(uuid, model, tick)

    monkeypatch.setattr(books, "advance", broken)
    two_boards.run(4)
    assert booked(two_boards) == {"GPU-0": {"anna": 6 * WATTS}, "GPU-1": {"anna": 2 * WATTS}}
    assert len(two_boards.node.view.gpus) == 2
    assert len(caplog.records) == 1


def test_without_the_classes_of_links_everything_else_is_booked(two_boards, monkeypatch):
    breaking(monkeypatch, "links_by_workload", lambda _topology: True)
    two_boards.run(4)
    assert booked(two_boards) == {"GPU-0": {"anna": 6 * WATTS}, "GPU-1": {"anna": 6 * WATTS}}


def test_without_an_answer_to_who_was_given_what_processes_still_tell(two_boards, monkeypatch):
    two_boards.kubelet.containers = (holds("red", "a", "GPU-1"),)
    breaking(monkeypatch, "given_to_pods", lambda _containers: True)
    two_boards.run(4)
    assert booked(two_boards) == {"GPU-0": {"anna": 6 * WATTS}, "GPU-1": {"anna": 6 * WATTS}}


def test_an_odd_process_costs_neither_the_reading_nor_the_other_processes(
    two_boards, monkeypatch, caplog
):
    owners = two_boards.node._attribution._parts.people._owners
    real = owners.owner

    def broken(pid):
        if pid == 8:
            raise ZeroDivisionError
        return real(pid)

    monkeypatch.setattr(owners, "owner", broken)
    view = two_boards.run(4)
    assert [gpu.merged.listed_at for gpu in view.gpus] == [two_boards.clock()] * 2
    assert booked(two_boards)["GPU-0"] == {"anna": 6 * WATTS}
    assert [record.message for record in caplog.records] == [
        "event=fault_started of='processes'",
    ]


def test_without_quotas_the_job_map_or_the_use_of_processes_the_rest_goes_on(clock, tmp_path):
    def broken(*_args):
        raise ZeroDivisionError

    host = Host(clock, tmp_path, slurm_job_map_directory="/var/run/job_maps")
    write_energy(host, 0)
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    parts = host.node._attribution._parts
    parts.quotas.refresh = broken
    host.node._attribution._use.add = broken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attribution, "read_job_map", broken)
        for second in range(1, 9):
            write_energy(host, second)
            host.run(1)
    assert host.joules() == {"anna": 7 * WATTS}
    assert sum(host.node.view.attribution.host.tenants.values()) > 0


def write_energy(host: Host, second: int) -> None:
    """A package that draws 100 W, and four CPUs of which two are busy."""
    zone = "sys/class/powercap/intel-rapl:0"
    host.tree.write(f"{zone}/name", "package-0\n")
    host.tree.write(f"{zone}/energy_uj", f"{second * 100_000_000}\n")
    host.tree.write(f"{zone}/max_energy_range_uj", "262143328850\n")
    modes = f"cpu {second * 200} 0 0 {second * 200} 0 0 0 0"
    host.tree.write("proc/stat", f"{modes}\nbtime 1732960000\nprocesses 9\n")


def test_the_job_map_is_not_read_where_assembling_would_wait_for_it(clock, tmp_path, monkeypatch):
    host = Host(clock, tmp_path, slurm_job_map_directory="/var/run/job_maps")
    host.tree.write("var/run/job_maps/0", "42\n")
    read = []
    real = attribution.read_job_map
    monkeypatch.setattr(attribution, "read_job_map", lambda folder: read.append(1) or real(folder))
    clock.advance(1.0)
    host.node.poll("nvml")
    view = host.node.assemble()
    assert read == []
    assert "slurm_job_map" not in view.sources  # nobody has looked
    host.node.refresh()
    clock.advance(1.0)
    host.node.poll("nvml")
    view = host.node.assemble()
    assert read == [1]
    assert view.sources["slurm_job_map"].up
    assert [shown.workload.slurm_job for shown in view.attribution.workloads] == ["42"]
    (tmp_path / "var/run/job_maps/0").unlink()
    (tmp_path / "var/run/job_maps").rmdir()
    assert not host.run(1).sources["slurm_job_map"].up


def scraped(host: Host) -> dict[str, list[tuple[dict[str, str], float]]]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CollectorSet(lambda: host.node.view, host.settings, monotonic=host.clock))
    page = generate_latest(registry).decode()
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(page)
    }


def test_a_service_of_a_user_is_billed_to_the_user_by_its_whole_name(host):
    cgroup = "/user.slice/user-1001.slice/user@1001.service/app.slice/notebook.service"
    host.tree.start(7, cgroup)
    host.tree.write(f"sys/fs/cgroup{cgroup}/cgroup.gpu-quota", "1000:40%\n")
    host.driver.on["GPU-0"] = {7: 0.5}
    for second in range(12):
        write_energy(host, second)
        host.tree.write(f"sys/fs/cgroup{cgroup}/cpu.stat", f"usage_usec {second * 1_000_000}\n")
        host.run(1)
    assert host.joules() == {"anna": 11 * WATTS}
    (uid,) = {shown.workload.uid for shown in host.node.view.attribution.workloads}
    assert "/" in uid
    page = scraped(host)
    for name in (
        "seedance_workload_gpu_energy_joules",
        "seedance_workload_quota_memory_bytes",
        "seedance_workload_host_energy_joules",
        "seedance_workload_start_time_seconds",
    ):
        whose = {(labels["tenant"], labels["workload"]) for labels, _ in page[name]}
        assert whose == {("anna", f"service-{uid}-1732960005")}, name


def test_a_claim_that_processes_contradict_counts_once_while_it_is_told(host):
    host.tree.start(7, f"{POD}/cri-containerd-{CID}.scope")
    host.tree.containerd(CID, "trainer")
    host.driver.on["GPU-0"] = {7: 0.5}
    host.kubelet.containers = (holds("red", "a", "GPU-0"),)
    for name in host.node.sources:
        host.node.poll(name)
    for _ in range(20):
        host.node.assemble()
    contradicted = "seedance_workload_claims_contradicted"
    assert scraped(host)[contradicted] == [({}, 1.0)]
    host.kubelet.containers = (holds("ml", "train-0", "GPU-0"),)
    host.run(6)
    assert scraped(host)[contradicted] == [({}, 0.0)]


def test_a_user_named_like_the_hosts_own_account_is_not_billed_for_it(host):
    host.tree.write("etc/passwd", "system:x:1001:1001::/:/bin/sh\n")
    host.tree.start(7, None, group=7, uid=1001)
    host.driver.on["GPU-0"] = {7: 1.0}
    for second in range(9):
        write_energy(host, second)
        host.run(1)
    assert host.joules() == {"unknown": 8 * WATTS}
    page = scraped(host)
    assert {labels["tenant"] for labels, _ in page["seedance_tenant_gpu_seconds"]} == {
        "unknown",
        "unallocated",
        "unobserved",
    }


def test_a_stall_adds_no_more_at_a_limit_than_anybody_can_have_seen(host):
    cgroup = f"{POD}/cri-containerd-{CID}.scope"
    host.tree.start(7, cgroup)
    host.tree.write(f"sys/fs/cgroup{cgroup}/cgroup.gpu-quota", "1000:40%\n")
    host.driver.on["GPU-0"] = {7: 0.39}
    (row,) = host.run(8).attribution.quotas
    assert row.at_limit["memory"] == 7.0
    host.clock.advance(3600.0)
    (row,) = host.run(1).attribution.quotas
    assert row.at_limit["memory"] == 7.0 + host.settings.sampler_stale_after_seconds
