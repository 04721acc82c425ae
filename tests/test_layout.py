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
from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Absent, Kind, Topology

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
        **facts,
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


def domain_names(topology: Topology) -> dict[int | None, str | None]:
    return {board.index: topology.domains.get(board.name) for board in topology.gpus}


@pytest.fixture
def bridged(tmp_path: Path) -> HostLayout:
    """Four GPUs on a bus without a tree, two bridged pairs."""
    found = HostLayout(tmp_path, "n")
    found.refresh()
    return found


def bridge(index: int, other: int, **facts: object) -> MergedGpu:
    links = tuple(NvLink(n, "gpu", bus_id(other), mb_per_second=14_062.0) for n in range(4))
    return gpu(index, links=links, **facts)


PAIRS = ((0, 1), (1, 0), (2, 3), (3, 2))


def test_a_gpu_that_comes_late_joins_the_domain_of_the_others_under_their_name(layout):
    assert domain_names(lay_out(layout, gpu(1))) == {1: "n.0000-51-00.0"}
    both = lay_out(layout, gpu(0), gpu(1))
    assert domain_names(both) == dict.fromkeys((0, 1), "n.0000-51-00.0")


def test_two_domains_that_were_once_taken_for_one_have_two_names_again(bridged):
    blind = [gpu(n, links=(NvLink(0, "unknown", mb_per_second=14_062.0),)) for n in range(4)]
    assert len(set(lay_out(bridged, *blind).domains.values())) == 1
    seen = domain_names(lay_out(bridged, *(bridge(*pair) for pair in PAIRS)))
    assert seen[0] == seen[1] != seen[2] == seen[3]


def test_a_domain_is_left_for_mig_and_joined_again_after_it(layout):
    whole = lay_out(layout, gpu(0), gpu(1))
    mig = lay_out(layout, gpu(0, values={"mig_enabled": 1.0}), gpu(1))
    assert bus_id(0) not in mig.domains
    back = lay_out(layout, gpu(0, values={"mig_enabled": 0.0}), gpu(1))
    assert back.domains == whole.domains


def test_mig_is_remembered_while_nobody_says_whether_it_is_on(layout):
    lay_out(layout, gpu(0, values={"mig_enabled": 1.0}), gpu(1))
    silent = lay_out(layout, gpu(0), gpu(1))
    assert silent.by_name[bus_id(0)].mig is True
    assert silent.path(bus_id(0), bus_id(1)).link_class == "PIX"


def test_a_replaced_board_does_not_inherit_a_domain(layout):
    lay_out(layout, gpu(0), gpu(1))
    new = dataclasses.replace(gpu(0, links=()), uuid="GPU-new")
    assert domain_names(lay_out(layout, new, gpu(1)))[0] is None


def test_a_rack_that_was_left_names_no_domain_and_one_that_is_joined_anew_does(layout):
    def domains_in(state: int, status: int) -> set[str]:
        fabric = dataclasses.replace(RACK, state=state, status=status)
        return set(lay_out(layout, gpu(0, fabric=fabric), gpu(1, fabric=fabric)).domains.values())

    rack = domains_in(3, 0)
    assert domains_in(2, 0) == rack
    assert domains_in(3, 23) == {"n.0000-50-00.0"}


def test_an_index_means_the_board_that_has_it_now(layout):
    topology = lay_out(layout, gpu(0), lost=(dataclasses.replace(gpu(1), index=0),))
    assert [(board.name, board.index) for board in topology.gpus] == [
        (bus_id(0), 0),
        (bus_id(1), None),
    ]


def test_what_hangs_on_a_lost_gpu_carries_nothing(bridged):
    place = GpuPlace(c2c_links=10, c2c_mb_per_second=450_000.0)
    lay_out(bridged, bridge(0, 1, place=place), bridge(1, 0))
    topology = lay_out(bridged, bridge(1, 0), lost=(bridge(0, 1, place=place),))
    edges = {edge.kind: edge for edge in topology.edges}
    assert (edges["c2c"].links, edges["c2c"].nominal, edges["c2c"].current) == (0, 450e9, UNKNOWN)
    assert (edges["nvlink"].links, edges["nvlink"].current) == (0, 0.0)
    assert topology.path("host", bus_id(0)).link_class is None


def test_c2c_and_hidden_links_should_carry_what_they_once_did(bridged):
    up = tuple(NvLink(n, "switch", mb_per_second=50_000.0) for n in range(2))
    whole, half = (
        gpu(0, links=links, place=GpuPlace(c2c_links=count, c2c_mb_per_second=45_000.0 * count))
        for links, count in ((up, 10), ((up[0], down(up[1])), 9))
    )
    lay_out(bridged, whole)
    edges = {edge.kind: edge for edge in lay_out(bridged, half).edges}
    assert (edges["nvlink"].nominal, edges["nvlink"].current) == (100e9, 50e9)
    assert (edges["c2c"].nominal, edges["c2c"].current) == (450e9, 405e9)


def test_gpus_of_a_mesh_whose_far_ends_nobody_names_are_not_joined_by_a_switch(bridged):
    nameless = (NvLink(0, "gpu", mb_per_second=25_000.0),)
    topology = lay_out(bridged, gpu(0, links=nameless), gpu(1, links=nameless))
    assert topology.path(bus_id(0), bus_id(1)).nvlinks is UNKNOWN
    assert topology.domains == {}
    assert [edge for edge in topology.edges if edge.kind == "nvlink"] == []


def test_a_far_end_that_is_refused_once_is_still_there(bridged):
    whole = lay_out(bridged, bridge(0, 1), bridge(1, 0))
    links = tuple(NvLink(n, "gpu", mb_per_second=14_062.0) for n in range(4))
    assert lay_out(bridged, gpu(0, links=links), bridge(1, 0)).paths == whole.paths


def test_a_link_that_does_not_say_is_as_it_was(layout):
    whole = lay_out(layout, gpu(0), gpu(1))
    links = gpu(0).nvlinks or ()
    unsure = dataclasses.replace(gpu(0), nvlinks=(NvLink(0, "unknown", active=None), links[1]))
    assert lay_out(layout, unsure, gpu(1)).edges == whole.edges


def test_a_link_that_carries_nothing_between_gpus_does_not_count(layout):
    links = tuple(NvLink(n, "switch", SWITCH, p2p=n > 0) for n in range(2))
    path = lay_out(layout, gpu(0, links=links), gpu(1)).path(bus_id(0), bus_id(1))
    assert path.link_class == "NV1"


def test_in_a_mesh_a_board_in_mig_mode_is_reached_over_pcie(bridged):
    mig = bridge(0, 1, values={"mig_enabled": 1.0})
    assert lay_out(bridged, mig, bridge(1, 0)).path(bus_id(0), bus_id(1)).nvlinks == 0


def test_one_refused_answer_of_a_pair_takes_nothing_away(layout):
    pair = GpuPair("GPU-0", "GPU-1", level=40, p2p={"read": "ok", "write": "ok"})
    told = layout.lay_out((gpu(0), gpu(1)), (), (pair,)).paths
    less = GpuPair("GPU-0", "GPU-1", level=None, p2p={"read": "ok"})
    assert layout.lay_out((gpu(0), gpu(1)), (), (less,)).paths == told


def test_one_file_of_the_bus_that_cannot_be_read_takes_nothing_away(layout, root):
    before = lay_out(layout, gpu(0), gpu(1)).by_name[bus_id(0)]
    (root / "bus/pci/devices" / bus_id(0) / "numa_node").unlink()
    layout.refresh()
    assert lay_out(layout, gpu(0), gpu(1)).by_name[bus_id(0)] == before


def test_the_last_adapter_that_is_taken_out_is_gone_and_a_bus_that_hides_keeps_its_own(
    layout, root
):
    plug(root, "pci0000:10/0000:60:00.0", **{"class": "0x020000"})
    layout.refresh()
    assert list(lay_out(layout, gpu(0)).of_kind(Kind.NIC))
    (root / "bus/pci/devices").rename(root / "bus/pci/hidden")
    layout.refresh()
    assert list(lay_out(layout, gpu(0)).of_kind(Kind.NIC))
    (root / "bus/pci/hidden").rename(root / "bus/pci/devices")
    (root / "bus/pci/devices/0000:60:00.0").unlink()
    layout.refresh()
    assert list(lay_out(layout, gpu(0)).of_kind(Kind.NIC)) == []


def test_a_node_without_cpus_is_no_near_node(layout, root):
    (root / "devices/system/node").mkdir(parents=True)
    (root / "devices/system/node/has_cpu").write_text("0\n")
    layout.refresh()
    assert lay_out(layout, gpu(0)).gpus[0].numa is UNKNOWN  # sysfs says 1


@pytest.mark.parametrize(
    ("state", "status", "summary", "healthy"),
    [(3, 0, 1, True), (3, 0, 2, False), (3, 23, 1, False), (2, 0, 1, UNKNOWN), (3, 0, 0, UNKNOWN)],
)
def test_a_fabric_is_healthy_only_once_it_is_joined(layout, state, status, summary, healthy):
    fabric = Fabric(RACK.cluster_uuid, 7, state=state, status=status, health_summary=summary)
    (board,) = lay_out(layout, gpu(0, fabric=fabric)).gpus
    assert not isinstance(board.fabric, Absent)
    assert board.fabric.healthy is healthy


def test_pairs_of_a_board_that_was_replaced_do_no_harm(layout):
    pair = GpuPair("GPU-0", "GPU-1", level=10)
    layout.lay_out((gpu(0), gpu(1)), (), (pair,))
    new = dataclasses.replace(gpu(0), uuid="GPU-new")
    assert lay_out(layout, new, gpu(1)).path(bus_id(0), bus_id(1)).pcie_class == "PIX"
