from itertools import combinations

import pytest

from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Kind, NvLinkKind, PcieLevel, PcieLink
from seedance_obs.topology.readers.nccl_xml import SAME_NODE, read, recognises
from tests.topology.index_of_samples import needs_samples
from tests.topology.tree_samples import assert_every_cut_agrees, sample

OCI = "other/nccl-topo-8x-h100-oci.xml.txt"
AZURE = "other/nccl-topo-2x-a100-pcie-azure-nc48v4.xml.txt"


@needs_samples
def test_eight_h100_reach_each_other_over_four_switches():
    topology = read(sample(OCI)).topology
    assert [gpu.index for gpu in topology.gpus] == list(range(8))
    for one, other in combinations(topology.gpus, 2):
        path = topology.path(one.name, other.name)
        assert (path.nvlinks, path.nvlink_kind) == (18, NvLinkKind.SWITCH)
    switches = [device.name for device in topology.of_kind(Kind.NVSWITCH)]
    assert sorted(switches) == [f"0000:1{digit}:00.0" for digit in "abcd"]
    for gpu in topology.gpus:
        counts = [e.links for e in topology.edges if e.kind == "nvlink" and e.source == gpu.name]
        assert sorted(counts) == [4, 4, 5, 5]
    assert set(topology.domains.values()) == {"0000-0f-00.0"}
    assert len(topology.domains) == 8


@needs_samples
def test_the_rails_of_the_h100_machine_are_pix_through_one_flattened_switch():
    topology = read(sample(OCI)).topology
    gpu, nic = topology.by_name["0000:0f:00.0"], topology.by_name["0000:0c:00.0"]
    assert gpu.pcie_switch == nic.pcie_switch == "0000:08:00.0"
    assert nic.label == "mlx5_0,mlx5_1"
    assert topology.path(gpu.name, nic.name).pcie is PcieLevel.PIX
    assert topology.path(gpu.name, "0000:89:00.0").pcie is PcieLevel.SYS
    assert topology.path(gpu.name, "0000:2d:00.0").pcie is UNKNOWN
    assert gpu.pcie == PcieLink(generation_max=5, width_max=16)
    assert gpu.cpus >= {0, 55}
    assert [len(device.numa) for device in topology.gpus] == [1] * 8


@needs_samples
def test_two_a100_of_a_virtual_machine_are_linked_directly():
    topology = read(sample(AZURE)).topology
    path = topology.path("0001:00:00.0", "0002:00:00.0")
    assert (path.pcie, path.nvlinks, path.nvlink_kind) == (PcieLevel.SYS, 12, NvLinkKind.DIRECT)
    gpu = topology.by_name["0001:00:00.0"]
    assert gpu.numa == {0}
    assert gpu.cpus == set(range(24))
    assert gpu.pcie == PcieLink()
    assert gpu.pcie_switch is UNSUPPORTED
    nic = topology.by_name["eth0"]
    assert (nic.kind, nic.numa, nic.bus_id) == (Kind.NIC, UNKNOWN, UNKNOWN)
    assert len([edge for edge in topology.edges if edge.kind == "nvlink"]) == 1


@needs_samples
@pytest.mark.parametrize(("name", "step"), [(OCI, 151), (AZURE, 7)])
def test_every_cut_tells_nothing_wrong(name, step):
    assert_every_cut_agrees(read, sample(name), step)


def system(*gpus: str, numa: str = "0", more: str = "") -> str:
    pcis = "".join(
        f'<pci busid="000{n}:00:00.0" class="0x030200" vendor="0x10de">'
        f'<gpu dev="{n}" sm="90">{links}</gpu></pci>'
        for n, links in enumerate(gpus)
    )
    return f'<system version="1"><cpu numaid="{numa}" affinity="f">{pcis}{more}</cpu></system>'


def nvlink(target: str, count: object, tclass: str) -> str:
    return f'<nvlink target="{target}" count="{count}" tclass="{tclass}"/>'


HIDDEN = nvlink("fffffff:ffff:ff", 18, "0x068000")


def test_a_far_end_that_cannot_be_read_is_a_hidden_switch():
    topology = read(system(HIDDEN, nvlink("0000:77:00.0", 18, ""))).topology
    (path,) = topology.paths
    assert (path.nvlinks, path.nvlink_kind) == (18, NvLinkKind.HIDDEN)
    assert [device.name for device in topology.of_kind(Kind.NVLINK_FABRIC)] == ["hidden"]
    assert len(set(topology.domains.values())) == 1


def test_a_gpu_that_only_its_peer_lists_is_a_device_of_its_own():
    topology = read(system(nvlink("0009:00:00.0", 4, "0x030200"))).topology
    assert [gpu.name for gpu in topology.gpus] == ["0000:00:00.0", "0009:00:00.0"]
    assert topology.path("0000:00:00.0", "0009:00:00.0").nvlinks == 4


def test_sides_that_disagree_give_the_smaller_count():
    one = nvlink("0001:00:00.0", 4, "0x030200")
    other = nvlink("0000:00:00.0", 3, "0x030200")
    topology = read(system(one, other)).topology
    assert [path.nvlinks for path in topology.paths] == [3]
    assert [edge.links for edge in topology.edges if edge.kind == "nvlink"] == [3]


def test_gpus_without_links_have_none_and_a_vendor_file_does_not_know():
    assert [path.nvlinks for path in read(system("", "")).topology.paths] == [0]
    for probed in (' sm="90"', ' vendor="0x10de"'):
        bare = system("", "").replace(probed, "")
        assert [path.nvlinks for path in read(bare).topology.paths] == [UNKNOWN]
    listed = '<pci busid="0001:00:00.0" class="0x030200" vendor="0x10de"/>'
    topology = read(f'<system version="1"><cpu numaid="0">{listed}</cpu></system>').topology
    assert [gpu.name for gpu in topology.gpus] == ["0001:00:00.0"]


def test_a_count_that_is_no_number_makes_that_gpu_unknown_and_names_the_place():
    text = system(nvlink("0001:00:00.0", "four", "0x030200"), HIDDEN).replace("<cpu", "\n<cpu")
    reading = read(text)
    assert [path.nvlinks for path in reading.topology.paths] == [UNKNOWN]
    assert "line 2, <nvlink>" in reading.warnings[0]
    assert "0000:00:00.0" in reading.warnings[0]


def test_c2c_and_the_nvlinks_of_power9_lead_to_the_processor():
    text = system('<c2c bw="400000" count="1"/>', nvlink("0004:00:00.0", 3, "0x068001"))
    topology = read(text).topology
    kinds = {(e.source, e.target, e.kind, e.links, e.nominal) for e in topology.edges}
    assert ("0000:00:00.0", "cpu0", "c2c", 1, 4e11) in kinds
    assert ("0001:00:00.0", "cpu0", "nvlink", 3, UNKNOWN) in kinds
    assert topology.path("0000:00:00.0", "cpu0").link_class == "C2C"
    assert topology.path("0001:00:00.0", "cpu0").link_class == "NV3"
    assert topology.domains == {}


def test_minus_one_is_no_numa_node():
    topology = read(system("", "", numa="-1")).topology
    assert [gpu.numa for gpu in topology.gpus] == [UNKNOWN] * 2
    assert [path.pcie for path in topology.paths] == [UNKNOWN]
    assert SAME_NODE in read(system("", "", numa="-1")).warnings


def test_of_several_hosts_only_the_first_is_read():
    gpu = '<pci busid="0000:01:00.0" class="0x030200"><gpu/></pci>'
    one = f'<cpu host_hash="0xa" numaid="0">{gpu}</cpu>'
    other = one.replace("0xa", "0xb").replace(":01:", ":02:")
    reading = read(f'<system version="2">{one}{other}</system>')
    assert [gpu.name for gpu in reading.topology.gpus] == ["0000:01:00.0"]
    assert "2 hosts" in reading.warnings[0]


def test_noise_around_the_document_is_passed_over():
    text = f"$ cat topo.xml\n{system('', '')}\nuser@host:~$ "
    assert recognises(text)
    assert read(text) == read(system("", ""))


def test_a_bomb_of_entities_is_refused():
    entities = '<!DOCTYPE system [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    reading = read(f"{entities}\n<system><cpu numaid='&b;'/></system>")
    assert reading.topology.gpus == ()
    assert "entities" in reading.warnings[0]
    outside = '<!DOCTYPE system [<!ENTITY a SYSTEM "file:///etc/passwd">]><system>&a;</system>'
    assert "entities" in read(outside).warnings[0]


def test_a_document_deeper_than_any_machine_is_given_up():
    reading = read("<system>" + '<cpu><pci busid="0000:01:00.0" class="0x060400">' * 5000)
    assert "200 elements" in reading.warnings[0]


@pytest.mark.parametrize(
    "text", ["<system", "<system>", "<system><cpu></system>", "\x00<system>\x00"]
)
def test_broken_documents_are_a_warning(text):
    reading = read(text)
    assert reading.topology.gpus == ()
    assert reading.warnings


def test_a_device_without_a_class_is_named():
    reading = read('<system>\n<cpu numaid="0">\n<pci busid="0000:00:1b.0"/>\n</cpu></system>')
    assert not reading.topology.gpus
    assert reading.warnings == ("line 3, <pci>: no class tells what 0000:00:1b.0 is",)


def test_prose_that_names_the_root_is_passed_over():
    prose = "One `<system>`, one `<cpu>`:\n"
    reading = read(prose + system(""))
    assert len(reading.topology.gpus) == 1
    assert not any("unclosed" in warning or "mismatched" in warning for warning in reading.warnings)
