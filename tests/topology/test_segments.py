from dataclasses import replace

import pytest
from hypothesis import given, settings

from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Device,
    Edge,
    Kind,
    NvLinkPort,
    PcieLink,
    Topology,
)
from seedance_obs.topology.segments import Segment, segments
from seedance_obs.topology.wiring import wire
from tests.topology.hand_made import hgx
from tests.topology.made_up import topologies

GEN4 = 16e9 * 128 / 130 * 16 / 8
GEN5 = 2 * GEN4
X16_GEN4 = PcieLink(4, 16, 4, 16)


def gpu(number: int, *ports: str, root: str = "pci0000:15", **more) -> Device:
    return Device(
        f"0000:{0x40 + number:02x}:00.0",
        Kind.GPU,
        index=number,
        uuid=f"GPU-{number}",
        pcie_root=root,
        ports=ports,
        pcie=more.pop("pcie", X16_GEN4),
        **more,
    )


def nic(address: str, *ports: str, root: str = "pci0000:15") -> Device:
    return Device(address, Kind.NIC, pcie_root=root, ports=ports, pcie=X16_GEN4)


def below(*names: str) -> tuple[str, ...]:
    """The ports above a device that hangs on these switches."""
    return ("root-port", *(port for name in names for port in (name, f"{name}-down")))


def pcie(*ends: Device, **links: PcieLink) -> dict[str, Segment]:
    devices, edges = wire(ends, links)
    found = segments(Topology(devices, (), edges))
    return {each.name: each for each in found if each.kind.startswith("pcie")}


def test_gpus_below_a_switch_share_its_uplink():
    found = pcie(gpu(0, *below("sw")), gpu(1, *below("sw")), sw=PcieLink(4, 16, 4, 16))
    assert found == {
        "sw": Segment("pcie_switch", "sw", ("GPU-0", "GPU-1"), (), pytest.approx(GEN4))
    }


def test_an_uplink_counts_at_its_best_speed_and_the_width_that_it_has():
    found = pcie(gpu(0, *below("sw")), sw=PcieLink(1, 8, 4, 16))
    assert found["sw"].capacity == pytest.approx(GEN4 / 2)


def test_nested_switches_have_an_uplink_each():
    ends = gpu(0, *below("up", "left")), gpu(1, *below("up", "left")), gpu(2, *below("up", "right"))
    found = pcie(*ends, up=X16_GEN4, left=X16_GEN4, right=X16_GEN4)
    assert {name: each.gpus for name, each in found.items()} == {
        "up": ("GPU-0", "GPU-1", "GPU-2"),
        "left": ("GPU-0", "GPU-1"),
        "right": ("GPU-2",),
    }


def test_a_root_complex_carries_what_its_links_do_together():
    ends = gpu(0, *below("one")), gpu(1, *below("two")), gpu(2, pcie=PcieLink(1, 16, 5, 16))
    found = pcie(*ends, one=X16_GEN4, two=PcieLink(4, 8, 4, 8))
    assert found["pci0000:15"].capacity == pytest.approx(GEN4 + GEN4 / 2 + GEN5)
    assert found["pci0000:15"].gpus == ("GPU-0", "GPU-1", "GPU-2")


def test_a_root_complex_with_a_link_that_nobody_knows_has_no_capacity():
    found = pcie(gpu(0, *below("one")), gpu(1, *below("two")), one=X16_GEN4)
    assert found["pci0000:15"].capacity is UNKNOWN
    assert found["one"].capacity == pytest.approx(GEN4)


def test_links_of_devices_whose_traffic_is_not_known_add_nothing_to_a_root_complex():
    disk = Device("nvme", Kind.NVME, pcie_root="pci0000:15", ports=(), pcie=X16_GEN4)
    found = pcie(gpu(0), gpu(1), disk)
    assert found["pci0000:15"].capacity == pytest.approx(2 * GEN4)


def test_the_functions_of_one_adapter_share_a_link():
    ports = [nic("0000:1b:00.0"), nic("0000:1b:00.1")]
    found = pcie(gpu(0), *ports)
    assert found["pci0000:15"].capacity == pytest.approx(2 * GEN4)
    assert found["pci0000:15"].nics == ("0000:1b:00.0", "0000:1b:00.1")


def test_of_segments_in_a_row_only_the_narrowest_is_told():
    ends = gpu(0, *below("up", "low")), nic("nic", *below("up", "low"))
    assert list(pcie(*ends, up=X16_GEN4, low=X16_GEN4)) == ["low"]
    assert list(pcie(*ends, up=PcieLink(4, 8, 4, 8), low=X16_GEN4)) == ["up"]
    assert list(pcie(*ends, up=X16_GEN4)) == ["up"]


def test_the_link_of_a_gpu_alone_counts_since_tenants_may_share_the_gpu():
    found = pcie(gpu(0), gpu(1, root="pci0000:37"))
    assert {name: each.gpus for name, each in found.items()} == {
        "pci0000:15": ("GPU-0",),
        "pci0000:37": ("GPU-1",),
    }


def test_nothing_is_shared_where_no_gpu_is():
    found = pcie(gpu(0), nic("a", *below("sw"), root="pci0000:85"), sw=X16_GEN4)
    assert list(found) == ["pci0000:15"]


def test_a_lost_gpu_is_no_member_of_anything():
    link = NvLinkPort(0, True, 25_000.0, "0000:41:00.0", Kind.GPU)
    model = "NVIDIA A100-SXM4-40GB"
    ends = [gpu(n, *below("sw"), model=model, nvlinks=(link,)) for n in range(3)]
    ends[0] = replace(ends[0], present=False)
    devices, edges = wire(ends, {"sw": X16_GEN4})
    domains = {end.name: "island" for end in ends}
    found = segments(Topology(devices, (), edges, domains))
    assert {each.kind: each.gpus for each in found if each.kind != "hbm"} == {
        "pcie_switch": ("GPU-1", "GPU-2"),
        "nvlink_domain": ("GPU-1", "GPU-2"),
    }
    assert [each.name for each in found if each.kind == "hbm"] == ["GPU-1", "GPU-2"]


def test_a_domain_carries_what_the_links_of_its_gpus_do():
    (domain,) = (each for each in segments(hgx(lost_links=2)) if each.kind == "nvlink_domain")
    assert domain.name == "gpu-7.0000-1a-00.0"
    assert len(domain.gpus) == 8
    assert domain.capacity == pytest.approx((8 * 18 - 2) * 26_562e6)


def test_a_gpu_of_a_rack_alone_on_its_host_shares_no_domain_here():
    assert "nvlink_domain" not in {each.kind for each in segments(hgx(gpus=1))}


def test_a_domain_with_links_that_nobody_could_read_has_no_capacity():
    topology = hgx(gpus=2)
    devices = tuple(
        replace(each, nvlinks=UNKNOWN) if each.index == 1 else each for each in topology.devices
    )
    (domain,) = (
        each
        for each in segments(replace(topology, devices=devices))
        if each.kind == "nvlink_domain"
    )
    assert domain.capacity is UNKNOWN


def memory(model: str, **more) -> list[Segment]:
    board = gpu(0, model=model, **more)
    return [each for each in segments(Topology((board,))) if each.kind == "hbm"]


def test_memory_is_shared_unless_mig_cuts_it_up():
    h100 = Segment("hbm", "GPU-0", ("GPU-0",), (), 3350e9)
    assert memory("NVIDIA H100 80GB HBM3") == [h100]
    assert memory("NVIDIA H100 80GB HBM3", mig=False) == [h100]
    assert memory("NVIDIA H100 80GB HBM3", mig=True, nvlinks=UNSUPPORTED) == []
    assert memory("a board of next year")[0].capacity is UNKNOWN


def test_adapters_are_told_as_the_caller_knows_them():
    found = segments(Topology(), nic_capacities={"0000:1b:00.0": 50e9})
    assert found == (Segment("nic", "0000:1b:00.0", (), ("0000:1b:00.0",), 50e9),)


def test_edges_in_a_circle_end():
    edges = (Edge("a", "b", "pcie"), Edge("b", "a", "pcie"), Edge("b", "0000:40:00.0", "pcie"))
    devices = (Device("a", Kind.PCIE_SWITCH), Device("b", Kind.PCIE_SWITCH), gpu(0))
    assert segments(Topology(devices, (), edges))


@settings(max_examples=25)
@given(topologies())
def test_no_two_segments_have_one_name_however_odd_the_host(topology):
    devices = tuple(replace(each, uuid=f"GPU-{each.name}") for each in topology.devices)
    names = [(each.kind, each.name) for each in segments(replace(topology, devices=devices))]
    assert len(names) == len(set(names))
