import io
from dataclasses import replace

import pytest
from hypothesis import given
from rich.console import Console

from seedance_obs.topology.drawing import draw_topology
from seedance_obs.topology.model import (
    UNSUPPORTED,
    Device,
    FabricMembership,
    Kind,
    NvLinkPort,
    Path,
    PcieLevel,
    PcieLink,
    Reading,
    Topology,
)
from tests.topology.hand_made import hgx, matrix
from tests.topology.made_up import topologies


def drawn(topology: Topology, *warnings: str, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system="standard" if colour else None, force_terminal=colour
    )
    console.print(draw_topology(Reading(topology, warnings)))
    return out.getvalue()


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of the lines that begin with a name."""
    return [line.split() for line in text.splitlines() if line.startswith(f"{first} ")]


def test_the_tree_hangs_every_device_where_it_is():
    lines = drawn(hgx()).splitlines()
    assert lines[:6] == [
        "gpu-7",
        "├── NUMA node 0",
        "│   ├── pci0000:15",
        "│   │   └── switch 0000:18:00.0",
        "│   │       ├── GPU0  0000:1a:00.0  gen5 x16  domain 0  H100 80GB HBM3",
        "│   │       └── NIC0  0000:1b:00.0  gen5 x16  mlx5_0",
    ]
    assert [line for line in lines if "NUMA node" in line and "──" in line] == [
        "├── NUMA node 0",
        "└── NUMA node 1",
    ]


def test_eight_gpus_and_eight_nics_fit_eighty_columns_in_whole_cells():
    text = drawn(hgx())
    assert max(map(len, text.splitlines())) <= 80
    to_gpus, to_nics = rows(text, "GPU3")
    assert to_gpus == ["GPU3", *["NV18"] * 3, "X", *["NV18"] * 4, "0"]
    assert to_nics == ["GPU3", *["NODE"] * 3, "PIX", *["SYS"] * 4, "0"]
    assert "…" not in text


def test_sixteen_gpus_go_on_in_a_second_matrix():
    text = drawn(matrix(16, lambda _one, _other: 6))
    assert max(map(len, text.splitlines())) <= 80
    left, right = rows(text, "GPU15")
    assert left == ["GPU15", *["NV6"] * 8]
    assert right == ["GPU15", *["NV6"] * 7, "X"]
    whole = drawn(matrix(16, lambda _one, _other: 6), width=120)
    assert rows(whole, "GPU15") == [["GPU15", *["NV6"] * 15, "X"]]


def test_only_the_classes_that_occur_are_explained():
    text = drawn(hgx())
    assert "NVn  n NVLinks" in text
    assert "SYS  " in text
    assert "PHB  " not in text
    assert "?    not known" not in text


def test_every_class_of_every_row_is_explained():
    far, near = Path("GPU0", "NIC0", PcieLevel.SYS, 0), Path("GPU1", "NIC0", PcieLevel.PHB, 0)
    gpus = (Device("GPU0", Kind.GPU, 0), Device("GPU1", Kind.GPU, 1))
    text = drawn(Topology((*gpus, Device("NIC0", Kind.NIC, 0)), (far, near)))
    assert text.index("PHB  a PCIe host bridge") < text.index("SYS  the interconnect")
    assert "Link classes between GPUs: not known.\n" in text


def test_an_unknown_cell_is_a_question_mark():
    text = drawn(matrix(3, lambda _one, other: None if other == 2 else PcieLevel.PHB))
    assert rows(text, "GPU0") == [["GPU0", "X", "PHB", "?"]]
    assert rows(text, "GPU2") == [["GPU2", "?", "?", "X"]]
    assert "?    not known" in text


def test_a_matrix_without_a_tree_names_its_nics_below():
    text = drawn(matrix(2, lambda _one, _other: 4, nics=2, numa=lambda i: i))
    assert "──" not in text
    assert "NIC0 mlx5_0  NIC1 mlx5_1" in text
    assert rows(text, "GPU1") == [["GPU1", "NV4", "X", "1"], ["GPU1", "SYS", "SYS", "1"]]


def test_one_gpu_and_none():
    assert drawn(matrix(1, lambda _one, _other: None)) == "GPU0\n"
    assert drawn(Topology()) == "No GPUs.\n"


def test_domains_and_warnings_are_told():
    text = drawn(hgx(), "row GPU3: cell 5 is not a link class: `[X`")
    assert "NVLink domain 0: GPU 0-7  gpu-7.0000-1a-00.0" in text
    assert "warning: row GPU3: cell 5 is not a link class: `[X`" in text


def test_a_link_below_its_best_and_a_lost_gpu_show_in_the_tree():
    gpu = Device(
        "0000:01:00.0",
        Kind.GPU,
        0,
        pcie_root="pci0000:00",
        pcie_switch=UNSUPPORTED,
        pcie=PcieLink(1, 8, 5, 16),
        present=False,
    )
    text = drawn(Topology((gpu,)))
    assert "GPU0  0000:01:00.0  gen1/5 x8/16  lost" in text
    assert "NUMA" not in text
    assert "switch" not in text
    near = replace(gpu, name="0000:02:00.0", bus_id="0000:02:00.0", index=1, numa=frozenset({1}))
    both = drawn(Topology((gpu, near)))
    assert ("NUMA node 1" in both, "NUMA node ?" in both) == (True, True)


def test_a_model_too_long_for_the_line_is_cut_and_nothing_wraps():
    model = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
    topology = hgx(gpus=1, nics=0)
    topology = replace(topology, devices=(replace(topology.gpus[0], model=model),))
    lines = drawn(topology).splitlines()
    assert len(lines[4]) == 80
    assert lines[4].endswith("  RTX PRO 6000 Blackwell …")
    assert lines[5] == ""


def test_without_a_matrix_the_devices_are_said_in_full():
    ports = tuple(NvLinkPort(port, port > 1, 26562.0) for port in range(18))
    whole = Device("GPU0", Kind.GPU, 0, nvlinks=ports[2:], model="NVIDIA H100")
    lame = Device("GPU1", Kind.GPU, 1, nvlinks=ports, numa=frozenset({1}), mig=True)
    none = Device("GPU2", Kind.GPU, 2, nvlinks=UNSUPPORTED, fabric=FabricMembership(3, 23))
    assert drawn(Topology((whole, lame, none))).splitlines() == [
        "Link classes between GPUs: not known.",
        "",
        "GPU0  16 NVLinks of 26.562 GB/s  H100",
        "GPU1  NUMA node 1  16/18 NVLinks up  MIG on",
        "GPU2  no NVLinks  fabric: insufficient resources",
    ]


@pytest.mark.parametrize(
    ("fabric", "said"),
    [
        (FabricMembership(0), None),
        (FabricMembership(2), "fabric in progress"),
        (FabricMembership(3, 0, healthy=True), None),
        (FabricMembership(3, 0, healthy=False, faults=("route_unhealthy",)), "fabric unhealthy, "),
    ],
)
def test_a_fabric_is_told_where_it_is_not_in_order(fabric, said):
    text = drawn(Topology((Device("GPU0", Kind.GPU, 0, fabric=fabric),)))
    assert text.startswith(f"GPU0 {said}" if said else "GPU0\n")


def test_a_refused_way_of_peer_to_peer_is_told_with_its_pairs():
    topology = matrix(3, lambda _one, _other: 4)
    paths = [
        replace(path, p2p={"read": "ok", "write": "ok" if at else "gpu_not_supported"})
        for at, path in enumerate(topology.paths)
    ]
    text = drawn(replace(topology, paths=tuple(paths)))
    assert "p2p write: ok (2 pairs); gpu not supported (GPU0-GPU1)\n" in text
    assert "p2p read" not in text


@pytest.mark.parametrize(
    ("label", "model", "said"),
    [
        ("RTX A6000", "NVIDIA Corporation GA102GL [RTX A6000]", "  RTX A6000"),
        ("NVIDIA L40S", "NVIDIA L40S", "  L40S"),
        ("", "NVIDIA GB200", "  GB200"),
        ("mine", "NVIDIA GB200", "  mine  GB200"),
    ],
)
def test_label_and_model_are_not_said_twice(label, model, said):
    gpu = Device("0000:01:00.0", Kind.GPU, 0, label=label, model=model, pcie_root="pci0000:00")
    assert drawn(Topology((gpu,))).splitlines()[-1].endswith(f"GPU0  0000:01:00.0{said}")


def test_a_disk_is_called_by_its_model():
    model = "Samsung SSD Controller [Pascal]"
    disk = Device("0000:02:00.0", Kind.NVME, 0, label="Pascal", model=model, pcie_root="pci0000:00")
    assert f"NVME0  0000:02:00.0  {model}\n" in drawn(Topology((disk,)))


def test_colour_adds_nothing_but_colour():
    coloured = drawn(hgx(), colour=True)
    assert "\x1b[" in coloured
    assert "\x1b[" not in drawn(hgx())


@pytest.mark.parametrize("name", ["[red]n[/red]", ":smile:", "[/]"])
def test_names_are_no_markup(name):
    topology = matrix(2, lambda _one, _other: 4, nics=1)
    nic = Device("NIC0", Kind.NIC, 0, label=name)
    assert f"NIC0 {name}" in drawn(replace(topology, devices=(*topology.gpus, nic)))


@pytest.mark.parametrize("text", ["[/q]", "a[red]y", ":smile:", "n\x1b[31m\udcff"])
def test_what_others_wrote_is_drawn_as_it_is_and_moves_no_cursor(text):
    shown = text.replace("\x1b", "\ufffd").replace("\udcff", "\ufffd")
    here = hgx(gpus=2, nics=1)
    one, other = here.gpus
    devices = (
        replace(one, model=text, pcie_root=f"root {text}"),
        replace(other, label=text, pcie_switch=text),
        Device("NIC0", Kind.NIC, 0, label=text),
    )
    domains = {gpu.name: f"domain {text}" for gpu in (one, other)}
    tree = replace(here, host=text, devices=devices, domains=domains)
    out = drawn(tree, f"line {text}")
    assert "\x1b" not in out
    assert out.splitlines()[0] == shown
    for said in (f"root {shown}", f"switch {shown}", f"domain {shown}", f"warning: line {shown}"):
        assert said in out
    assert out.count(shown) >= 8
    flat = matrix(2, lambda _one, _other: 4, nics=1)
    nic = Device("NIC0", Kind.NIC, 0, label=text)
    assert f"NIC0 {shown}" in drawn(replace(flat, devices=(*flat.gpus, nic)))


@given(topologies())
def test_whatever_was_read_can_be_drawn(topology):
    assert drawn(topology)
