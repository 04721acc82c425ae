from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given

from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Kind,
    NvLinkKind,
    NvLinkPort,
    PcieLevel,
    Topology,
)
from seedance_obs.topology.placement.allocator_score import Allocator, pair_score, set_score
from tests.topology.hosts_by_hand import dgx1, gpu, host, nvswitch
from tests.topology.random_hosts import hosts

GGA, HAMI = Allocator.GO_GPUALLOCATOR, Allocator.HAMI


def two(level=PcieLevel.PIX, links=0, kind=NvLinkKind.DIRECT) -> Topology:
    return host([gpu(0), gpu(1)], lambda _i, _j: level, lambda _i, _j: links, link_kind=kind)


@pytest.mark.parametrize(
    ("level", "points"),
    [
        (PcieLevel.SYS, 10),
        (PcieLevel.NODE, 20),
        (PcieLevel.PHB, 30),
        (PcieLevel.PXB, 40),
        (PcieLevel.PIX, 50),
        (PcieLevel.INTERNAL, 60),
    ],
)
@pytest.mark.parametrize("allocator", Allocator)
def test_a_pcie_level_is_worth_its_points(level, points, allocator):
    assert pair_score(two(level), "GPU0", "GPU1", allocator) == points
    with_links = two(level, 12)
    assert pair_score(with_links, "GPU0", "GPU1", allocator) == points + 1200


@pytest.mark.parametrize("kind", [NvLinkKind.SWITCH, NvLinkKind.HIDDEN])
def test_behind_switches_only_hami_counts_links(kind):
    topology = two(PcieLevel.SYS, 18, kind)
    assert pair_score(topology, "GPU0", "GPU1", GGA) == 10
    assert pair_score(topology, "GPU0", "GPU1", HAMI) == 1810


def test_beyond_eighteen_links_names_run_out():
    topology = two(PcieLevel.SYS, 36)
    assert pair_score(topology, "GPU0", "GPU1", GGA) == 1810
    assert pair_score(topology, "GPU0", "GPU1", HAMI) == 10


def test_what_is_not_known_is_not_scored():
    assert pair_score(two(UNKNOWN, 12), "GPU0", "GPU1", GGA) is UNKNOWN
    assert pair_score(two(links=UNKNOWN), "GPU0", "GPU1", HAMI) is UNKNOWN
    assert pair_score(two(links=12, kind=UNKNOWN), "GPU0", "GPU1", GGA) is UNKNOWN
    assert pair_score(two(links=12, kind=UNKNOWN), "GPU0", "GPU1", HAMI) == 1250
    assert pair_score(two(links=UNSUPPORTED), "GPU0", "GPU1", GGA) == 50
    assert set_score(two(UNKNOWN), ["GPU0", "GPU1"], HAMI) is UNKNOWN


def test_hami_takes_the_smaller_number_of_switch_links():
    def linked(index: int, active: int) -> object:
        ports = tuple(
            NvLinkPort(port, active=port < active, remote_kind=Kind.NVSWITCH) for port in range(18)
        )
        return gpu(index, nvlinks=ports)

    topology = host(
        [linked(0, 18), linked(1, 15), linked(2, 0)],
        lambda _i, _j: PcieLevel.NODE,
        lambda _i, _j: UNKNOWN,
    )
    assert pair_score(topology, "GPU0", "GPU1", HAMI) == 1520
    assert pair_score(topology, "GPU0", "GPU2", HAMI) is UNKNOWN


def test_a_dgx1_by_hand():
    """NV2 0-3 1-2 2-3, NV1 0-1 0-2 1-3 are 900; PIX 0-1 2-3 and four PHB are 220."""
    mesh = dgx1()
    assert set_score(mesh, ["GPU0", "GPU1", "GPU2", "GPU3"], GGA) == 1120
    assert set_score(mesh, ["GPU4", "GPU5", "GPU6", "GPU7"], HAMI) == 1120
    assert set_score(mesh, ["GPU0", "GPU4"], GGA) == 210
    assert set_score(mesh, ["GPU0"], GGA) == 0
    names = [device.name for device in mesh.gpus]
    best = max(set_score(mesh, gpus, GGA) for gpus in combinations(names, 4))
    assert best == 1120


def test_an_nvswitch_box_by_hand():
    """Four on a socket: six pairs of NODE; HAMi adds 18 links each."""
    four = ["GPU0", "GPU1", "GPU2", "GPU3"]
    assert set_score(nvswitch(), four, GGA) == 6 * 20
    assert set_score(nvswitch(), four, HAMI) == 6 * 1820


@given(hosts(least=2))
def test_a_score_does_not_depend_on_order(topology):
    names = [device.name for device in topology.gpus]
    mixed = replace(topology, devices=topology.devices[::-1], paths=topology.paths[::-1])
    for allocator in Allocator:
        assert set_score(topology, names, allocator) == set_score(mixed, names[::-1], allocator)
