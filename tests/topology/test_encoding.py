import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.encoding.gpu_place import (
    Encoding,
    address_of,
    bandwidth_class,
    encode,
    label_value,
    topo_mask,
)
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Device,
    Kind,
    NvLinkPort,
    Path,
    PcieLevel,
    Topology,
)
from tests.topology.hand_made import hgx, matrix
from tests.topology.made_up import ALPHABET

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")  # apimachinery's

domains = st.integers(0, 0xFFFFFFFF).map(lambda number: f"{number:04x}")
buses = st.integers(0, 0xFF).map(lambda number: f"{number:02x}")
devices = st.builds("{:02x}.{}".format, st.integers(0, 0x1F), st.integers(0, 7))
addresses = st.builds("{}:{}:{}".format, domains, buses, devices)
roots = st.builds("pci{}:{}".format, domains, buses)


def pairs(*, linked: bool | None) -> Topology:
    """Four GPUs; GPU2 and GPU3 are a bridged pair, the rest as `linked` says."""
    between = {True: 4, False: PcieLevel.SYS, None: None}[linked]
    topology = matrix(4, lambda one, other: 4 if (one, other) == (2, 3) else between)
    return replace(topology, domains={"GPU2": "n.a", "GPU3": "n.a"})


def test_a_gpu_of_an_hgx_h100_in_full():
    topology = hgx()
    assert encode(topology, topology.gpus[5]) == Encoding(
        bandwidth_class="HBM3_3350GBps",
        topo_mask="0b11111111",
        root_complex_id="pci0000:3d",
        nvlink_domain="gpu-7.0000-1a-00.0",
        pcie_switch="0000:40:00.0",
        numa_node="1",
    )


def test_a_gpu_of_which_nothing_is_known_has_an_empty_place():
    gpu = Device("GPU0", Kind.GPU)
    assert encode(Topology((gpu,)), gpu) == Encoding()


def test_a_board_that_may_have_other_memory_has_no_bandwidth_class():
    assert bandwidth_class("NVIDIA A100 80GB PCIe") == "HBM2e_1935GBps"
    assert bandwidth_class("NVIDIA GeForce RTX 3080") is None
    assert bandwidth_class("NVIDIA X1") is None


def test_a_masks_bit_i_is_gpu_i_counted_from_the_right():
    topology = pairs(linked=False)
    assert topo_mask(topology, topology.gpus[2]) == "0b1100"
    assert topo_mask(topology, topology.gpus[3]) == "0b1100"


def test_a_gpu_known_to_be_alone_has_its_own_bit():
    topology = pairs(linked=False)
    assert topo_mask(topology, topology.gpus[0]) == "0b0001"
    assert topo_mask(topology, topology.gpus[1]) == "0b0010"


def test_there_is_no_mask_where_links_are_not_known():
    topology = pairs(linked=None)
    assert topo_mask(topology, topology.gpus[0]) is None
    assert topo_mask(topology, topology.gpus[2]) is None  # the others may be in its domain, too


def test_there_is_no_mask_where_another_gpu_may_be_in_the_domain():
    topology = hgx(gpus=4, nics=0)
    *rest, last = topology.gpus
    unread = replace(last, nvlinks=UNKNOWN)
    some = {name: domain for name, domain in topology.domains.items() if name != last.name}
    pairs = [path for path in topology.paths if last.name not in (path.source, path.target)]
    shown = replace(topology, devices=(*rest, unread), paths=tuple(pairs), domains=some)
    assert [topo_mask(shown, gpu) for gpu in shown.gpus] == [None] * 4
    apart = [Path(gpu.name, last.name, nvlinks=0) for gpu in rest]
    assert topo_mask(replace(shown, paths=(*pairs, *apart)), rest[0]) == "0b0111"


@pytest.mark.parametrize(
    ("nvlinks", "mask"),
    [
        ((), "0b1"),
        (UNSUPPORTED, "0b1"),
        ((NvLinkPort(0, active=False), NvLinkPort(1, active=False)), "0b1"),
        ((NvLinkPort(0, active=False), NvLinkPort(1)), None),
        ((NvLinkPort(0, active=True),), None),
    ],
)
def test_a_single_gpu_is_alone_only_if_its_links_say_so(nvlinks, mask):
    gpu = Device("a", Kind.GPU, 0, nvlinks=nvlinks)
    assert topo_mask(Topology((gpu,)), gpu) == mask


def test_a_gpu_without_an_index_has_no_bit_and_no_mask():
    topology = hgx(gpus=3)
    lost = replace(topology.gpus[1], index=None)
    topology = replace(topology, devices=(topology.gpus[0], lost, topology.gpus[2]))
    assert topo_mask(topology, topology.gpus[0]) == "0b101"
    assert topo_mask(topology, lost) is None


@given(st.permutations(range(8)))
def test_no_gpus_mask_depends_on_the_order_of_devices(order):
    topology = pairs(linked=False)
    gpus = {gpu.name: topo_mask(topology, gpu) for gpu in topology.gpus}
    shuffled = replace(topology, devices=tuple(topology.gpus[i] for i in order if i < 4))
    assert {gpu.name: topo_mask(shuffled, gpu) for gpu in shuffled.gpus} == gpus


@given(st.integers(1, 16).flatmap(lambda n: st.lists(st.integers(0, 3), min_size=n, max_size=n)))
def test_masks_are_as_wide_as_the_host_and_part_its_gpus(groups):
    gpus = tuple(Device(f"GPU{i}", Kind.GPU, i) for i in range(len(groups)))
    named = {gpu.name: f"n.{group}" for gpu, group in zip(gpus, groups, strict=True)}
    topology = Topology(gpus, domains=named)
    masks = [topo_mask(topology, gpu) for gpu in gpus]
    for i, mask in enumerate(masks):
        assert mask is not None
        assert len(mask) == 2 + len(gpus)
        assert int(mask, 2) == sum(1 << j for j, group in enumerate(groups) if group == groups[i])


def test_addresses_are_written_without_colons():
    assert label_value("0000:8a:00.0") == "0000-8a-00.0"
    assert label_value("pci0000:40") == "pci0000-40"


@given(addresses | roots)
def test_an_address_comes_back_from_its_label_value(address):
    assert address_of(label_value(address)) == address


@pytest.mark.parametrize(
    "value", ["", "0", "n.0000-8a-00.0", "0000-8a-00.8", "HBM3_3350GBps", "pci0000-40-00.0"]
)
def test_what_is_no_address_gives_none(value):
    assert address_of(value) is None


@given(st.text(ALPHABET, max_size=300))
def test_every_text_has_a_legal_label_value_that_writing_again_does_not_change(text):
    value = label_value(text)
    assert LABEL_VALUE.fullmatch(value)
    assert len(value) <= 63
    assert bool(value) == bool(text)
    assert label_value(value) == value


def test_a_rack_domain_fits_whole():
    domain = "0f0e0d0c-0b0a-0908-0706-050403020100.4294967295"
    assert label_value(domain) == domain


def test_long_names_that_begin_alike_stay_two():
    host = "node." + "rack." * 12 + "example.org"
    values = {label_value(f"{host}.0000-{bus:02x}-00.0") for bus in range(8)}
    assert len(values) == 8
    assert all(value.startswith("node.rack.rack") and len(value) == 63 for value in values)


def test_near_numa_nodes_are_a_list_that_a_label_can_hold():
    gpu = Device("a", Kind.GPU, 0, numa=frozenset({0, 5, 6, 7, 8, 9, 10, 11}))
    node = encode(Topology((gpu,)), gpu).numa_node
    assert node == "0,5-11"
    assert label_value(node) == "0_5-11"
