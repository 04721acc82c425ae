"""Where a PCI device hangs, as Linux tells it: its ports, its switch, its NUMA node, its link.

Beside the GPUs that is told of the devices whose distance to a GPU matters: network adapters,
NVMe disks and NVSwitches.

The position is in the path itself: `/sys/bus/pci/devices/<address>` is a link into
`/sys/devices/pci0000:40/<root port>/<switch upstream>/<switch downstream>/<device>`.
Each fact stands alone: one that is missing, unreadable or marked unknown by the kernel is None
and costs no other.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from seedance_obs.pcie import PciId, generation, width

NVIDIA_VENDOR = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")  # VGA compatible controller, 3D controller
_NIC_CLASS, _NVME_CLASS, _BRIDGE_CLASS = "0x02", "0x0108", "0x0680"

_ROOT_COMPLEX = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class PciFacts:
    """Position and link of one PCI device; None where the kernel does not say.

    `pcie_root` is the root complex as Kubernetes spells it (`pci0000:40`), `ports` the bridges
    from there down to the device's parent: none on a flat bus, else the root port first, then
    the upstream and the downstream port of each switch. Generations count from 1, widths are
    lanes.
    """

    bus_id: str
    pcie_root: str | None = None
    ports: tuple[str, ...] | None = None
    pci_id: PciId | None = None
    numa_node: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A device whose distance to a GPU matters; `kind` is nic, nvme or nvswitch.

    `label` is the name Linux has for it (`mlx5_0`, `ens3`, `nvme0`), empty where it has none.
    """

    kind: str
    label: str
    pci: PciFacts


def read_pci(root: str | Path, bus_id: str) -> PciFacts | None:
    """The facts of one device (canonical bus id) under a sysfs root, such as `/host/sys`.

    None where this sysfs does not list the device at all.
    """
    device = _devices(root) / bus_id
    if not os.path.lexists(device):
        return None
    pcie_root, ports = _position(os.path.realpath(device))
    return PciFacts(
        bus_id=bus_id,
        pcie_root=pcie_root,
        ports=ports,
        pci_id=_pci_id(device),
        numa_node=_numa_node(_text(device / "numa_node")),
        pcie_generation=generation(_text(device / "current_link_speed") or ""),
        pcie_generation_max=generation(_text(device / "max_link_speed") or ""),
        pcie_width=width(_text(device / "current_link_width") or ""),
        pcie_width_max=width(_text(device / "max_link_width") or ""),
    )


def nvidia_gpus(root: str | Path) -> list[str] | None:
    """Canonical bus ids of the NVIDIA GPUs that this host's driver should show, in order.

    Left out are virtual functions of a GPU and GPUs handed to a virtual machine (`vfio-pci`).
    None where the PCI tree cannot be read, which is not the same as a host without a GPU.
    """
    try:
        names = sorted(os.listdir(_devices(root)))
    except OSError:
        return None
    return [name for name in names if _is_own_gpu(_devices(root) / name)]


def endpoints(root: str | Path) -> list[Endpoint] | None:
    """The network adapters, NVMe disks and NVSwitches of the host, by address.

    Virtual functions and devices handed to a virtual machine are left out, as for GPUs. None where
    the PCI tree cannot be read.
    """
    try:
        names = sorted(os.listdir(_devices(root)))
    except OSError:
        return None
    found = []
    for name in names:
        device = _devices(root) / name
        kind = _endpoint_kind(device)
        pci = read_pci(root, name) if kind and _is_ours(device) else None
        if kind and pci:
            found.append(Endpoint(kind, _label(device, kind), pci))
    return found


def cpu_nodes(root: str | Path) -> frozenset[int] | None:
    """The NUMA nodes that have CPUs; memory of a GPU can be a node without any.

    None where the kernel does not say.
    """
    nodes = Path(root) / "devices/system/node"
    listed = _text(nodes / "has_cpu")
    return None if listed is None else number_set(listed)


def number_set(text: str) -> frozenset[int] | None:
    """The numbers of a kernel list such as `0-3,8`; None where it is no such list."""
    if re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", text, re.ASCII) is None:
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def _endpoint_kind(device: Path) -> str | None:
    device_class = _text(device / "class") or ""
    if device_class.startswith(_NIC_CLASS):
        return "nic"
    if device_class.startswith(_NVME_CLASS):
        return "nvme"
    if device_class.startswith(_BRIDGE_CLASS) and _text(device / "vendor") == NVIDIA_VENDOR:
        return "nvswitch"
    return None


def _label(device: Path, kind: str) -> str:
    """What Linux calls a device; an InfiniBand or RDMA name before a network interface's."""
    folders = ("infiniband", "net", "virtio*/net") if kind == "nic" else ("nvme",)
    for folder in folders:
        names = sorted(entry.name for entry in device.glob(f"{folder}/*"))
        if names:
            return names[0]
    return ""


def _devices(root: str | Path) -> Path:
    return Path(root) / "bus/pci/devices"


def _is_own_gpu(device: Path) -> bool:
    if _text(device / "vendor") != NVIDIA_VENDOR:
        return False
    if not (_text(device / "class") or "").startswith(GPU_CLASSES):
        return False
    return _is_ours(device)


def _is_ours(device: Path) -> bool:
    if os.path.lexists(device / "physfn"):
        return False
    return os.path.basename(os.path.realpath(device / "driver")) != "vfio-pci"


def _position(path: str) -> tuple[str | None, tuple[str, ...] | None]:
    """The root complex and the ports between it and the device, top down.

    A volume management device opens a second PCI tree inside the first (`pci10000:00` below
    `pci0000:00`): the outer one is the root complex, the inner one holds the ports.
    """
    parts = path.split("/")
    roots = [place for place, part in enumerate(parts) if _ROOT_COMPLEX.fullmatch(part)]
    if not roots:
        return None, None
    inside = tuple(part for part in parts[roots[-1] + 1 :] if _ADDRESS.fullmatch(part))
    return parts[roots[0]], inside[:-1]


def _pci_id(device: Path) -> PciId | None:
    try:
        return PciId(*(int(_text(device / name) or "", 16) for name in PciId._fields))
    except ValueError:
        return None


def _numa_node(text: str | None) -> int | None:
    node = _integer(text)
    return node if node is not None and node >= 0 else None


def _integer(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
