"""Writes the machine it runs on as a folder that the tests can replay.

The folder holds what the driver answered and how long each call took (`nvml.jsonl`), the PCI tree
around GPUs, adapters, disks and NVSwitches (`pci.json`), the NUMA nodes with CPUs (`has_cpu`), the
dcgm-exporter page (`dcgm.prom`) and `host.toml`, which says what the others are. UUIDs, serial
numbers, host, pod and job names are replaced by numbered stand-ins.
"""

import json
import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seedance_obs import __version__
from seedance_obs.config import NodeSettings
from seedance_obs.errors import SourceUnavailableError, UsageError
from seedance_obs.processes import kill_process, python_command, python_environment
from seedance_obs.sources.dcgm.http_page import PageFetcher
from seedance_obs.sources.nvml.anonymiser import Anonymiser
from seedance_obs.sources.nvml.recording import read_calls
from seedance_obs.sources.sysfs import endpoints, nvidia_gpus

PASSES = 2
PAUSE_SECONDS = 1.0
PCI_FILES = (
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "class",
    "numa_node",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
)
PCI_NAMES = ("infiniband", "nvme")  # folders of names that the kernel gives, not people
# Labels that describe a device; whatever else a page's owner added may name people or projects.
DEVICE_LABEL = re.compile(
    r"gpu|uuid|gpu_uuid|pci_bus_id|device|model_?name|GPU_I_.+|DCGM_.+_VERSION|"
    r"DCGM_.+MINOR_NUMBER|err_code|err_msg|xid|window_size_in_ms|nvlink|nvswitch|cpu|cpucore|vgpu",
    re.IGNORECASE,
)
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)+)"')


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the capture: its name and, in a sentence, what is in it or why it is missing."""

    name: str
    about: str
    written: bool


def capture(folder: Path, settings: NodeSettings, *, deadline_seconds: float) -> list[Part]:
    """Write the machine folder; a part that cannot be had is left out and said so.

    Raises:
        UsageError: the folder exists and is not empty, or cannot be made.
    """
    _make_folder(folder)
    anonymiser = Anonymiser(host_names=(platform.node(), platform.node().partition(".")[0]))
    parts = [
        _capture_nvml(folder / "nvml.jsonl", settings, anonymiser, deadline_seconds),
        _capture_pci(folder / "pci.json", settings),
        _capture_numa(folder / "has_cpu", settings),
        _capture_dcgm(folder / "dcgm.prom", settings, anonymiser),
    ]
    text = anonymiser.text(_host_toml(parts, settings.nvml_library))
    (folder / "host.toml").write_text(text, encoding="utf-8")
    return [*parts, Part("host.toml", "what the other files are", written=True)]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty: name a new folder for the capture")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from error


def _capture_nvml(
    file: Path, settings: NodeSettings, anonymiser: Anonymiser, deadline_seconds: float
) -> Part:
    if not settings.nvml_enabled:
        return Part(file.name, "NVML is switched off in the settings", written=False)
    with tempfile.TemporaryDirectory(prefix="seedance-capture-") as folder:
        raw = Path(folder) / file.name  # real names stay out of the capture, whatever happens
        reason = _record(raw, settings, deadline_seconds)
        lines = raw.read_text(encoding="utf-8").splitlines() if raw.exists() else []
    file.write_text("".join(f"{line}\n" for line in anonymiser.recording(lines)), encoding="utf-8")
    return Part(file.name, "; ".join(filter(None, (reason, _summary(lines)))), written=True)


def _record(raw: Path, settings: NodeSettings, deadline_seconds: float) -> str:
    """Record the driver in a child process; why the recording is short, or nothing."""
    command = python_command(
        "seedance_obs.sources.nvml.recorder",
        settings.nvml_library,
        str(raw),
        str(PASSES),
        str(PAUSE_SECONDS),
    )
    process = subprocess.Popen(
        command, env=python_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _, stderr = process.communicate(timeout=deadline_seconds)
    except subprocess.TimeoutExpired:
        kill_process(process, grace_seconds=1.0)
        return f"the driver did not finish within {deadline_seconds:g} s"
    said = "".join(stderr.decode(errors="replace").splitlines()[-1:])
    if process.returncode == UsageError.exit_code:
        raise UsageError(said)
    if process.returncode:
        return said or f"the driver's library ended the recorder with status {process.returncode}"
    return ""


def _summary(lines: list[str]) -> str:
    calls = list(read_calls(lines))
    hung = [recorded.call for recorded in calls if recorded.hung]
    text = f"{len(calls)} driver calls"
    if hung:
        function, device, args = hung[0]
        text += f", of which {function}({', '.join(map(str, (device, *args)))}) never returned"
    return text


def _capture_pci(file: Path, settings: NodeSettings) -> Part:
    sysfs = Path(settings.node_root) / "sys"
    gpus = nvidia_gpus(sysfs)
    if gpus is None:
        return Part(file.name, "there is no PCI bus", written=False)
    others = [endpoint.pci.bus_id for endpoint in endpoints(sysfs) or ()]
    devices = {
        name: entry for bus_id in (*gpus, *others) for name, entry in _pci_chain(sysfs, bus_id)
    }
    file.write_text(json.dumps(devices, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    about = f"{len(gpus)} NVIDIA GPUs and {len(others)} devices to reach on the PCI bus"
    return Part(file.name, about, written=True)


def _capture_numa(file: Path, settings: NodeSettings) -> Part:
    try:
        nodes = Path(settings.node_root) / "sys/devices/system/node"
        file.write_text((nodes / "has_cpu").read_text(encoding="ascii"), encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return Part(file.name, "the kernel does not say which NUMA nodes have CPUs", written=False)
    return Part(file.name, "the NUMA nodes with CPUs", written=True)


def _pci_chain(sysfs: Path, bus_id: str) -> Iterator[tuple[str, dict[str, object]]]:
    real = Path(os.path.realpath(sysfs / "bus/pci/devices" / bus_id))
    base = Path(os.path.realpath(sysfs / "devices"))
    for device in (real, *real.parents):
        if device == base or base not in device.parents:
            return
        if (device / "vendor").exists():
            path = str(device.relative_to(base))
            yield device.name, {"path": path, "files": _pci_files(device), **_pci_names(device)}


def _pci_files(device: Path) -> dict[str, str]:
    facts = {}
    for name in PCI_FILES:
        try:
            facts[name] = (device / name).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
    return facts


def _pci_names(device: Path) -> dict[str, object]:
    names = {
        f"{folder}/{entry.name}" for folder in PCI_NAMES for entry in device.glob(f"{folder}/*")
    }
    return {"names": sorted(names)} if names else {}


def _capture_dcgm(file: Path, settings: NodeSettings, anonymiser: Anonymiser) -> Part:
    if not settings.dcgm_url:
        return Part(file.name, "no DCGM page: name one with --dcgm-url", written=False)
    try:
        fetcher = PageFetcher(
            settings.dcgm_url,
            timeout_seconds=settings.dcgm_timeout_seconds,
            limit_bytes=settings.dcgm_page_limit_bytes,
            monotonic=time.monotonic,
        )
        page = fetcher.fetch().text
    except SourceUnavailableError as error:
        return Part(file.name, str(error), written=False)
    file.write_text(anonymiser.text(_without_owners(page)), encoding="utf-8")
    return Part(file.name, f"{len(page.splitlines())} lines of a DCGM page", written=True)


def _without_owners(page: str) -> str:
    names: dict[tuple[str, str], str] = {}

    def stand_in(match: re.Match[str]) -> str:
        label, value = match[1], match[2]
        if DEVICE_LABEL.fullmatch(label):
            return match[0]
        count = sum(1 for known, _ in names if known == label) + 1
        return f'{label}="{names.setdefault((label, value), f"{label.lower()}-{count}")}"'

    return _LABEL.sub(stand_in, page)


def _host_toml(parts: list[Part], nvml_library: str) -> str:
    kind, _, name = nvml_library.partition(":")
    origin = ["about = " + json.dumps(f"captured from {kind} {name.partition('@')[0]}")]
    if kind == "pynvml":
        system = f"{platform.system()} {platform.release()} {platform.machine()}"
        origin = ['about = "captured from a real machine"', f'kernel = "{system}"']
    lines = [
        *origin,
        f'seedance_obs = "{__version__}"',
        "",
        "[files]",
        *(f'"{part.name}" = {json.dumps(part.about)}' for part in parts if part.written),
        "",
        "[missing]",
        *(f'"{part.name}" = {json.dumps(part.about)}' for part in parts if not part.written),
    ]
    return "\n".join(lines) + "\n"
