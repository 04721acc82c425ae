"""The simulated /sys and /proc say what NVML and the description say."""

import threading
from pathlib import Path

import pytest

from seedance_obs.identity import canonical_bus_id
from seedance_obs.sources.sim.fleet import load_machine, machine_names
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.library import SimNvml


def pids(root: Path) -> set[int]:
    return {int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdecimal()}


def nvml_pids(name: str, t: float) -> set[int]:
    found: set[int] = set()
    library = SimNvml(load_machine(name), lambda: t)
    if library.machine.driver_version is None:
        return found
    library.call("nvmlInit")
    for gpu in library.machine.gpus:
        if t < library.machine.lost_at(gpu.index):
            device = f"gpu{gpu.index}"
            processes = library.call("nvmlDeviceGetComputeRunningProcesses", device)
            found |= {process["pid"] for process in processes}  # type: ignore[index,union-attr]  # plain
    return found


@pytest.mark.parametrize("name", machine_names())
def test_every_pci_device_is_where_the_description_puts_it(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    write_sysfs(machine, tmp_path)
    for device in machine.pci_devices():
        link = tmp_path / "sys/bus/pci/devices" / device.pci
        assert link.is_symlink()
        expected = tmp_path.joinpath("sys/devices", *device.path, device.pci)
        assert link.resolve(strict=True) == expected.resolve()
        numa = "-1" if device.numa is None else str(device.numa)
        assert (link / "numa_node").read_text() == f"{numa}\n"
    nodes = sorted(
        (tmp_path / "sys/devices/system/node").glob("node*"), key=lambda node: int(node.name[4:])
    )
    cpus = [(node / "cpulist").read_text().strip() for node in nodes]
    assert cpus == list(machine.numa_cpus)


@pytest.mark.parametrize("name", [n for n in machine_names() if n != "no-gpu"])
def test_sysfs_agrees_with_nvml_on_every_board(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    write_sysfs(machine, tmp_path)
    library = SimNvml(machine, lambda: 0.0)
    library.call("nvmlInit")
    for gpu in machine.gpus:
        info = library.call("nvmlDeviceGetPciInfo_v3", f"gpu{gpu.index}")
        assert isinstance(info, dict)
        bus = canonical_bus_id(info["busId"])
        folder = tmp_path / "sys/bus/pci/devices" / str(bus)
        identity = int((folder / "device").read_text(), 16) << 16 | 0x10DE
        assert identity == info["pciDeviceId"]
        assert (folder / "vendor").read_text() == "0x10de\n"
        assert (folder / "class").read_text() == "0x030200\n"
        width = library.call("nvmlDeviceGetMaxPcieLinkWidth", f"gpu{gpu.index}")
        assert (folder / "max_link_width").read_text() == f"{width}\n"


def test_writing_sysfs_twice_changes_nothing(tmp_path: Path) -> None:
    machine = load_machine("v100-cubemesh")
    write_sysfs(machine, tmp_path)
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    write_sysfs(machine, tmp_path)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", machine_names())
def test_proc_has_the_processes_that_nvml_lists_and_those_about_to_open_a_gpu(
    name: str, tmp_path: Path
) -> None:
    machine = load_machine(name)
    for t in (0.0, 11.0, 19.0, 40.0, 5.0):
        write_proc(machine, tmp_path, t)
        soon = set().union(*(nvml_pids(name, t + 0.1 * step) for step in range(20)))
        assert nvml_pids(name, t) <= pids(tmp_path) <= soon
    assert not (tmp_path / ".staging").exists()


def test_a_process_names_its_user_and_its_start(tmp_path: Path) -> None:
    machine = load_machine("a100-pcie")
    write_proc(machine, tmp_path, 17.0, epoch_unix=1_800_000_000.0)
    users = {
        line.split(":")[2]: line.split(":")[0]
        for line in (tmp_path / "etc/passwd").read_text().splitlines()
    }
    starts = {}
    for pid in pids(tmp_path):
        folder = tmp_path / "proc" / str(pid)
        status = (folder / "status").read_text()
        uid = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1]
        fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        starts[(folder / "comm").read_text().strip()] = (users[uid], int(fields[19]))
    booted = int(machine.uptime_s) * 100
    assert starts["thumbnails"] == ("vision", booted - 200)
    assert starts["eval-sweep"] == ("research", booted + 1300)
    assert starts["monte-carlo"] == ("risk", booted - 200)
    stat = (tmp_path / "proc/stat").read_text()
    assert stat.endswith(f"btime {1_800_000_000 - int(machine.uptime_s)}\n")
    assert float((tmp_path / "proc/uptime").read_text().split()[0]) == machine.uptime_s + 17


def test_pods_live_in_pod_groups_and_others_in_user_sessions(tmp_path: Path) -> None:
    for name, start in (
        ("h100-nvswitch", "0::/kubepods"),
        ("a100-pcie", "0::/user.slice/user-200"),
    ):
        write_proc(load_machine(name), tmp_path / name, 1.0)
        groups = [path.read_text() for path in (tmp_path / name / "proc").glob("*/cgroup")]
        assert groups
        assert all(group.startswith(start) for group in groups)


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path) -> None:
    machine = load_machine("a100-pcie")
    leftover = tmp_path / ".staging" / "1"
    leftover.mkdir(parents=True)
    (leftover / "stat").write_text("half")
    write_proc(machine, tmp_path, 0.5)
    assert pids(tmp_path) == nvml_pids("a100-pcie", 0.5)
    assert not (tmp_path / ".staging").exists()


def test_a_reader_sees_whole_files_while_the_machine_moves_on(tmp_path: Path) -> None:
    machine = load_machine("a100-pcie")
    write_proc(machine, tmp_path, 0.0)
    stop = threading.Event()
    seen: list[str] = []

    def read() -> None:
        while not stop.is_set():
            for folder in (tmp_path / "proc").iterdir():
                try:
                    seen.append((folder / "stat" if folder.is_dir() else folder).read_text())
                except FileNotFoundError:
                    continue  # gone between listing and reading, as on a real host

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(1, 60):
        write_proc(machine, tmp_path, step * 1.5)
    stop.set()
    reader.join()
    assert seen
    assert all(text.endswith("\n") for text in seen)
    assert {len(text.rsplit(")", 1)[1].split()) for text in seen if ")" in text} == {50}
