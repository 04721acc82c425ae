"""A simulated machine as file trees: its /sys, its /proc, its cgroups, logs and users."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

from seedance_obs.sources.sim.adapter_files import add_adapter, write_nics
from seedance_obs.sources.sim.group_files import GroupFiles
from seedance_obs.sources.sim.host_power import zones
from seedance_obs.sources.sim.kernel_text import (
    host_stat_text,
    link_speed,
    meminfo_text,
    uptime_text,
)
from seedance_obs.sources.sim.machine import Machine, PciDevice, digest
from seedance_obs.sources.sim.process_files import add_process, move_process
from seedance_obs.sources.sim.programs import Program, programs
from seedance_obs.sources.sim.staging import Staging

NVIDIA, MELLANOX, BRIDGE_MAKER = 0x10DE, 0x15B3, 0x1000
CLASS_3D, CLASS_NVSWITCH, CLASS_NIC, CLASS_BRIDGE = 0x030200, 0x068000, 0x020700, 0x060400
SAMSUNG, CLASS_NVME = 0x144D, 0x010802
ROOT_UID = 0
HOST_PID_NAMESPACE = "pid:[4026531836]"  # the number that every kernel gives its first


def write_sysfs(machine: Machine, root: Path) -> None:
    """Write `root/sys`: the PCI tree with its links and attributes, and the NUMA nodes.

    The counters of network adapters are as at the machine's epoch; `write_nics` moves them on.
    """
    for gpu in machine.gpus:
        model = gpu.model
        link = (model.pcie_generation, model.pcie_width)
        _write_device(root, gpu.device, (NVIDIA, model.device_id, CLASS_3D), link)
    for switch in machine.nvswitches:
        _write_device(root, switch.device, (NVIDIA, 0x22A3, CLASS_NVSWITCH), (3, 2))
    for nic in machine.nics:
        add_adapter(_write_device(root, nic.device, (MELLANOX, 0x1021, CLASS_NIC), (5, 16)), nic)
    for disk in machine.nvme:
        folder = _write_device(root, disk.device, (SAMSUNG, 0xA824, CLASS_NVME), (4, 4))
        (folder / "nvme" / disk.name).mkdir(parents=True, exist_ok=True)
    _write_numa_nodes(machine, root / "sys/devices/system/node")
    write_nics(machine, root, 0.0)


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
    """Bring all that changes to how it is at t; call again to move on.

    That is `root/proc`, the users, the cgroups, the pod logs and the RAPL counters. A folder
    appears and goes by one rename, and a changing file is replaced, so a reader sees each whole
    or not at all. `epoch_unix` is the Unix time of t = 0, for the boot time.
    """
    alive = {program.pid: program for program in programs(machine, t)}
    groups = GroupFiles(machine, root, alive.values(), t)
    with Staging(root) as staging:
        _write_host_files(machine, staging, alive.values(), t, epoch_unix)
        groups.add(staging)
        _write_processes(machine, root, staging, alive, t)
        groups.prune(staging)
        _write_rapl(machine, root, staging, t)


def _write_processes(
    machine: Machine, root: Path, staging: Staging, alive: Mapping[int, Program], t: float
) -> None:
    present = {int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdecimal()}
    for pid in sorted(present - alive.keys()):
        staging.remove(f"proc/{pid}")
    for pid, program in sorted(alive.items()):
        if pid in present:
            move_process(machine, root, staging, program, t)
        else:
            add_process(machine, staging, program, t)


def _write_host_files(
    machine: Machine, staging: Staging, alive: Iterable[Program], t: float, epoch_unix: float
) -> None:
    users = [("root", ROOT_UID), *sorted(machine.tenants.items())]
    passwd = "".join(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n" for name, uid in users)
    staging.file("proc/uptime", uptime_text(machine, t))
    staging.file("proc/stat", host_stat_text(machine, t, epoch_unix=epoch_unix))
    staging.file("proc/meminfo", meminfo_text(machine, alive, t))
    staging.file("etc/passwd", passwd)
    boot = UUID(bytes=digest(machine.name, "boot", round(epoch_unix - machine.uptime_s))[:16])
    staging.file("proc/sys/kernel/random/boot_id", f"{boot}\n")
    staging.link("proc/self/ns/pid", HOST_PID_NAMESPACE)


def _write_rapl(machine: Machine, root: Path, staging: Staging, t: float) -> None:
    """Zones are folders of the virtual bus, each with a flat link in the class."""
    for zone in zones(machine, t):
        folder = f"devices/virtual/powercap/intel-rapl/{zone.path}"
        energy = f"{int(zone.joules * 1e6) % zone.range_uj}\n"
        if (root / "sys" / folder).is_dir():
            staging.file(f"sys/{folder}/energy_uj", energy)
            continue
        files = {
            "name": f"{zone.name}\n",
            "energy_uj": energy,
            "max_energy_range_uj": f"{zone.range_uj}\n",
        }
        staging.folder(f"sys/{folder}", files)
        name = zone.path.rpartition("/")[2]
        staging.link(f"sys/class/powercap/{name}", f"../../{folder}")
