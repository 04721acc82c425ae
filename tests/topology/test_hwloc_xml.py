from collections import Counter
from itertools import combinations

import pytest

from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Kind, NvLinkKind, PcieLevel
from seedance_obs.topology.readers.hwloc_xml import read, recognises
from seedance_obs.topology.readers.xml_text import bits
from tests.topology.index_of_samples import needs_samples
from tests.topology.tree_samples import assert_every_cut_agrees, sample

DGX2 = "other/hwloc-dgx2-16x-v100.xml.txt"
POWER8 = "other/hwloc-power8-4x-p100-nvlink-cpu.xml.txt"


@needs_samples
def test_a_dgx2_is_sixteen_gpus_with_six_links_over_twelve_switches():
    reading = read(sample(DGX2))
    topology = reading.topology
    assert reading.warnings == ()
    assert [gpu.index for gpu in topology.gpus] == list(range(16))
    assert len(list(topology.of_kind(Kind.NVSWITCH))) == 12
    counts = Counter(edge.source for edge in topology.edges if edge.kind == "nvlink")
    assert counts == {gpu.name: 6 for gpu in topology.gpus}
    for one, other in combinations(topology.gpus, 2):
        path = topology.path(one.name, other.name)
        assert (path.nvlinks, path.nvlink_kind) == (6, NvLinkKind.SWITCH)
    assert topology.domains == {gpu.name: "0000-34-00.0" for gpu in topology.gpus}


@needs_samples
def test_the_tree_of_a_dgx2_tells_every_level():
    topology = read(sample(DGX2)).topology
    gpus = [gpu.name for gpu in topology.gpus]
    first = [topology.path(gpus[0], other).pcie for other in gpus[1:]]
    levels = PcieLevel.PIX, PcieLevel.PXB, PcieLevel.NODE, PcieLevel.SYS
    assert Counter(first) == dict(zip(levels, (1, 2, 4, 8), strict=True))
    gpu = topology.by_name[gpus[0]]
    assert gpu.uuid == "GPU-d3977428-7a30-086b-2e20-5c1eeed647c6"
    assert (gpu.model, gpu.numa) == ("Tesla V100-SXM3-32GB-H", {0})
    assert (gpu.pcie_root, gpu.pcie_switch) == ("pci0000:2b", "0000:32:00.0")
    wires = {(edge.source, edge.target): edge for edge in topology.edges}
    assert wires["0000:32:00.0", gpus[0]].current == pytest.approx(15.753846e9)
    assert wires["host", "pci0000:2b"].current is UNKNOWN


@needs_samples
def test_power8_has_two_links_from_gpu_to_gpu_and_from_gpu_to_cpu():
    reading = read(sample(POWER8))
    topology = reading.topology
    linked = {(path.source, path.target): path.nvlinks for path in topology.paths if path.nvlinks}
    assert linked == {
        ("0002:01:00.0", "0003:01:00.0"): 2,
        ("000a:01:00.0", "000b:01:00.0"): 2,
        ("0002:01:00.0", "cpu0"): 2,
        ("0003:01:00.0", "cpu0"): 2,
        ("000a:01:00.0", "cpu1"): 2,
        ("000b:01:00.0", "cpu1"): 2,
    }
    assert {cpu.name: cpu.numa for cpu in topology.of_kind(Kind.CPU)} == {"cpu0": {0}, "cpu1": {1}}
    assert topology.domains["0002:01:00.0"] == topology.domains["0003:01:00.0"]
    assert len(set(topology.domains.values())) == 2
    edge = next(edge for edge in topology.edges if edge.target == "cpu0")
    assert (edge.links, edge.nominal) == (2, 40e9)
    assert topology.path("0002:01:00.0", "0003:01:00.0").pcie is PcieLevel.NODE
    assert topology.path("0002:01:00.0", "000a:01:00.0").pcie is PcieLevel.SYS
    assert topology.by_name["000a:01:00.0"].cpus >= {80, 81}


@needs_samples
@pytest.mark.parametrize(("name", "step"), [(DGX2, 997), (POWER8, 499)])
def test_every_cut_tells_nothing_wrong(name, step):
    assert_every_cut_agrees(read, sample(name), step)


@needs_samples
def test_a_cut_names_the_line_and_the_element_and_keeps_the_head():
    text = sample(POWER8)
    end = text.index('<object type="PCIDev"', text.index("0003:00:00.0")) + 10
    reading = read(text[:end])
    assert [gpu.name for gpu in reading.topology.gpus] == ["0002:01:00.0"]
    line = text[:end].count("\n") + 1
    assert reading.warnings[0].startswith(f"line {line}, inside <object>")


UUID = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
VERSION_1 = """
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc.dtd">
<topology>
 <object type="Machine" os_index="0" cpuset="0x0000000f" nodeset="0x00000003">
  <object type="NUMANode" os_index="0" cpuset="0x00000003" nodeset="0x00000001">
   <object type="Socket" os_index="0" cpuset="0x00000003" nodeset="0x00000001"/>
   <object type="Bridge" os_index="0" bridge_type="0-1" depth="0" bridge_pci="0000:[00-04]">
    <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[01-04]" pci_busid="0000:00:02.0"
      pci_type="0604 [8086:2f04] [0000:0000] 02" pci_link_speed="0.000000">
     <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:102d] [10de:106c] a1">
      <object type="OSDev" name="cuda0" osdev_type="5"/>
      <object type="OSDev" name="nvml0" osdev_type="1">
       <info name="NVIDIAUUID" value="GPU-AAAAAAAA-0000-0000-0000-000000000000"/>
      </object>
     </object>
     <object type="PCIDev" pci_busid="0000:01:00.1" pci_type="0207 [15b3:1013] [15b3:0008] 00">
      <object type="OSDev" name="ib0" osdev_type="2"/>
      <object type="OSDev" name="mlx5_0" osdev_type="3"/>
     </object>
    </object>
   </object>
  </object>
  <object type="NUMANode" os_index="1" cpuset="0x0000000c" nodeset="0x00000002">
   <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[80-84]">
    <object type="PCIDev" pci_busid="0000:80:05.0" pci_type="0108 [144d:a808] [144d:a801] 00">
     <object type="OSDev" name="nvme0n1" osdev_type="0"/>
    </object>
   </object>
  </object>
  <object type="PCIDev" pci_busid="0000:90:00.0" pci_type="0302 [10de:102d] [10de:106c] a1"/>
 </object>
</topology>
"""


def test_version_1_puts_numa_nodes_above_what_hangs_on_them():
    assert recognises(VERSION_1)
    reading = read(VERSION_1)
    topology = reading.topology
    gpu, nic, drive = (topology.by_name[f"0000:{bus}"] for bus in ("01:00.0", "01:00.1", "80:05.0"))
    assert (gpu.numa, gpu.cpus, gpu.index, gpu.uuid) == ({0}, {0, 1}, 0, UUID)
    assert (nic.kind, nic.label) == (Kind.NIC, "mlx5_0")
    assert (drive.kind, drive.label, drive.numa) == (Kind.NVME, "nvme0n1", {1})
    assert topology.path(gpu.name, nic.name).pcie is PcieLevel.PIX
    assert topology.path(gpu.name, drive.name).pcie is PcieLevel.SYS
    assert topology.path(gpu.name, "0000:90:00.0").nvlinks is UNKNOWN


def test_a_device_that_hangs_on_the_whole_host_has_no_known_numa_node():
    gpu = read(VERSION_1).topology.by_name["0000:90:00.0"]
    assert (gpu.numa, gpu.pcie_root, gpu.ports) == (UNKNOWN, UNKNOWN, UNKNOWN)
    single = VERSION_1.replace('nodeset="0x00000003"', 'nodeset="0x00000001"')
    assert read(single).topology.by_name["0000:90:00.0"].numa == {0}


GRACE = """<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0xff" nodeset="0x7">
  <object type="Package" os_index="0" cpuset="0xff" nodeset="0x7" gp_index="3">
   <object type="NUMANode" os_index="0" cpuset="0xff" nodeset="0x1" gp_index="4"/>
   <object type="NUMANode" os_index="1" cpuset="0xff" nodeset="0x2" subtype="GPUMemory">
    <info name="PCIBusID" value="0009:01:00.0"/>
   </object>
   <object type="NUMANode" os_index="2" cpuset="0x0" nodeset="0x4" gp_index="6"/>
   <object type="Bridge" bridge_type="0-1" bridge_pci="0009:[00-01]">
    <object type="Bridge" bridge_type="1-1" bridge_pci="0009:[01-01]" pci_busid="0009:00:00.0">
     <object type="PCIDev" pci_busid="0009:01:00.0" pci_type="0302 [10de:2342] [10de:16eb] a1 00"/>
    </object>
   </object>
  </object>
 </object>
</topology>"""


def test_a_grace_gpu_is_near_the_nodes_with_cpus_and_is_one_itself():
    gpu = read(GRACE).topology.by_name["0009:01:00.0"]
    assert (gpu.numa, gpu.memory_node) == ({0}, 1)
    assert gpu.cpus == set(range(8))


def matrix(model: str, values: str, indexes: str = "OSDev:11 OSDev:21", size: int = 2) -> str:
    """Two GPUs and their NVLinkBandwidth matrix."""
    gpus = "".join(
        f'<object type="PCIDev" pci_busid="000{n}:00:00.0" pci_type="0302 [10de:2330]">'
        f'<object type="OSDev" name="nvml{n}" gp_index="{n}1">'
        f'<info name="GPUModel" value="{model}"/></object></object>'
        for n in (1, 2)
    )
    return (
        f'<topology version="2.0"><object type="Machine">{gpus}</object>'
        f'<distances2hetero nbobjs="{size}" kind="25" name="NVLinkBandwidth">'
        f"<indexes>{indexes}</indexes><u64values>{values}</u64values></distances2hetero></topology>"
    )


@pytest.mark.parametrize(
    ("model", "total", "links"),
    [
        ("Tesla P100-SXM2-16GB", 40000, 2),
        ("NVIDIA H100 80GB HBM3", 100000, 4),
        ("NVIDIA B200", 100000, 2),
        ("NVIDIA GB200", 900000, 18),
        ("NVIDIA A100-SXM4-80GB", 0, 0),
        ("no model", 75000, 3),
        ("no model", 100000, UNKNOWN),
        ("NVIDIA H100 80GB HBM3", 40000, UNKNOWN),
        ("NVIDIA H100 80GB HBM3", 4, UNKNOWN),
    ],
)
def test_links_are_whole_numbers_at_the_speed_of_the_generation(model, total, links):
    reading = read(matrix(model, f"1000000 {total} {total} 1000000"))
    (path,) = reading.topology.paths
    assert path.nvlinks == links
    assert path.nvlink_kind == (UNSUPPORTED if links == 0 else path.nvlink_kind)
    assert bool(reading.warnings) == (links is UNKNOWN)


@pytest.mark.parametrize(
    "broken",
    [
        matrix("NVIDIA H100", "0 25000 25000"),
        matrix("NVIDIA H100", "0 25000 25000 x"),
        matrix("NVIDIA H100", "0 25000 25000 0", size=3),
        matrix("NVIDIA H100", "0 25000 25000 0", indexes="OSDev:11 OSDev:99"),
    ],
)
def test_a_matrix_that_is_not_whole_leaves_the_links_unknown_and_says_so(broken):
    reading = read(broken)
    assert [path.nvlinks for path in reading.topology.paths] == [UNKNOWN]
    assert "NVLinkBandwidth" in reading.warnings[0]


def test_masks_are_words_of_32_bits_from_the_highest():
    assert bits("00000000,00ffffff") == set(range(24))
    assert bits("0x00000303,0x03030000,,0x0") == {80, 81, 88, 89, 96, 97, 104, 105}
    for odd in ("", "0xf...f", "x", "0x123456789", "1 2"):
        assert bits(odd) is UNKNOWN
