import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Kind, PcieLevel, PcieLink
from seedance_obs.topology.readers.lspci import (
    ACROSS,
    NO_NAMES,
    NO_TREE,
    read,
    recognises,
)
from seedance_obs.topology.readers.pci_names import kind_of_name
from tests.topology.index_of_samples import needs_samples
from tests.topology.tree_samples import assert_every_cut_agrees, sample

A100 = "other/lspci-nn-8x-a100-6-nvswitch.txt"
ESC = "other/lspci-tv-4x-rtx6000ada-esc8000a.txt"
IGX = "other/lspci-tv-igx-a6000-cx7.txt"


@needs_samples
def test_the_lines_of_an_a100_machine_are_gpus_switches_nics_and_drives():
    reading = read(sample(A100))
    kinds = [device.kind for device in reading.topology.devices]
    counts = {kind: kinds.count(kind) for kind in (Kind.GPU, Kind.NVSWITCH, Kind.NIC, Kind.NVME)}
    assert counts == {Kind.GPU: 8, Kind.NVSWITCH: 6, Kind.NIC: 9, Kind.NVME: 8}
    assert reading.format == "lspci"
    assert reading.warnings == (NO_TREE,)
    gpu = reading.topology.by_name["000e:00:00.0"]
    assert (gpu.label, gpu.pcie_root, gpu.ports) == ("A100 SXM4 80GB", UNKNOWN, UNKNOWN)
    assert {path.pcie for path in reading.topology.paths} == {UNKNOWN}


MATRIX_TWIN = {  # of 4x-rtx6000ada-4nic-two-numa.txt: its columns by PCI address
    "GPU0": "0000:01:00.0",
    "GPU1": "0000:41:00.0",
    "GPU2": "0000:c1:00.0",
    "GPU3": "0000:e1:00.0",
    "NIC0": "0000:21:00.0",
    "NIC1": "0000:21:00.1",
    "NIC2": "0000:81:00.0",
    "NIC3": "0000:81:00.1",
}


@needs_samples
def test_the_tree_of_a_server_agrees_with_its_matrix_as_far_as_it_knows():
    reading = read(sample(ESC))
    topology = reading.topology
    assert [gpu.name for gpu in topology.gpus] == [MATRIX_TWIN[f"GPU{n}"] for n in range(4)]
    assert {gpu.pcie_switch for gpu in topology.gpus} == {UNSUPPORTED}
    rows = [line.split() for line in sample("4x-rtx6000ada-4nic-two-numa.txt").splitlines()]
    matrix = {row[0]: row[1:9] for row in rows if row and row[0] in MATRIX_TWIN}
    told = {"NODE": UNKNOWN, "SYS": UNKNOWN, "PIX": PcieLevel.PIX}
    for row, words in matrix.items():
        for column, word in zip(MATRIX_TWIN, words, strict=True):
            if row != column:
                path = topology.path(MATRIX_TWIN[row], MATRIX_TWIN[column])
                assert path.pcie is told[word], (row, column)
    assert topology.path("0000:01:00.0", "0000:02:00.0").pcie is PcieLevel.PHB
    assert reading.warnings == (ACROSS,)


@needs_samples
def test_drives_behind_two_levels_of_switches_hang_on_the_lower_one():
    topology = read(sample(ESC)).topology
    drive = topology.by_name["0000:65:00.0"]
    assert (drive.kind, drive.pcie_root, drive.pcie_switch) == (
        Kind.NVME,
        "pci0000:60",
        "0000:63:00.0",
    )
    assert drive.ports == (
        "0000:60:01.1",
        "0000:61:00.0",
        "0000:62:00.0",
        "0000:63:00.0",
        "0000:64:10.0",
    )
    wires = {(edge.source, edge.target) for edge in topology.edges}
    assert {
        ("host", "pci0000:60"),
        ("pci0000:60", "0000:61:00.0"),
        ("0000:61:00.0", "0000:63:00.0"),
        ("0000:63:00.0", "0000:65:00.0"),
    } <= wires


@needs_samples
def test_a_tree_whose_first_line_is_shifted_agrees_with_its_matrix():
    topology = read(sample(IGX)).topology
    (gpu,) = topology.gpus
    assert (gpu.name, gpu.label) == ("0005:09:00.0", "RTX A6000")
    assert topology.path(gpu.name, "0005:03:00.0").pcie is PcieLevel.PXB
    assert topology.path(gpu.name, "0005:03:00.1").pcie is PcieLevel.PXB
    assert topology.path("0005:03:00.0", "0005:03:00.1").pcie is PcieLevel.PIX


@needs_samples
@pytest.mark.parametrize(("name", "step"), [(A100, 13), (ESC, 61), (IGX, 11)])
def test_every_cut_tells_nothing_wrong(name, step):
    assert_every_cut_agrees(read, sample(name), step)


TREE = """\
-[0000:00]-+-00.0  Intel Corporation Device 2020
           +-01.0-[01-05]----00.0-[02-05]--+-00.0-[03]----00.0  NVIDIA Corporation GH100 [H100 PCIe]
           |                               \\-01.0-[04]--+-00.0  Mellanox MT2910 Family [ConnectX-7]
           |                                            \\-00.1  Mellanox MT2910 Family [ConnectX-7]
           \\-02.0-[06]--
"""


def levels(text: str) -> dict[tuple[str, str], object]:
    return {(path.source, path.target): path.pcie for path in read(text).topology.paths}


def test_one_root_bus_needs_no_branch_of_its_own():
    assert levels(TREE) == {
        ("0000:03:00.0", "0000:04:00.0"): PcieLevel.PIX,
        ("0000:03:00.0", "0000:04:00.1"): PcieLevel.PIX,
        ("0000:04:00.0", "0000:04:00.1"): PcieLevel.PIX,
    }
    assert read(TREE).warnings == ()


def boxed(text: str) -> str:
    """The same tree in box characters; ranges and names keep theirs."""
    shapes = {"+": "├", "\\": "└", "-": "─", "|": "│"}
    lines = []
    for line in text.splitlines(keepends=True):
        drawn, gap, name = line.partition("  NVIDIA" if "NVIDIA" in line else "  Mellanox")
        drawn = re.sub(r"\[.*?\]|[-+\\|]", lambda found: shapes.get(found[0], found[0]), drawn)
        lines.append(drawn + gap + name)
    return "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        boxed(TREE),
        TREE.replace("\n", "\r\n"),
        "".join(f"    {line}\n" for line in TREE.splitlines()),
        "".join(f"> {line}\n" for line in TREE.splitlines()),
        f"$ lspci -tv\n{TREE}user@host:~$ \n",
        "\n".join(
            line.strip() if n == 0 else f"   {line}" for n, line in enumerate(TREE.splitlines())
        )
        + "\n",
    ],
    ids=["boxes", "crlf", "indented", "quoted", "prompts", "shifted"],
)
def test_a_tree_reads_the_same_however_it_was_pasted(text):
    assert recognises(text)
    assert levels(text) == levels(TREE)


def test_a_tree_without_its_first_line_starts_at_the_next_root_bus():
    text = """\
           \\-01.1-[02]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 +-[0000:20]-+-01.1-[21]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 |           \\-01.2-[22]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 \\-[0000:40]---01.1-[41]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
"""
    topology = read(text).topology
    assert [gpu.pcie_root for gpu in topology.gpus] == ["pci0000:20", "pci0000:20", "pci0000:40"]


def test_a_line_that_continues_no_branch_is_left_out_and_named():
    broken = TREE.replace(
        "           |                                            \\-00.1", "      \\-00.1"
    )
    reading = read(broken + "\n")
    assert "0000:04:00.1" not in reading.topology.by_name
    assert reading.warnings == ("line 4: it continues no branch of the tree",)


def test_a_tree_of_a_volume_management_device_has_no_root_complex_of_its_own():
    text = "-+-[10000:e0]---06.0-[e1]----00.0  Intel Corporation NVMe DC SSD [3DNAND]\n"
    text += " \\-[0000:00]---01.0-[01]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]\n"
    topology = read(text).topology
    assert topology.by_name["10000:e1:00.0"].pcie_root is UNKNOWN
    assert topology.path("10000:e1:00.0", "0000:01:00.0").pcie is UNKNOWN


def test_a_tree_without_names_says_that_they_are_missing():
    assert read("-[0000:00]-+-00.0\n           \\-01.0-[01]----00.0\n").warnings == (NO_NAMES,)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA Corporation GB202 [GeForce RTX 5090]", Kind.GPU),
        ("nVidia Corporation GK210GL [Tesla K80]", Kind.GPU),
        ("NVIDIA Corporation AD102 High Definition Audio Controller", None),
        ("NVIDIA Corporation TU104 USB 3.1 Host Controller", None),
        ("NVIDIA Corporation TU104 USB Type-C UCSI Controller", None),
        ("NVIDIA Corporation GH100 [H100 NVSwitch]", Kind.NVSWITCH),
        ("NVIDIA Corporation Device 22a3", Kind.NVSWITCH),
        ("NVIDIA Corporation Device 2b85", Kind.UNKNOWN),
        ("Mellanox Technologies MT42822 BlueField-2 SoC Management Interface", None),
        (
            "Mellanox Technologies MT43244 BlueField-3 integrated ConnectX-7 network controller",
            Kind.NIC,
        ),
        ("Broadcom Inc. and subsidiaries BCM57508 NetXtreme-E 10Gb/25Gb/50Gb Ethernet", Kind.NIC),
        ("Intel Corporation I350 Gigabit Network Connection", Kind.NIC),
        ("Samsung Electronics Co Ltd NVMe SSD Controller PM9A1", Kind.NVME),
        ("HighPoint Technologies, Inc. SSD7540 8-Port M.2 NVMe RAID Controller", None),
        ("ASPEED Technology, Inc. ASPEED Graphics Family", None),
    ],
)
def test_a_name_of_pci_ids_tells_the_kind(name, kind):
    assert kind_of_name(name, None) is kind


def test_an_nvidia_function_without_a_name_is_of_no_known_kind():
    text = "-[0000:00]---01.0-[01]----00.0  NVIDIA Corporation Device 2b85\n"
    reading = read(text)
    assert reading.topology.gpus == ()
    assert reading.topology.by_name["0000:01:00.0"].kind is Kind.UNKNOWN
    assert "0000:01:00.0" in reading.warnings[0]
    classes = (
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:2b85] (rev a1)\n"
    )
    both = read(text + classes)
    assert both.topology.by_name["0000:01:00.0"].ports == ("0000:00:01.0",)
    assert [gpu.name for gpu in both.topology.gpus] == ["0000:01:00.0"]


@pytest.mark.parametrize(
    "line",
    [
        "0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100] [10de:20f1] (rev a1)",
        "3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)",
        "3b:00.0 3D controller: nVidia Corporation GA100 [A100 PCIe 40GB]",
        "3b:00.0 0302: 10de:20f1 (rev a1)",
        "  3b:00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:2b85] (rev a1)"
        " (prog-if 00 [VGA controller])",
    ],
)
def test_every_way_to_print_a_line_is_a_gpu(line):
    for text in (line + "\n", line, line + "\r\n\tKernel driver in use: nvidia\r\n"):
        assert [gpu.bus_id for gpu in read(text).topology.gpus] == ["0000:3b:00.0"]


def test_functions_that_are_no_gpu_are_left_out():
    text = """\
3b:00.1 Audio device [0403]: NVIDIA Corporation AD102 High Definition Audio Controller [10de:22ba]
04:00.0 VGA compatible controller [0300]: ASPEED Technology, Inc. ASPEED Graphics Family [1a03:2000]
"""
    assert read(text).topology.gpus == ()


VERBOSE = """\
40:00.0 Host bridge [0600]: Intel Corporation Device [8086:09a2]
	NUMA node: 1
40:01.0 PCI bridge [0604]: Intel Corporation Device [8086:352a] (prog-if 00 [Normal decode])
	Bus: primary=40, secondary=41, subordinate=44, sec-latency=0
41:00.0 PCI bridge [0604]: Broadcom / LSI PEX890xx [1000:c030] (prog-if 00 [Normal decode])
	Bus: primary=41, secondary=42, subordinate=44, sec-latency=0
42:00.0 PCI bridge [0604]: Broadcom / LSI PEX890xx [1000:c030] (prog-if 00 [Normal decode])
	Bus: primary=42, secondary=43, subordinate=43, sec-latency=0
42:01.0 PCI bridge [0604]: Broadcom / LSI PEX890xx [1000:c030] (prog-if 00 [Normal decode])
	Bus: primary=42, secondary=44, subordinate=44, sec-latency=0
43:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
	NUMA node: 1
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 16GT/s (downgraded), Width x8 (downgraded)
44:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
	NUMA node: 1
"""


def test_verbose_lines_tell_buses_numa_nodes_and_links():
    topology = read(VERBOSE).topology
    (gpu,) = topology.gpus
    assert gpu.ports == ("0000:40:01.0", "0000:41:00.0", "0000:42:00.0")
    assert (gpu.pcie_root, gpu.pcie_switch, gpu.numa) == ("pci0000:40", "0000:41:00.0", {1})
    assert gpu.pcie == PcieLink(generation=4, width=8, generation_max=5, width_max=16)
    assert topology.path("0000:43:00.0", "0000:44:00.0").pcie is PcieLevel.PIX


def test_buses_without_a_known_root_bus_leave_the_position_unknown():
    part = VERBOSE[VERBOSE.index("41:00.0") :]
    (gpu,) = read(part).topology.gpus
    assert (gpu.pcie_root, gpu.ports, gpu.pcie_switch) == (UNKNOWN, UNKNOWN, UNKNOWN)


def test_every_cut_of_verbose_lines_tells_nothing_wrong():
    assert_every_cut_agrees(read, VERBOSE, 1)


@given(st.text(alphabet="-+\\|[]0:.1 \nNVIDIA", max_size=200))
def test_no_text_raises(text):
    read(text)
