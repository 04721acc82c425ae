"""A simulated process's files in /proc say one and the same of its memory and descriptors."""

import os
from pathlib import Path
from typing import Any

import pytest
from one_gpu import machine_with

from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_proc
from seedance_obs.sources.sim.machine import Machine

PAGE = 4096
TWO_GPUS = {
    "gpus": [
        {"model": "l40s", "pci": f"0000:{bus}:00.0", "path": [f"pci0000:{bus}"]}
        for bus in ("18", "3a")
    ]
}


def folders(machine: Machine, root: Path, t: float) -> list[Path]:
    """The processes at t, the pids in order."""
    write_proc(machine, root, t)
    found = [entry for entry in (root / "proc").iterdir() if entry.name.isdecimal()]
    return sorted(found, key=lambda entry: int(entry.name))


def folder(root: Path, t: float, **job: Any) -> Path:
    (only,) = folders(machine_with(job), root, t)
    return only


def statm(process: Path) -> list[int]:
    return [int(part) * PAGE for part in (process / "statm").read_text().split()]


def status(process: Path) -> dict[str, int]:
    """Bytes by the name of their line."""
    lines = [line.split() for line in (process / "status").read_text().splitlines()]
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[-1] == "kB"}


def meminfo(root: Path) -> dict[str, int]:
    lines = (root / "proc/meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def fds(process: Path) -> list[str]:
    return sorted(os.listdir(process / "fd"), key=int)


def test_statm_status_and_stat_agree(tmp_path: Path) -> None:
    process = folder(
        tmp_path,
        10.0,
        anonymous_mb=2600,
        file_mb=3000,
        shared_mb=50,
        swapped_mb=7,
        data_mb=40_000,
    )
    size, resident, shared, _, _, data, _ = statm(process)
    lines = status(process)
    assert resident - shared == lines["RssAnon"] == pytest.approx(2.6e9, abs=PAGE)
    assert shared == lines["RssFile"] + lines["RssShmem"]
    assert lines["RssFile"] == pytest.approx(3e9, abs=PAGE)
    assert lines["RssShmem"] == pytest.approx(50e6, abs=PAGE)
    assert data == lines["VmData"] + lines["VmStk"] == pytest.approx(40e9, abs=200_000)
    assert (size, resident) == (lines["VmSize"], lines["VmRSS"])
    assert size >= data + shared
    assert lines["VmSwap"] == pytest.approx(7e6, abs=PAGE)
    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
    assert (int(fields[20]), int(fields[21]) * PAGE) == (size, resident)


def test_anonymous_memory_grows_from_the_start_of_the_process(tmp_path: Path) -> None:
    growth = {"start_s": 100, "anonymous_mb": 100, "anonymous_mb_per_h": 50}
    born = folder(tmp_path, 98.0, **growth)
    assert status(born)["RssAnon"] == pytest.approx(100e6, abs=PAGE)
    later = folder(tmp_path, 98.0 + 7200, **growth)
    assert later == born
    assert status(later)["RssAnon"] == pytest.approx(200e6, abs=PAGE)
    assert statm(later)[1] - statm(later)[2] == status(later)["RssAnon"]
    assert status(later)["VmData"] >= status(later)["RssAnon"]


def test_what_processes_hold_is_not_available_and_mapped_files_are(tmp_path: Path) -> None:
    machine = machine_with({"anonymous_mb": 4000, "shared_mb": 1000, "file_mb": 9000})
    write_proc(machine, tmp_path, 5.0)
    found = meminfo(tmp_path)
    assert found["MemTotal"] == 64 * 2**30
    used = found["MemTotal"] - found["MemAvailable"]
    assert used == pytest.approx(6.4 * 2**30 + 5e9, abs=10_000)
    write_proc(machine_with({"anonymous_mb": 900_000}), tmp_path, 5.0)
    assert meminfo(tmp_path)["MemAvailable"] == 0


def test_each_descriptor_is_an_entry_of_fd(tmp_path: Path) -> None:
    leak = {"start_s": 2, "fds": 20, "fds_per_s": 9, "fd_limit": 1000}
    for t, count in ((0.0, 20), (10.0, 110), (10.2, 111), (1000.0, 1000)):
        process = folder(tmp_path, t, **leak)
        assert fds(process) == [str(number) for number in range(count)]
    assert os.readlink(process / "fd/0") == os.readlink(process / "fd/999") == "/dev/null"
    limit = (process / "limits").read_text().splitlines()[2]
    assert (limit[:25].strip(), limit[26:46].strip()) == ("Max open files", "1000")


def test_a_sawtooth_closes_what_it_opened(tmp_path: Path) -> None:
    saw = {"start_s": 2, "fds": 20, "fds_per_s": 10, "fds_reset_s": 30}
    found = [len(fds(folder(tmp_path, t, **saw))) for t in (0.0, 29.0, 30.0, 59.5, 61.0)]
    assert found == [20, 310, 20, 315, 30]


def test_more_descriptors_than_a_file_has_names(tmp_path: Path) -> None:
    process = folder(tmp_path, 5.0, fds=21_000)
    assert len(fds(process)) == 21_000
    assert all(os.readlink(process / "fd" / str(n)) == "/dev/null" for n in (9999, 10_000, 20_999))


def test_rank_0_is_the_parent_of_the_others_while_it_lives(tmp_path: Path) -> None:
    lost = [{"at_s": 10, "gpu": 0, "lost": True}]
    machine = machine_with({"gpus": [0, 1]}, faults=lost, **TWO_GPUS)
    first, second = folders(machine, tmp_path, 5.0)
    assert (parent(first), parent(second)) == ("1", first.name)
    (left,) = folders(machine, tmp_path, 11.0)
    assert (left, parent(left)) == (second, "1")


def parent(process: Path) -> str:
    by_stat = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
    lines = (process / "status").read_text().splitlines()
    by_status = next(line.split()[1] for line in lines if line.startswith("PPid:"))
    assert by_stat == by_status
    return by_stat


def test_a_container_has_its_mounts_a_pod_its_network_and_a_session_the_hosts(
    tmp_path: Path,
) -> None:
    pod = {"namespace": "n", "name": "p"}
    jobs: list[dict[str, Any]] = [
        {"name": "a", "share": 0.3, "pod": pod | {"container": "a"}},
        {"name": "b", "share": 0.3, "pod": pod | {"container": "b"}},
        {"name": "c", "share": 0.3, "pod": pod | {"name": "q", "container": "a"}},
    ]
    links = [
        (os.readlink(process / "ns/mnt"), os.readlink(process / "ns/net"))
        for process in folders(machine_with(*jobs, kubernetes=True), tmp_path, 5.0)
    ]
    mounts, nets = zip(*links, strict=True)
    assert len(set(mounts)) == 3
    assert nets[0] == nets[1] != nets[2]
    assert mounts[0].startswith("mnt:[4026532")
    sessions = {
        (os.readlink(process / "ns/mnt"), os.readlink(process / "ns/net"))
        for process in folders(load_machine("a100-pcie"), tmp_path / "sessions", 5.0)
    }
    assert len(sessions) == 1
