"""A machine folder under tests/hosts as a node: recorded driver, page and PCI tree, fixed clock."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from seedance_obs.config import NodeSettings
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.node import Node, Source
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.library import NvmlLibrary
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.recording import ReplayLibrary, read_calls
from seedance_obs.sources.nvml.source import NvmlSource
from seedance_obs.sources.nvml.wrapping import Unwrapped
from seedance_obs.sources.readings import SourceSnapshot

HOSTS = Path(__file__).parent / "hosts"
STARTED_AT = 1_700_000_000.0


class LibrarySource:
    """An NVML library read in this very process, for libraries that do not hang."""

    name = "nvml"

    def __init__(
        self, library: NvmlLibrary, clock: Callable[[], float], *, fast_seconds: float = 1.0
    ) -> None:
        self.fast = FastReader(
            library, interval_seconds=fast_seconds, monotonic=clock, unwrapped=Unwrapped()
        )
        self._reader = NvmlReader(library, fast=self.fast, monotonic=clock)
        self._started = False

    def read(self) -> SourceSnapshot:
        if not self._started:
            self._reader.start()
            self._started = True
        self.fast.tick()
        return self._reader.read()

    def close(self) -> None:
        self._reader.stop()


class PageSource:
    """A DCGM page on paper."""

    name = "dcgm"

    def __init__(self, text: str, clock: Callable[[], float]) -> None:
        self._text = text
        self._clock = clock

    def read(self) -> SourceSnapshot:
        return read_page(self._text, taken_at=self._clock())

    def close(self) -> None:
        pass


class SilentSource:
    """A source that never answers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> SourceSnapshot:
        raise SourceUnavailableError(f"{self.name} is silent")

    def close(self) -> None:
        pass


def write_pci_tree(pci: Path, sys: Path) -> None:
    """The `sys` folder that a capture's pci.json describes."""
    bus = sys / "bus/pci/devices"
    bus.mkdir(parents=True)
    for name, device in json.loads(pci.read_text()).items():
        folder = sys / "devices" / device["path"]
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in device["files"].items():
            (folder / file).write_text(f"{text}\n")
        for place in device.get("names", ()):
            (folder / place).mkdir(parents=True)
        (bus / name).symlink_to(folder)


@dataclass(frozen=True)
class Machine:
    """A node and its registry."""

    node: Node
    registry: CollectorRegistry

    def pass_once(self) -> None:
        for name in self.node.sources:
            self.node.poll(name)
        self.node.read_fast()
        self.node.refresh()
        self.node.assemble()

    def scrape(self) -> str:
        return generate_latest(self.registry).decode()


def machine(
    sources: list[Source], clock: Callable[[], float], *, root: Path, name: str = "node-1"
) -> Machine:
    settings = NodeSettings(node_root=str(root), bandwidth_interval_seconds=1.0)
    node = Node(settings, sources, node_name=name, monotonic=clock, wall=lambda: STARTED_AT)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CollectorSet(lambda: node.view, settings, monotonic=clock, timer=lambda: 0.0))
    return Machine(node, registry)


def replayed(folder: Path, clock: Callable[[], float], root: Path) -> Machine:
    """The machine of a capture folder."""
    assert tomllib.loads((folder / "host.toml").read_text())["about"]
    sources: list[Source] = []
    recording, page = folder / "nvml.jsonl", folder / "dcgm.prom"
    if recording.exists():
        lines = recording.read_text().splitlines()
        if any(call.hung for call in read_calls(lines)):
            sources.append(
                NvmlSource(
                    f"replay:{recording}",
                    start_deadline_seconds=1.0,
                    deadline_seconds=1.0,
                    monotonic=clock,
                )
            )
        else:
            sources.append(LibrarySource(ReplayLibrary(lines), clock))
    if page.exists():
        sources.append(PageSource(page.read_text(), clock))
    if (folder / "pci.json").exists():
        write_pci_tree(folder / "pci.json", root / "sys")
    if (folder / "has_cpu").exists():
        nodes = root / "sys/devices/system/node"
        nodes.mkdir(parents=True)
        (nodes / "has_cpu").write_text((folder / "has_cpu").read_text())
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/stat").write_text("btime 0\n")
    return machine(sources, clock, root=root, name=folder.name)
