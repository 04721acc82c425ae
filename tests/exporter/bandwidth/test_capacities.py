"""What each channel can carry: by what a link is at its best, and by the NVLinks that are up."""

import pytest

from seedance_obs.exporter.bandwidth.capacities import capacities
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.flow import Channel
from seedance_obs.topology.model import UNKNOWN, Device, Kind, NvLinkPort, PcieLink
from tests.exporter.books.boards import board, reading

GEN5 = 32e9 * 128 / 130 * 16 / 8
NIC = Device("0000:1b:00.0", Kind.NIC)


def located(**device) -> LocatedGpu:
    watts = {"power_limit_watts": reading(700.0)}
    return LocatedGpu(board("G0", readings=watts), Device("0000:18:00.0", Kind.GPU, **device), ())


def of(gpu: LocatedGpu) -> dict[Channel, float]:
    return dict(capacities([gpu], (), lambda _address: None))


def test_a_link_that_sleeps_counts_at_its_best():
    asleep = PcieLink(generation=1, width=16, generation_max=5, width_max=16)
    found = of(located(pcie=asleep))
    assert found[Channel("G0", "pcie", "receive")] == pytest.approx(GEN5)
    assert found[Channel("G0", "pcie", "transmit")] == pytest.approx(GEN5)


def test_where_the_best_is_not_known_what_is_counts():
    now = PcieLink(generation=5, width=8)
    assert of(located(pcie=now))[Channel("G0", "pcie", "receive")] == pytest.approx(GEN5 / 2)
    assert Channel("G0", "pcie", "receive") not in of(located(pcie=PcieLink(generation=5)))


def test_nvlinks_count_while_they_are_up():
    ports = [NvLinkPort(n, active=n < 16, mb_per_second=25_000.0) for n in range(18)]
    found = of(located(nvlinks=tuple(ports)))
    assert found[Channel("G0", "nvlink", "transmit")] == pytest.approx(16 * 25e9)
    assert Channel("G0", "nvlink", "transmit") not in of(located(nvlinks=UNKNOWN))
    down = tuple(NvLinkPort(n, active=False, mb_per_second=25_000.0) for n in range(18))
    assert Channel("G0", "nvlink", "transmit") not in of(located(nvlinks=down))


def test_memory_is_full_at_one_and_power_at_its_limit():
    found = of(located())
    assert (found[Channel("G0", "hbm")], found[Channel("G0", "power")]) == (1.0, 700.0)


def test_an_adapter_carries_what_its_loop_says():
    told = {NIC.name: 50e9}
    assert dict(capacities([], [NIC], told.get)) == {
        Channel(NIC.name, "network", "transmit"): 50e9,
        Channel(NIC.name, "network", "receive"): 50e9,
    }
    assert dict(capacities([], [NIC], lambda _address: None)) == {}
