"""The layout of a host whose driver and bus say more and less over time."""

import dataclasses
import os
from pathlib import Path

import pytest

from seedance_obs.layout import HostLayout
from seedance_obs.merge import MergedGpu, merge
from seedance_obs.sources.readings import (
    Fabric,
    GpuPair,
    GpuPlace,
    GpuReadings,
    NvLink,
    SourceSnapshot,
)
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Kind, Topology

SWITCH = "0000:05:00.0"
RACK = Fabric("0f0e0d0c0b0a09080706050403020100", clique_id=7, state=3, status=0)


def plug(root: Path, place: str, **files: str) -> None:
    device = root / "devices" / place
    device.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (device / name).write_text(f"{text}\n")
    bus = root / "bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    link = bus / device.name
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(device, bus))


def bus_id(index: int) -> str:
    return f"0000:5{index}:00.0"


def gpu(index: int, *, links: tuple[NvLink, ...] | None = None, **facts: object) -> MergedGpu:
    if links is None:
        links = tuple(NvLink(n, "switch", SWITCH, mb_per_second=25_000.0) for n in range(2))
    readings = GpuReadings(
        uuid=f"GPU-{index}",
        index=index,
        pci_bus_id=bus_id(index),
        nvlinks=links,
        **facts,  # type: ignore[arg-type]  # given by name
    )
    return merge([SourceSnapshot("nvml", 0.0, gpus=(readings,))], {"mig_enabled": ("nvml",)})[0]


def down(link: NvLink) -> NvLink:
    """What a driver tells of a link that is not up."""
    return NvLink(link.link, "unknown", active=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for index in range(2):
        plug(
            tmp_path,
            f"pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:0{index}.0/{bus_id(index)}",
            vendor="0x10de",
            numa_node="1",
            **{"class": "0x030200"},
        )
    return tmp_path


@pytest.fixture
def layout(root: Path) -> HostLayout:
    found = HostLayout(root, "n")
    found.refresh()
    return found


def lay_out(layout: HostLayout, *gpus: MergedGpu, lost: tuple[MergedGpu, ...] = ()) -> Topology:
    return layout.lay_out(gpus, lost, ())


def test_a_link_that_went_down_keeps_its_far_end_and_lowers_what_the_edge_carries(layout):
    whole = lay_out(layout, gpu(0), gpu(1))
    assert whole.path(bus_id(0), bus_id(1)).link_class == "NV2"
    up = gpu(0)
    links = up.nvlinks or ()
    broken = dataclasses.replace(up, nvlinks=(down(links[0]), links[1]))
    less = lay_out(layout, broken, gpu(1))
    assert less.path(bus_id(0), bus_id(1)).link_class == "NV1"
    (edge,) = [each for each in less.edges if (each.source, each.target) == (bus_id(0), SWITCH)]
    assert (edge.links, edge.nominal, edge.current) == (1, 50e9, 25e9)
    assert less.domains == whole.domains


def test_a_lost_gpu_keeps_its_place_and_its_domains_name_but_no_path(layout):
    whole = lay_out(layout, gpu(0), gpu(1))
    less = lay_out(layout, gpu(1), lost=(gpu(0),))
    assert less.domains == whole.domains
    assert set(less.domains.values()) == {"n.0000-50-00.0"}
    assert not less.by_name[bus_id(0)].present
    assert less.by_name[bus_id(0)].pcie_switch == "0000:11:00.0"
    assert all(bus_id(0) not in (path.source, path.target) for path in less.paths)


def test_what_the_bus_told_stays_when_a_device_has_left_it(layout, root):
    before = lay_out(layout, gpu(0), gpu(1)).by_name[bus_id(0)]
    (root / "bus/pci/devices" / bus_id(0)).unlink()
    layout.refresh()
    assert lay_out(layout, gpu(0), gpu(1)).by_name[bus_id(0)] == before


def test_the_drivers_level_and_p2p_status_go_before_what_follows_from_the_bus(layout):
    plain = lay_out(layout, gpu(0), gpu(1)).path(bus_id(0), bus_id(1))
    assert (plain.pcie_class, plain.p2p) == ("PIX", {})
    pair = GpuPair("GPU-1", "GPU-0", level=40, p2p={"read": "ok", "write": "gpu_not_supported"})
    told = layout.lay_out((gpu(0), gpu(1)), (), (pair,)).path(bus_id(0), bus_id(1))
    assert (told.pcie_class, told.p2p) == ("NODE", pair.p2p)
    again = lay_out(layout, gpu(0), gpu(1)).path(bus_id(0), bus_id(1))
    assert again == told  # a driver that is away takes nothing with it


def test_a_rack_names_the_domain_once_the_fabric_is_joined(layout):
    waiting = dataclasses.replace(RACK, state=2)
    host = lay_out(layout, gpu(0, fabric=waiting), gpu(1, fabric=waiting))
    assert set(host.domains.values()) == {"n.0000-50-00.0"}
    rack = lay_out(layout, gpu(0, fabric=RACK), gpu(1, fabric=RACK))
    assert set(rack.domains.values()) == {"0f0e0d0c-0b0a-0908-0706-050403020100.7"}


def test_numa_nodes_come_from_the_driver_and_only_those_with_cpus_count(layout, root):
    place = GpuPlace(numa=frozenset((0, 5, 6)), memory_node=5)
    board = lay_out(layout, gpu(0, place=place)).gpus[0]
    assert board.numa == {0, 5, 6}  # a kernel that does not say which nodes have CPUs
    nodes = root / "devices/system/node"
    nodes.mkdir(parents=True)
    (nodes / "has_cpu").write_text("0-3\n")
    layout.refresh()
    board = lay_out(layout, gpu(0, place=place), gpu(1)).gpus[0]
    assert (board.numa, board.memory_node) == ({0}, 5)
    memory_only = GpuPlace(numa=frozenset((5,)))
    assert lay_out(layout, gpu(0, place=memory_only)).gpus[0].numa == {1}  # sysfs knows better


def test_a_board_in_mig_mode_has_no_links_to_use_though_it_had_before(layout):
    lay_out(layout, gpu(0), gpu(1))
    board = gpu(0, values={"mig_enabled": 1.0})
    assert lay_out(layout, board, gpu(1)).path(bus_id(0), bus_id(1)).link_class == "PIX"
    assert lay_out(layout, board, gpu(1)).gpus[0].nvlinks is UNSUPPORTED


def test_nothing_is_laid_out_anew_while_nothing_changes(layout):
    first = lay_out(layout, gpu(0), gpu(1))
    assert lay_out(layout, gpu(0), gpu(1)) is first
    layout.refresh()
    assert lay_out(layout, gpu(0), gpu(1)) is first
    assert lay_out(layout, gpu(0)) is not first


def test_two_levels_of_one_broadcom_switch_are_one(tmp_path):
    broadcom = {"vendor": "0x1000", "device": "0xc030", "subsystem_vendor": "0x1000"}
    top = "pci0000:10/0000:10:01.0/0000:11:00.0"
    plug(tmp_path, top, **broadcom, subsystem_device="0x0000", **{"class": "0x060400"})
    for index in range(2):
        inner = f"{top}/0000:12:0{index}.0/0000:2{index}:00.0"
        plug(tmp_path, inner, **broadcom, subsystem_device="0x1000", **{"class": "0x060400"})
        plug(tmp_path, f"{inner}/0000:3{index}:00.0/{bus_id(index)}", numa_node="0")
    layout = HostLayout(tmp_path, "n")
    layout.refresh()
    topology = lay_out(layout, gpu(0, links=()), gpu(1, links=()))
    assert topology.path(bus_id(0), bus_id(1)).link_class == "PIX"
    assert [each.name for each in topology.of_kind(Kind.PCIE_SWITCH)] == ["0000:11:00.0"]


def test_a_gpu_whose_place_nobody_tells_hangs_on_the_host(tmp_path):
    layout = HostLayout(tmp_path, "n")
    layout.refresh()
    alone = dataclasses.replace(gpu(0, links=()), pci_bus_id=None)
    topology = lay_out(layout, alone)
    assert [(edge.source, edge.target) for edge in topology.edges] == [("host", "GPU-0")]
    assert topology.gpus[0].pcie_root is UNKNOWN


def test_a_gpu_that_only_a_link_leads_to_is_not_the_hosts_to_use(layout):
    beyond = tuple(NvLink(n, "gpu", "0000:99:00.0", mb_per_second=25_000.0) for n in range(2))
    topology = lay_out(layout, gpu(0, links=beyond), gpu(1, links=beyond))
    assert [board.name for board in topology.gpus] == [bus_id(0), bus_id(1)]
    assert topology.path(bus_id(0), bus_id(1)).nvlinks == 0
    assert all("0000:99:00.0" not in (path.source, path.target) for path in topology.paths)
    ends = {(edge.source, edge.target) for edge in topology.edges if edge.kind == "nvlink"}
    assert ends == {(bus_id(0), "0000:99:00.0"), (bus_id(1), "0000:99:00.0")}
    assert not topology.by_name["0000:99:00.0"].present
