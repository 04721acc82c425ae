"""What an exporter that was killed knows again, and that no file can keep it from starting."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from seedance_obs.exporter.books.account_names import tenant_of
from seedance_obs.exporter.books.opening import STATE_FILE
from tests.exporter.books.test_workload_faults import write_energy
from tests.exporter.books.test_workloads import WATTS, Host
from tests.sources.host_tree import CID, POD

CGROUP = f"{POD}/cri-containerd-{CID}.scope"


@pytest.fixture
def host(clock, tmp_path) -> Host:
    """A node that keeps its state, with nothing on it."""
    state = tmp_path / "state"
    state.mkdir()
    host = Host(clock, tmp_path, state_directory=str(state))
    host.tree.write("proc/sys/kernel/random/boot_id", "0b3a1c5e-0000-4000-8000-000000000001\n")
    host.open()
    return host


@pytest.fixture
def pod_host(host) -> Host:
    """A pod at its limit of memory works on the board and on the host's CPUs."""
    host.tree.start(7, CGROUP)
    host.tree.containerd(CID, "trainer")
    host.tree.write(f"sys/fs/cgroup{CGROUP}/cgroup.gpu-quota", "1000:40%\n")
    host.driver.on["GPU-0"] = {7: 0.39}
    run(host, range(9))
    return host


def run(host: Host, seconds: range) -> None:
    for second in seconds:
        write_energy(host, second)
        host.tree.write(f"sys/fs/cgroup{POD}/cpu.stat", f"usage_usec {second * 1_000_000}\n")
        host.run(1)


def look(host: Host) -> None:
    """Assemble a view before anything is read from the host's own counters."""
    host.clock.advance(1.0)
    for name in host.node.sources:
        host.node.poll(name)
    host.node.assemble()


def at_limit(host: Host) -> float:
    (row,) = host.node.view.attribution.quotas
    return row.at_limit["memory"]


def kept(host: Host) -> dict[str, Any]:
    return json.loads((host.tree.root / "state" / STATE_FILE).read_text())["state"]


def test_an_ended_workload_is_still_shown_after_a_restart(host):
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.run(6)
    host.tree.end(7)
    host.driver.on["GPU-0"] = {}
    host.run(100)
    (before,) = host.node.view.attribution.workload_accounts
    host.open()
    host.run(1)
    (after,) = host.node.view.attribution.workload_accounts
    assert host.workloads() == ["process-7-1732960005"]
    assert (after.account, after.balance) == (before.account, before.balance)
    host.run(201)
    assert host.workloads() == []


def test_what_a_workload_that_left_burned_is_its_tenants_after_a_restart(host):
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    host.run(6)
    host.tree.end(7)
    host.driver.on["GPU-0"] = {}
    host.run(302)
    assert host.workloads() == []
    burned = host.joules()["anna"]
    assert burned == 6 * WATTS
    host.open()
    host.run(2)
    assert host.joules()["anna"] == burned


def test_the_hosts_energy_goes_on_where_it_stood(pod_host):
    before = pod_host.node.view.attribution.host
    assert before.tenants["package", "ml"] > 0
    pod_host.open()
    look(pod_host)
    assert pod_host.node.view.attribution.host == before


def test_no_more_of_the_hosts_energy_is_shown_than_is_kept(pod_host, monkeypatch):
    checkpoint = pod_host.node._attribution._parts.checkpoint
    save = checkpoint.save

    def save_and_be_overtaken(state):
        save(state)
        pod_host.node.refresh()

    monkeypatch.setattr(checkpoint, "save", save_and_be_overtaken)
    write_energy(pod_host, 9)
    pod_host.tree.write(f"sys/fs/cgroup{POD}/cpu.stat", "usage_usec 9000000\n")
    look(pod_host)
    shown = pod_host.node.view.attribution.host
    pod_host.open()
    look(pod_host)
    found = pod_host.node.view.attribution.host
    assert all(found.tenants[key] >= value for key, value in shown.tenants.items())
    assert all(found.workloads[key] >= value for key, value in shown.workloads.items())


def test_seconds_at_a_limit_go_on_where_they_stood(pod_host):
    before = at_limit(pod_host)
    assert before == 8.0
    pod_host.open()
    pod_host.run(2)  # in the first nobody knows who sits where, so no quota is read
    assert at_limit(pod_host) == before + 1.0


def test_a_clock_that_was_set_makes_no_other_workload_of_a_running_one(pod_host):
    before = pod_host.workloads()
    stat = pod_host.tree.root / "proc/stat"
    stat.write_text(stat.read_text().replace("btime 1732960000", "btime 1732960001"))
    pod_host.open()
    pod_host.run(3)
    assert pod_host.workloads() == before
    pod_host.open()
    pod_host.run(3)
    assert pod_host.workloads() == before


def test_a_workload_that_left_leaves_nothing_but_its_tenants_sum(pod_host):
    before = pod_host.node.view.attribution.host.tenants["package", "ml"]
    pod_host.tree.end(7)
    shutil.rmtree(pod_host.tree.cgroups / POD.strip("/"))
    pod_host.driver.on["GPU-0"] = {}
    for second in range(9, 9 + 302):
        write_energy(pod_host, second)
        pod_host.run(1)
    (kind,) = kept(pod_host)["host"]["account"]["kinds"].values()
    assert "ml" not in set(map(tenant_of, kind["balances"]))
    assert pod_host.node.view.attribution.host.tenants["package", "ml"] >= before
    assert kept(pod_host)["quotas"] == []
    (board,) = kept(pod_host)["books"]["boards"].values()
    assert "ml" not in set(map(tenant_of, board["balances"]))


def spoiled(value: Any) -> Iterator[Any]:
    """Copies of a value of JSON, each with something wrong at one place in it."""
    for wrong in (None, [], {}, "x", 0.5):
        if type(wrong) is not type(value):
            yield wrong
    if isinstance(value, dict):
        for key, inner in value.items():
            rest = {name: other for name, other in value.items() if name != key}
            yield rest
            yield from ({**rest, key: each} for each in spoiled(inner))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield value[:number] + value[number + 1 :]
            yield from ([*value[:number], each, *value[number + 1 :]] for each in spoiled(inner))


def test_a_state_of_another_shape_is_taken_as_a_whole_or_not_at_all(pod_host, caplog):
    file = pod_host.tree.root / "state" / STATE_FILE
    whole = json.loads(file.read_text())
    set_aside = 0
    for state in spoiled(whole["state"]):
        file.write_text(json.dumps({**whole, "state": state}))
        caplog.clear()
        pod_host.open()
        look(pod_host)
        look(pod_host)
        assert "fault_started" not in caplog.text
        if "event=checkpoint_broken" in caplog.text:
            set_aside += 1
            assert pod_host.joules() == {"ml": WATTS}
            assert not any(pod_host.node.view.attribution.host.tenants.values())
    assert set_aside > 100


@pytest.mark.parametrize("fact", ["mood", "key"])
def test_a_fact_that_this_exporter_does_not_know_costs_only_itself(pod_host, caplog, fact):
    file = pod_host.tree.root / "state" / STATE_FILE
    whole = json.loads(file.read_text())
    roster = whole["state"]["roster"]
    roster["facts"].append(fact)
    roster["rows"] = [[*row, "blue"] for row in roster["rows"]]
    file.write_text(json.dumps(whole))
    before = pod_host.node.view.attribution.workloads
    caplog.clear()
    pod_host.open()
    look(pod_host)
    assert pod_host.node.view.attribution.workloads == before
    assert "event=checkpoint_broken" not in caplog.text
