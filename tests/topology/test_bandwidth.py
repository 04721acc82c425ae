from dataclasses import replace

import pytest
from hypothesis import given

from seedance_obs.topology.bandwidth import Bandwidth, Basis, PathModel, pcie_bytes_per_second
from seedance_obs.topology.model import (
    UNKNOWN,
    Device,
    Kind,
    NvLinkKind,
    NvLinkPort,
    Path,
    PcieLevel,
    PcieLink,
    Topology,
)
from tests.topology.hosts_by_hand import GEN3, GEN4, GEN5, gpu, ports
from tests.topology.random_hosts import hosts


def between(one: Device, other: Device, *cpus: str, **path) -> Bandwidth | object:
    sockets = tuple(
        Device(f"cpu{place}", Kind.CPU, model=model) for place, model in enumerate(cpus)
    )
    model = PathModel(Topology((one, other, *sockets)))
    return model.bandwidth(Path(one.name, other.name, **path))


@pytest.mark.parametrize(
    ("generation", "width", "gigabytes"),
    [
        (1, 1, 0.25),
        (2, 8, 4.0),
        (3, 16, 15.754),
        (4, 16, 31.508),
        (5, 16, 63.015),
        (5, 8, 31.508),
        (6, 16, 121.0),
        (7, 16, 242.0),
    ],
)
def test_a_pcie_link_carries_what_its_encoding_leaves(generation, width, gigabytes):
    assert pcie_bytes_per_second(generation, width) == pytest.approx(gigabytes * 1e9, rel=1e-4)


@pytest.mark.parametrize(("generation", "width"), [(0, 16), (8, 16), (-1, 16), (4, 0), (4, -1)])
def test_a_pcie_link_that_does_not_exist_carries_nothing_known(generation, width):
    assert pcie_bytes_per_second(generation, width) is UNKNOWN


def test_nvlinks_carry_the_slower_ends_rate():
    found = between(
        gpu(0, nvlinks=ports(12, 25_000)), gpu(1, nvlinks=ports(12, 20_000)), nvlinks=12
    )
    assert found == Bandwidth(240e9, Basis.NVLINK)


def test_where_no_port_states_a_rate_the_product_does():
    b200 = [gpu(place, model="NVIDIA B200") for place in (0, 1)]
    assert between(*b200, nvlinks=18) == Bandwidth(900e9, Basis.NVLINK)
    unheard_of = [gpu(place, model="NVIDIA Z9") for place in (0, 1)]
    assert between(*unheard_of, nvlinks=18) == Bandwidth(360e9, Basis.ASSUMED)


def test_a_dead_port_says_nothing_of_the_rate():
    dead = NvLinkPort(4, active=False, mb_per_second=1)
    one = gpu(0, nvlinks=(*ports(4, 25_000), dead))
    assert between(one, gpu(1), nvlinks=4) == Bandwidth(100e9, Basis.NVLINK)


def test_nvlinks_without_a_rate_are_assumed():
    assert between(gpu(0), gpu(1), nvlinks=12) == Bandwidth(240e9, Basis.ASSUMED)


def test_a_rate_may_come_from_the_caller():
    model = PathModel(Topology((gpu(0), gpu(1))), lambda _gpu: 50e9)
    assert model.bandwidth(Path("GPU0", "GPU1", nvlinks=18)) == Bandwidth(900e9, Basis.NVLINK)


def test_chip_to_chip_is_as_specified():
    found = between(gpu(0), gpu(1), nvlinks=1, nvlink_kind=NvLinkKind.C2C)
    assert found == Bandwidth(450e9, Basis.ASSUMED)


def test_the_slower_end_of_a_pcie_path_counts():
    found = between(gpu(0, pcie=GEN5), gpu(1, pcie=GEN4), pcie=PcieLevel.PIX, nvlinks=0)
    assert found.basis is Basis.PCIE
    assert found.bytes_per_second == pytest.approx(31.508e9, rel=1e-4)


def test_a_sleeping_link_counts_at_its_best():
    asleep = PcieLink(generation=1, width=16, generation_max=4, width_max=16)
    found = between(gpu(0, pcie=asleep), gpu(1, pcie=asleep), pcie=PcieLevel.PIX)
    assert found.bytes_per_second == pytest.approx(31.508e9, rel=1e-4)


def test_a_width_nobody_told_is_sixteen_lanes():
    known = PcieLink(generation=4)
    found = between(gpu(0, pcie=known), gpu(1, pcie=known), pcie=PcieLevel.PXB)
    assert found.bytes_per_second == pytest.approx(31.508e9, rel=1e-4)


@pytest.mark.parametrize(
    ("level", "gigabytes"),
    [
        (PcieLevel.INTERNAL, 12),
        (PcieLevel.PIX, 12),
        (PcieLevel.PXB, 12),
        (PcieLevel.PHB, 10),
        (PcieLevel.NODE, 10),
        (PcieLevel.SYS, 6),
    ],
)
def test_of_a_level_alone_nccls_constants_are_assumed(level, gigabytes):
    found = between(gpu(0, pcie=PcieLink()), gpu(1, pcie=PcieLink()), pcie=level, nvlinks=0)
    assert found == Bandwidth(pytest.approx(gigabytes * 1e9), Basis.ASSUMED)


@pytest.mark.parametrize(
    ("cpu", "link", "across", "bridge"),
    [
        ("AMD EPYC 9654 96-Core Processor", GEN5, 16, 63.015),
        ("Intel(R) Xeon(R) Platinum 8480C", GEN5, 22, 52.513),
        ("Intel(R) Xeon(R) CPU E5-2698 v4", GEN3, 6, 13.128),
        ("Intel(R) Xeon(R) Platinum 8358", GEN4, 10, 26.256),
        ("POWER9, altivec supported", GEN4, 31.508, 31.508),
        ("", GEN5, 16, 52.513),
        ("", GEN4, 10, 26.256),
    ],
)
def test_sockets_are_joined_as_their_cpu_joins_them(cpu, link, across, bridge):
    ends = gpu(0, pcie=link), gpu(1, pcie=link)
    far = between(*ends, cpu, pcie=PcieLevel.SYS)
    near = between(*ends, cpu, pcie=PcieLevel.PHB)
    assert far.bytes_per_second == pytest.approx(across * 1e9, rel=1e-4)
    assert near.bytes_per_second == pytest.approx(bridge * 1e9, rel=1e-4)


def test_nothing_known_carries_nothing_known():
    assert between(gpu(0), gpu(1)) is UNKNOWN
    assert between(gpu(0), gpu(1), nvlinks=0) is UNKNOWN


def test_an_end_that_is_no_device_here_is_assumed():
    found = PathModel(Topology()).bandwidth(Path("a", "b", PcieLevel.PIX))
    assert found == Bandwidth(12e9, Basis.ASSUMED)


@given(hosts(least=2))
def test_bandwidth_is_the_same_either_way(topology):
    model = PathModel(topology)
    for path in topology.paths:
        turned = replace(path, source=path.target, target=path.source)
        assert model.bandwidth(turned) == model.bandwidth(path)
