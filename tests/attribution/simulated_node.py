"""A whole node over a simulated machine with a clock of its own: driver, page, kubelet, files.

Everything that the exporter reads is what the simulator shows at that moment; what comes back is
what it would be scraped for.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.node import Node
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.podresources.source import PodResourcesSource
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.kubelet import SimulatedKubelet
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.page import render_page
from tests.machine import LibrarySource

EPOCH_UNIX = 1_700_000_000.0
NOT_TENANTS = ("unallocated", "unobserved")


@dataclass(frozen=True)
class Bill:
    """Joules by tenant under the two contracts: for use alone, and with what was reserved."""

    use: Counter[str] = field(default_factory=Counter)
    reservation: Counter[str] = field(default_factory=Counter)


class _Page:
    name = "dcgm"

    def __init__(self, node: "SimulatedNode") -> None:
        self._node = node

    def read(self) -> SourceSnapshot:
        return read_page(render_page(self._node.machine, self._node.now), taken_at=self._node.now)

    def close(self) -> None:
        pass


class SimulatedNode:
    """Goes on by `step`; times are seconds since the machine's epoch."""

    def __init__(self, machine: Machine, root: Path, kubelet: Path | None) -> None:
        self.machine = machine
        self.now = 0.0
        self._root = root
        clock = lambda: self.now  # noqa: E731 - one clock for all
        sources = [LibrarySource(SimNvml(machine, clock), clock)]
        if machine.dcgm_interval_s is not None:
            sources.append(_Page(self))
        if kubelet is not None:
            sources.append(PodResourcesSource(kubelet, monotonic=clock))
        self.node = Node(
            NodeSettings(node_root=str(root)),
            sources,
            node_name=machine.name,
            monotonic=clock,
            wall=lambda: EPOCH_UNIX + self.now,
        )
        self._due = {"dcgm": 0.0, "podresources": 0.0, "refresh": 0.0}

    def step(self, t: float) -> None:
        """Go on to t: bring the files up to date, read what is due, book."""
        self.now = t
        write_proc(self.machine, self._root, t, epoch_unix=EPOCH_UNIX)
        for name in self.node.sources:
            if name == "nvml" or self._is_due(name, t):
                self.node.poll(name)
        if self._is_due("refresh", t):
            self.node.refresh()
        self.node.assemble()

    def bill(self) -> Bill:
        """What each tenant owes so far."""
        bill = Bill()
        for account in self.node.view.attribution.tenants:
            if account.tenant not in NOT_TENANTS:
                balance = account.balance
                bill.use[account.tenant] += balance.active_mj / 1000
                both = balance.active_mj + balance.reserved_mj
                bill.reservation[account.tenant] += both / 1000
        return bill

    def residuals(self) -> dict[str, int]:
        """By board: millijoules booked, less what its counter shows over what it first showed."""
        booked: Counter[str] = Counter()
        for account in self.node.view.attribution.tenants:
            booked[account.gpu_uuid] += account.balance.active_mj + account.balance.reserved_mj
        shown = {
            gpu.merged.uuid: int(gpu.merged.readings["energy_mj"].value)
            for gpu in self.node.view.gpus
        }
        self._first = getattr(self, "_first", shown)
        return {uuid: booked[uuid] - (now - self._first[uuid]) for uuid, now in shown.items()}

    def _is_due(self, what: str, t: float) -> bool:
        interval = {"dcgm": self.machine.dcgm_interval_s or 1.0}.get(what, 5.0)
        if t < self._due[what]:
            return False
        self._due[what] = t + interval
        return True


@contextmanager
def simulated_node(machine: Machine, folder: Path) -> Iterator[SimulatedNode]:
    """A node of a machine below a folder, with a kubelet where the machine has Kubernetes."""
    root = folder / "root"
    write_sysfs(machine, root)
    write_proc(machine, root, 0.0, epoch_unix=EPOCH_UNIX)
    if not machine.kubernetes:
        yield SimulatedNode(machine, root, None)
        return
    socket = folder / "kubelet.sock"
    with SimulatedKubelet(machine, socket, now=lambda: node.now):
        node = SimulatedNode(machine, root, socket)
        yield node
