"""Bytes over a board's ports: never negative, never twice, and nobody's while nobody looked."""

import dataclasses
import json

from seedance_obs.exporter.books.traffic_meter import TrafficMeter
from seedance_obs.sources.readings import GpuReadings
from tests.exporter.books.boards import board, reading
from tests.exporter.books.test_workloads import Host


def ports(uuid: str = "GPU-a", **counters: float):
    return board(uuid, readings={f"{name}_bytes": reading(n) for name, n in counters.items()})


def test_both_directions_of_a_kind_add_up_board_by_board():
    meter = TrafficMeter()
    first = ports(pcie_transmit=100.0, pcie_receive=50.0, nvlink_transmit=7.0)
    assert meter.take(first) == {"pcie": 0, "nvlink": 0}
    assert meter.take(ports("GPU-b", pcie_transmit=10**9)) == {"pcie": 0}
    second = ports(pcie_transmit=130.0, pcie_receive=51.0, nvlink_transmit=9.0)
    assert meter.take(second) == {"pcie": 31, "nvlink": 2}


def test_a_counter_that_went_back_tells_nothing_and_goes_on_from_there():
    meter = TrafficMeter()
    meter.take(ports(pcie_transmit=1000.0, pcie_receive=5.0))
    assert meter.take(ports(pcie_transmit=10.0, pcie_receive=8.0)) == {"pcie": 3}
    assert meter.take(ports(pcie_transmit=12.0, pcie_receive=8.0)) == {"pcie": 2}


def test_a_counter_that_is_away_is_waited_for():
    meter = TrafficMeter()
    meter.take(ports(pcie_transmit=10.0))
    assert meter.take(ports()) == {}
    assert meter.take(ports(pcie_transmit=40.0)) == {"pcie": 30}


def test_a_restored_meter_goes_on_where_the_kept_one_stood():
    meter, second = TrafficMeter(), TrafficMeter()
    meter.take(ports(pcie_transmit=10.0, nvlink_receive=1.0))
    second.restore(json.loads(json.dumps(meter.as_state())))
    assert second.take(ports(pcie_transmit=70.0, nvlink_receive=1.0)) == {"pcie": 60, "nvlink": 0}


def test_what_passed_while_the_exporter_was_down_is_booked_and_nobodys(
    clock, tmp_path, monkeypatch
):
    state = tmp_path / "state"
    state.mkdir()
    host = Host(clock, tmp_path, state_directory=str(state))
    host.tree.write("proc/sys/kernel/random/boot_id", "0b3a1c5e-0000-4000-8000-000000000001\n")
    host.tree.start(7, None, group=7)
    host.driver.on["GPU-0"] = {7: 1.0}
    plain = host.driver._board

    def with_traffic(uuid: str) -> GpuReadings:
        gpu = plain(uuid)
        moved = {"pcie_transmit_bytes": 10.0 * clock(), "pcie_receive_bytes": 0.0}
        return dataclasses.replace(gpu, values={**gpu.values, **moved})

    monkeypatch.setattr(host.driver, "_board", with_traffic)
    host.open()
    host.run(11)
    clock.advance(60.0)
    host.open()
    host.run(5)
    accounts = host.node.view.attribution.tenants
    found = {account.tenant: account.balance.link_bytes.total() for account in accounts}
    assert found == {"anna": 100 + 40, "unallocated": 0, "unobserved": 610}
