"""PCI facts from trees laid out as Linux lays them out."""

import os
from pathlib import Path

import pytest

from seedance_obs.sources.sysfs import (
    PciFacts,
    cpu_nodes,
    endpoints,
    number_set,
    nvidia_gpus,
    read_pci,
)

SWITCHED = "pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:08.0/0000:43:00.0"
GPU = {
    "vendor": "0x10de",
    "class": "0x030200",
    "numa_node": "1",
    "current_link_speed": "16.0 GT/s PCIe",
    "max_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "8",
    "max_link_width": "16",
}


def plug(root: Path, place: str, files: dict[str, str]) -> Path:
    """Put a device at a place below /sys/devices and link it as the bus does."""
    device = root / "devices" / place
    device.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (device / name).write_text(text + "\n")
    bus = root / "bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    (bus / device.name).symlink_to(os.path.relpath(device, bus))
    return device


def facts(root: Path, place: str, **changes: str) -> PciFacts:
    device = plug(root, place, {**GPU, **changes})
    found = read_pci(root, device.name)
    assert found is not None
    return found


def test_a_gpu_below_a_switch_has_all_its_facts(tmp_path: Path) -> None:
    assert facts(tmp_path, SWITCHED) == PciFacts(
        bus_id="0000:43:00.0",
        pcie_root="pci0000:40",
        ports=("0000:40:01.1", "0000:41:00.0", "0000:42:08.0"),
        numa_node=1,
        pcie_generation=4,
        pcie_generation_max=5,
        pcie_width=8,
        pcie_width_max=16,
    )


@pytest.mark.parametrize(
    ("place", "root", "port", "switch"),
    [
        ("pci0000:16/0000:16:01.0/0000:17:00.0", "pci0000:16", "0000:16:01.0", None),
        ("pci0000:00/0000:00:05.0", "pci0000:00", None, None),  # a virtual machine's flat bus
        (
            "pci0000:80/0000:80:01.1/0000:81:00.0/0000:82:00.0"
            "/0000:83:00.0/0000:84:04.0/0000:85:00.0",
            "pci0000:80",
            "0000:80:01.1",
            "0000:83:00.0",
        ),
        (
            "pci0008:00/0008:00:00.0/0008:01:00.0/0008:02:00.0/0008:06:00.0",
            "pci0008:00",
            "0008:00:00.0",
            "0008:01:00.0",
        ),
        (
            "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0",
            "pci0000:00",
            "10000:00:02.0",
            None,
        ),
        (
            "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/guid/pci0001:00/0001:00:00.0",
            "pci0001:00",
            None,
            None,
        ),
    ],
    ids=["root port", "VM", "two switches", "domain 8", "VMD", "Hyper-V"],
)
def test_position_in_the_tree(
    tmp_path: Path, place: str, root: str, port: str | None, switch: str | None
) -> None:
    found = facts(tmp_path, place)
    ports = found.ports or ()
    assert found.pcie_root == root
    assert ports[:1] == (() if port is None else (port,))
    assert ports[1:-1:2][-1:] == (() if switch is None else (switch,))


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("2.5 GT/s", 1),
        ("5 GT/s", 2),
        ("8 GT/s", 3),
        ("8.0 GT/s PCIe", 3),
        ("64.0 GT/s PCIe", 6),
        ("128.0 GT/s PCIe", 7),
        ("Unknown", None),
        ("Unknown speed", None),
        ("9.0 GT/s PCIe", None),
        ("", None),
    ],
)
def test_link_speed_in_every_kernels_words(
    tmp_path: Path, text: str, generation: int | None
) -> None:
    assert facts(tmp_path, SWITCHED, current_link_speed=text).pcie_generation == generation


@pytest.mark.parametrize(
    ("text", "width"), [("16", 16), ("x4", 4), ("0", None), ("255", None), ("wide", None)]
)
def test_link_width(tmp_path: Path, text: str, width: int | None) -> None:
    assert facts(tmp_path, SWITCHED, current_link_width=text).pcie_width == width


@pytest.mark.parametrize(("text", "node"), [("0", 0), ("-1", None), ("", None), ("?", None)])
def test_numa_node_minus_one_is_unknown(tmp_path: Path, text: str, node: int | None) -> None:
    assert facts(tmp_path, SWITCHED, numa_node=text).numa_node == node


@pytest.mark.parametrize("name", sorted(GPU.keys() - {"vendor", "class"}))
def test_a_missing_file_costs_its_own_fact_only(tmp_path: Path, name: str) -> None:
    device = plug(tmp_path, SWITCHED, GPU)
    whole = read_pci(tmp_path, device.name)
    (device / name).unlink()
    (device / name).mkdir()  # unreadable even to root
    less = read_pci(tmp_path, device.name)
    assert whole is not None
    assert less is not None
    different = [fact for fact in PciFacts.__slots__ if getattr(whole, fact) != getattr(less, fact)]
    assert len(different) == 1
    assert getattr(less, different[0]) is None


def test_a_dangling_link_still_tells_the_position(tmp_path: Path) -> None:
    device = plug(tmp_path, SWITCHED, {})
    device.rmdir()
    ports = ("0000:40:01.1", "0000:41:00.0", "0000:42:08.0")
    assert read_pci(tmp_path, device.name) == PciFacts(device.name, "pci0000:40", ports)


def test_a_device_that_is_not_listed_is_none(tmp_path: Path) -> None:
    assert read_pci(tmp_path, "0000:43:00.0") is None


def test_only_nvidia_gpus_are_counted(tmp_path: Path) -> None:
    plug(tmp_path, SWITCHED, GPU)
    plug(tmp_path, "pci0008:00/0008:06:00.0", {**GPU, "class": "0x030000"})
    plug(tmp_path, "pci0000:40/0000:43:00.1", {**GPU, "class": "0x040300"})  # its sound
    plug(tmp_path, "pci0000:40/0000:44:00.0", {**GPU, "class": "0x068000"})  # an NVSwitch
    plug(tmp_path, "pci0000:40/0000:03:00.0", {**GPU, "vendor": "0x1a03", "class": "0x030000"})
    plug(tmp_path, "pci0000:40/0000:05:00.0", {})
    assert nvidia_gpus(tmp_path) == ["0000:43:00.0", "0008:06:00.0"]


def test_virtual_functions_and_passed_through_gpus_are_not_expected(tmp_path: Path) -> None:
    whole = plug(tmp_path, "pci0000:00/0000:01:00.0", GPU)
    virtual = plug(tmp_path, "pci0000:00/0000:01:00.4", GPU)
    (virtual / "physfn").symlink_to(whole)
    away = plug(tmp_path, "pci0000:00/0000:02:00.0", GPU)
    (away / "driver").symlink_to("../../../bus/pci/drivers/vfio-pci")
    (whole / "driver").symlink_to("../../../bus/pci/drivers/nvidia")
    assert nvidia_gpus(tmp_path) == ["0000:01:00.0"]


def test_a_host_without_gpus_and_a_host_without_a_tree_differ(tmp_path: Path) -> None:
    assert nvidia_gpus(tmp_path) is None
    (tmp_path / "bus/pci/devices").mkdir(parents=True)
    assert nvidia_gpus(tmp_path) == []


def test_adapters_disks_and_switches_are_endpoints_under_the_names_linux_has_for_them(
    tmp_path: Path,
) -> None:
    plug(tmp_path, SWITCHED, GPU)
    nic = plug(tmp_path, "pci0000:40/0000:41:00.0", {"class": "0x020700"})
    (nic / "infiniband/mlx5_3").mkdir(parents=True)
    (nic / "net/ibs3").mkdir(parents=True)
    ethernet = plug(tmp_path, "pci0000:40/0000:42:00.0", {"class": "0x020000"})
    (ethernet / "virtio1/net/ens3").mkdir(parents=True)
    disk = plug(tmp_path, "pci0000:40/0000:44:00.0", {"class": "0x010802", "numa_node": "1"})
    (disk / "nvme/nvme0").mkdir(parents=True)
    plug(tmp_path, "pci0000:40/0000:45:00.0", {"class": "0x068000", "vendor": "0x10de"})
    plug(tmp_path, "pci0000:40/0000:46:00.0", {"class": "0x068000", "vendor": "0x8086"})
    plug(tmp_path, "pci0000:40/0000:47:00.0", {"class": "0x010601"})  # SATA
    assert [(each.pci.bus_id, each.kind, each.label) for each in endpoints(tmp_path)] == [
        ("0000:41:00.0", "nic", "mlx5_3"),
        ("0000:42:00.0", "nic", "ens3"),
        ("0000:44:00.0", "nvme", "nvme0"),
        ("0000:45:00.0", "nvswitch", ""),
    ]
    assert endpoints(tmp_path)[2].pci.numa_node == 1


def test_virtual_functions_of_an_adapter_are_no_endpoints(tmp_path: Path) -> None:
    whole = plug(tmp_path, "pci0000:40/0000:41:00.0", {"class": "0x020000"})
    virtual = plug(tmp_path, "pci0000:40/0000:41:00.1", {"class": "0x020000"})
    (virtual / "physfn").symlink_to(whole)
    assert [each.pci.bus_id for each in endpoints(tmp_path)] == ["0000:41:00.0"]


def test_a_bus_that_cannot_be_read_is_no_host_without_endpoints(tmp_path: Path) -> None:
    assert endpoints(tmp_path) is None


def test_numa_nodes_of_gpu_memory_have_no_cpus(tmp_path: Path) -> None:
    assert cpu_nodes(tmp_path) is None
    (tmp_path / "devices/system/node").mkdir(parents=True)
    (tmp_path / "devices/system/node/has_cpu").write_text("0-3\n")
    assert cpu_nodes(tmp_path) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", {0}),
        ("0-2,8", {0, 1, 2, 8}),
        ("3-1", set()),
        ("", None),
        ("0-", None),
        ("a", None),
        ("-1", None),
    ],
)
def test_lists_of_the_kernel(text: str, numbers: set[int] | None) -> None:
    assert number_set(text) == numbers
