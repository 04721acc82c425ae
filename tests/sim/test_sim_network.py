"""The simulated network adapters count what the processes on the GPUs near them send."""

from pathlib import Path

import pytest
from one_gpu import machine_with

from seedance_obs.errors import UsageError
from seedance_obs.sources.nics import NicLoop
from seedance_obs.sources.sim.adapter_files import write_nics
from seedance_obs.sources.sim.adapters import adapter_bytes, nearest_adapter
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.hostfs import write_sysfs
from seedance_obs.sources.sim.kinds import KINDS
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.network_truth import NetworkUse, network_truth

BESIDE = {"name": "mlx5_0", "pci": "0000:19:00.0", "numa": 0, "path": ["pci0000:15"]}
BELOW = BESIDE | {"name": "mlx5_1", "pci": "0000:1a:00.0", "path": ["pci0000:15", "0000:15:01.0"]}
ELSEWHERE = BESIDE | {"name": "mlx5_2", "numa": 1, "path": ["pci0000:80"]}
TWO_SOCKETS = {"numa_cpus": ["0-7", "8-15"]}


def names_of_nearest(machine: Machine) -> list[str]:
    found = (nearest_adapter(machine, gpu) for gpu in machine.gpus)
    return [nic.name if nic else "" for nic in found]


def test_nothing_passes_the_network_without_passing_the_gpus_pcie_link() -> None:
    for kind in KINDS.values():
        assert kind.network <= min(kind.pcie_transmit, kind.pcie_receive)
    assert {name for name, kind in KINDS.items() if kind.network} == {"training", "simulation"}


def test_a_gpu_uses_the_nearest_adapter_and_the_first_of_equals() -> None:
    hgx = load_machine("h100-nvswitch")
    assert names_of_nearest(hgx) == [f"mlx5_{2 * (gpu // 2)}" for gpu in range(8)]
    assert names_of_nearest(load_machine("a100-pcie")) == ["mlx5_0"] * 4 + ["mlx5_1"] * 4
    assert names_of_nearest(machine_with(nics=[BESIDE, BELOW])) == ["mlx5_1"]
    assert names_of_nearest(machine_with(nics=[ELSEWHERE], **TWO_SOCKETS)) == [""]


@pytest.mark.parametrize("name", machine_names())
def test_the_counters_agree_with_the_sum_over_small_steps(name: str) -> None:
    machine = load_machine(name)
    t0, t1 = 0.3, 20.3
    before, after = adapter_bytes(machine, t0), adapter_bytes(machine, t1)
    told = dict.fromkeys(before, 0.0)
    for use, amount in network_truth(machine, t0, t1, step_s=0.05).items():
        told[use.adapter] += amount
    exact = {address: after[address] - before[address] for address in before}
    assert told == pytest.approx(exact, rel=1e-2, abs=1.0)


def test_tenants_are_told_apart_and_a_kind_that_does_not_send_has_nothing() -> None:
    job, other = {"share": 0.5}, {"name": "other", "share": 0.25, "tenant": "risk"}
    serving = {"name": "serving", "share": 0.25, "kind": "inference"}
    machine = machine_with(job, other, serving, nics=[BELOW])
    whole = 10 * 0.5 * KINDS["training"].network
    assert network_truth(machine, 0, 10) == {
        NetworkUse("0000:1a:00.0", "vision"): pytest.approx(0.5 * whole),
        NetworkUse("0000:1a:00.0", "risk"): pytest.approx(0.25 * whole),
    }


@pytest.mark.parametrize("network", ["rdma", "ethernet"])
def test_what_is_read_from_the_files_is_what_was_sent(network: str, tmp_path: Path) -> None:
    machine = machine_with({}, nics=[BELOW | {"network": network, "gbits": 200}])
    write_sysfs(machine, tmp_path)
    now = 0.0
    loop = NicLoop(tmp_path, interval_seconds=0.1, monotonic=lambda: now)
    loop.watch(["0000:1a:00.0"])
    for step in range(51):
        now = step / 10
        write_nics(machine, tmp_path, now)
        loop.tick()
    assert loop.capacity("0000:1a:00.0") == 25e9
    flows = loop.take()
    loop.close()
    assert {flow.source for flow in flows} == {network}
    sent = network_truth(machine, 0, 5)["0000:1a:00.0", "vision"]
    for flow in flows:
        assert sum(window.amount for window in flow.windows) == pytest.approx(sent, abs=8)


def test_the_counters_can_go_back_in_time(tmp_path: Path) -> None:
    machine = machine_with({}, nics=[BELOW])
    write_sysfs(machine, tmp_path)
    counters = tmp_path / "sys/bus/pci/devices/0000:1a:00.0/infiniband/mlx5_1/ports/1/counters"
    write_nics(machine, tmp_path, 1000.0)
    assert (counters / "port_rcv_data").read_text() == "100000000000\n"
    write_nics(machine, tmp_path, 1.0)
    assert (counters / "port_rcv_data").read_text() == "100000000\n"


def test_the_name_says_which_network_where_the_description_does_not() -> None:
    plain = BESIDE | {"name": "ens3", "gbits": 25}
    ethernet, rdma = machine_with(nics=[plain, BELOW]).nics
    assert (ethernet.rdma, ethernet.gbits) == (False, 25)
    assert (rdma.rdma, rdma.gbits) == (True, 400)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"network": "token-ring"}, r"nics\[0\].network: rdma or ethernet is wanted"),
        ({"gbits": 25}, r"nics\[0\].gbits: one of 100, 200, 400, 800 is wanted, found 25"),
    ],
)
def test_an_adapter_that_cannot_be_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        machine_with(nics=[BESIDE | wrong])
