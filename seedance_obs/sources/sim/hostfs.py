"""A simulated machine as file trees: its /sys, its /proc and its list of users."""

import os
import shutil
from pathlib import Path

from seedance_obs.sources.sim.kernel_text import (
    cgroup_text,
    link_speed,
    meminfo_text,
    stat_text,
    status_text,
)
from seedance_obs.sources.sim.machine import Machine, PciDevice
from seedance_obs.sources.sim.physics import Process, boards

NVIDIA, MELLANOX, BRIDGE_MAKER = 0x10DE, 0x15B3, 0x1000
CLASS_3D, CLASS_NVSWITCH, CLASS_NIC, CLASS_BRIDGE = 0x030200, 0x068000, 0x020700, 0x060400
SAMSUNG, CLASS_NVME = 0x144D, 0x010802
ROOT_UID = 0


def write_sysfs(machine: Machine, root: Path) -> None:
    """Write `root/sys`: the PCI tree with its links and attributes, and the NUMA nodes."""
    for gpu in machine.gpus:
        model = gpu.model
        link = (model.pcie_generation, model.pcie_width)
        _write_device(root, gpu.device, (NVIDIA, model.device_id, CLASS_3D), link)
    for switch in machine.nvswitches:
        _write_device(root, switch.device, (NVIDIA, 0x22A3, CLASS_NVSWITCH), (3, 2))
    for nic in machine.nics:
        folder = _write_device(root, nic.device, (MELLANOX, 0x1021, CLASS_NIC), (5, 16))
        (folder / "infiniband" / nic.name).mkdir(parents=True, exist_ok=True)
    for disk in machine.nvme:
        folder = _write_device(root, disk.device, (SAMSUNG, 0xA824, CLASS_NVME), (4, 4))
        (folder / "nvme" / disk.name).mkdir(parents=True, exist_ok=True)
    _write_numa_nodes(machine, root / "sys/devices/system/node")


def _write_numa_nodes(machine: Machine, nodes: Path) -> None:
    for node, cpus in enumerate(machine.numa_cpus):
        (nodes / f"node{node}").mkdir(parents=True, exist_ok=True)
        (nodes / f"node{node}/cpulist").write_text(f"{cpus}\n")
    with_cpus = [str(node) for node, cpus in enumerate(machine.numa_cpus) if cpus]
    if with_cpus:
        (nodes / "has_cpu").write_text(",".join(with_cpus) + "\n")


def _write_device(
    root: Path, device: PciDevice, identity: tuple[int, int, int], link: tuple[int, int]
) -> Path:
    folder = root / "sys/devices" / device.path[0]
    for bridge in device.path[1:]:
        folder = folder / bridge
        _write_function(root, folder, (BRIDGE_MAKER, 0xC030, CLASS_BRIDGE), device.numa, link)
    folder = folder / device.pci
    _write_function(root, folder, identity, device.numa, link)
    return folder


def _write_function(
    root: Path,
    folder: Path,
    identity: tuple[int, int, int],
    numa: int | None,
    link: tuple[int, int],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    vendor, device, device_class = identity
    generation, width = link
    attributes = {
        "vendor": f"0x{vendor:04x}",
        "device": f"0x{device:04x}",
        "class": f"0x{device_class:06x}",
        "numa_node": "-1" if numa is None else str(numa),
        "current_link_speed": link_speed(generation),
        "max_link_speed": link_speed(generation),
        "current_link_width": str(width),
        "max_link_width": str(width),
    }
    for name, text in attributes.items():
        (folder / name).write_text(f"{text}\n")
    _link_into_bus(root, folder)


def _link_into_bus(root: Path, folder: Path) -> None:
    bus = root / "sys/bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    link = bus / folder.name
    if not link.is_symlink():
        link.symlink_to(Path("../../..") / folder.relative_to(root / "sys"))


def write_proc(machine: Machine, root: Path, t: float, *, epoch_unix: float = 0.0) -> None:
    """Bring `root/proc` and `root/etc/passwd` to how they are at t; call again to move on.

    A process folder appears and goes by one rename, and a changing file is replaced, so a reader
    sees each whole or not at all. `epoch_unix` is the Unix time of t = 0, for the boot time.
    """
    proc = root / "proc"
    staging = root / ".staging"
    shutil.rmtree(staging, ignore_errors=True)
    for folder in (proc, staging, root / "etc"):
        folder.mkdir(parents=True, exist_ok=True)
    alive = {p.pid: p for board in boards(machine) for p in board.processes(t)}
    present = {int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal()}
    for pid in sorted(present - alive.keys()):
        (proc / str(pid)).rename(staging / f"gone-{pid}")
    for pid in sorted(alive.keys() - present):
        _write_process(machine, staging / str(pid), alive[pid])
        (staging / str(pid)).rename(proc / str(pid))
    _write_host_files(machine, root, t, epoch_unix)
    shutil.rmtree(staging)


def _write_process(machine: Machine, folder: Path, process: Process) -> None:
    folder.mkdir()
    uid = machine.tenants[process.workload.tenant]
    (folder / "stat").write_text(stat_text(machine, process))
    (folder / "status").write_text(status_text(process, uid))
    (folder / "cgroup").write_text(cgroup_text(machine, process, uid))
    (folder / "comm").write_text(f"{process.workload.name[:15]}\n")


def _write_host_files(machine: Machine, root: Path, t: float, epoch_unix: float) -> None:
    up = machine.uptime_s + t
    cpus = max(1, len(machine.numa_cpus)) * 8
    users = [("root", ROOT_UID), *sorted(machine.tenants.items())]
    passwd = "".join(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n" for name, uid in users)
    _replace(root, "proc/uptime", f"{up:.2f} {up * cpus:.2f}\n")
    _replace(root, "proc/stat", f"btime {int(epoch_unix - machine.uptime_s)}\n")
    _replace(root, "proc/meminfo", meminfo_text(machine))
    _replace(root, "etc/passwd", passwd)


def _replace(root: Path, name: str, text: str) -> None:
    fresh = root / ".staging" / name.replace("/", "-")
    fresh.write_text(text)
    os.replace(fresh, root / name)
