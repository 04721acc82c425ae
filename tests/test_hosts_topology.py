"""Right answers for the machines: what a person who knows the hardware reads off each of them."""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import pytest

from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Kind, Topology
from tests.machine import HOSTS, replayed

RACK = "00000000-0000-0000-0000-000000000001.32766"
# The hybrid cube mesh of a DGX-1, as NVIDIA's own matrix of that machine shows it.
CUBE_MESH = {
    **dict.fromkeys(("01", "02", "13", "26", "37", "45", "46", "57"), "NV1"),
    **dict.fromkeys(("03", "04", "12", "15", "23", "47", "56", "67"), "NV2"),
}


def pairs(size: int, link_class: str) -> Mapping[str, str]:
    return {f"{one}{other}": link_class for one, other in combinations(range(size), 2)}


@pytest.fixture
def laid_out(clock, tmp_path):
    def lay_out(name: str) -> Topology:
        host = replayed(HOSTS / name, clock, tmp_path)
        host.pass_once()
        host.node.close()
        return host.node.view.topology

    return lay_out


# Machine: NVLink pairs by index, how they run, NUMA nodes by index, links from GPU 1 to each peer.
MACHINES = {
    "8x-v100-cube-mesh": (CUBE_MESH, {"direct"}, [0] * 4 + [1] * 4, [1, 1, 2, 2]),
    "8x-a100-nvswitch": (pairs(8, "NV12"), {"switch"}, [3, 3, 1, 1, 7, 7, 5, 5], [2] * 6),
    "8x-h100-nvswitch": (pairs(8, "NV18"), {"switch"}, [0] * 4 + [1] * 4, [4, 4, 5, 5]),
    "8x-h100-vm": (pairs(8, "NV18"), {"hidden"}, [0] * 8, [18]),
    "4x-gb200": (pairs(4, "NV18"), {"hidden"}, [0, 0, 1, 1], [18]),
    "4x-gb200-zero-uuid": (pairs(4, "NV18"), {"hidden"}, [0, 0, 1, 1], [18]),
    "4x-a100-mesh": (pairs(4, "NV4"), {"direct"}, [0] * 4, [4] * 3),
    "4x-gh200": (pairs(4, "NV6"), {"direct"}, [0, 1, 2, 3], [6] * 3),
    "2x-rtx3090-bridge": ({"01": "NV4"}, {"direct"}, [0, 0], [4]),
}


@pytest.mark.parametrize("name", MACHINES)
def test_links_and_numa_nodes_are_those_of_the_machine(laid_out, name):
    topology = laid_out(name)
    wanted, kinds, numa, links = MACHINES[name]
    paths = {
        f"{one.index}{other.index}": topology.path(one.name, other.name)
        for one, other in combinations(topology.gpus, 2)
    }
    linked = {pair: path for pair, path in paths.items() if path.nvlinks != 0}
    assert {pair: path.link_class for pair, path in linked.items()} == wanted
    assert {path.nvlink_kind for path in linked.values()} == kinds
    assert {path.p2p["read"] for path in linked.values()} == {"ok"}
    assert [gpu.numa for gpu in topology.gpus] == [frozenset((node,)) for node in numa]
    ends = [
        edge.links
        for edge in topology.edges
        if edge.kind == "nvlink" and topology.gpus[1].name in (edge.source, edge.target)
    ]
    assert sorted(ends) == links


@pytest.mark.parametrize("name", MACHINES)
def test_all_gpus_that_are_joined_are_one_domain(laid_out, name):
    topology = laid_out(name)
    assert topology.domains.keys() == {gpu.name for gpu in topology.gpus}
    host = f"{name}.{topology.gpus[0].name.replace(':', '-')}"
    assert set(topology.domains.values()) == {RACK if name == "4x-gb200" else host}


def test_a_gpu_in_mig_mode_has_no_nvlinks_to_use(laid_out):
    topology = laid_out("8x-h100-nvswitch-mig")
    first, *others = topology.gpus
    assert first.nvlinks is UNSUPPORTED
    assert first.name not in topology.domains
    assert {topology.path(first.name, gpu.name).nvlinks for gpu in others} == {0}
    classes = {topology.path(a.name, b.name).link_class for a, b in combinations(others, 2)}
    assert classes == {"NV18"}
    assert len(set(topology.domains.values())) == 1


def test_a_virtual_machine_has_a_flat_bus_and_knows_no_node_of_its_adapter(laid_out):
    topology = laid_out("8x-h100-vm")
    assert {path.pcie_class for path in topology.paths} == {"PHB"}
    (nic,) = topology.of_kind(Kind.NIC)
    assert (nic.numa, nic.pcie_switch, nic.label) == (UNKNOWN, UNSUPPORTED, "mlx5_0")
    assert [device.kind for device in topology.devices].count(Kind.NVLINK_FABRIC) == 1


def test_grace_has_gpu_memory_in_nodes_of_its_own_and_its_cpu_on_the_same_chip(laid_out):
    topology = laid_out("4x-gh200")
    assert [gpu.memory_node for gpu in topology.gpus] == [4, 12, 20, 28]
    c2c = [edge for edge in topology.edges if edge.kind == "c2c"]
    assert {edge.target for edge in c2c} == {gpu.name for gpu in topology.gpus}
    assert {topology.path("host", gpu.name).link_class for gpu in topology.gpus} == {"C2C"}


def adapters(topology: Topology) -> list[Counter[str | None]]:
    """The classes of each GPU's ways to the adapters."""
    nics = list(topology.of_kind(Kind.NIC))
    return [
        Counter(topology.path(gpu.name, nic.name).link_class for nic in nics)
        for gpu in topology.gpus
    ]


def test_each_gpu_of_a_dgx_a100_has_two_adapters_on_its_own_switch(laid_out):
    near, with_port = {"PIX": 2, "SYS": 8}, {"PIX": 2, "NODE": 1, "SYS": 7}
    assert adapters(laid_out("8x-a100-nvswitch")) == [
        *[near] * 2,
        *[with_port] * 2,
        *[near] * 2,
        *[with_port] * 2,
    ]


def test_adapters_behind_two_switches_are_further_than_on_one(laid_out):
    assert adapters(laid_out("4x-a100-mesh")) == [{"PXB": 1, "NODE": 3}] * 4


def test_disks_have_distances_too(laid_out):
    topology = laid_out("8x-a100-nvswitch")
    disks = list(topology.of_kind(Kind.NVME))
    assert [disk.label for disk in disks] == ["nvme0", "nvme1", "nvme2", "nvme3"]
    classes = [topology.path(topology.gpus[0].name, disk.name).link_class for disk in disks]
    assert classes == ["NODE", "NODE", "SYS", "SYS"]


def test_boards_without_nvlink_have_none_and_that_is_known(laid_out):
    topology = laid_out("4x-l40s")
    assert {gpu.nvlinks for gpu in topology.gpus} == {()}
    classes = [topology.path(a.name, b.name).link_class for a, b in combinations(topology.gpus, 2)]
    assert classes == ["NODE", "SYS", "SYS", "SYS", "SYS", "NODE"]
    assert topology.domains == {}


def test_without_nvml_pcie_is_known_and_nvlink_is_not_guessed(laid_out):
    topology = laid_out("dcgm-only")
    paths = [topology.path(a.name, b.name) for a, b in combinations(topology.gpus, 2)]
    assert {path.nvlinks for path in paths} == {UNKNOWN}
    assert {path.link_class for path in paths} == {None}
    assert {path.pcie_class for path in paths} > {"PIX", "SYS"}
    assert topology.domains == {}
