"""A whole node over a simulated machine with a clock of its own: driver, page, kubelet, files.

Everything that the exporter reads is what the simulator shows at that moment; what comes back is
what it would be scraped for.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Any

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
from seedance_obs.sources.sim.programs import Program, programs
from tests.machine import LibrarySource

EPOCH_UNIX = 1_700_000_000.0
NOT_TENANTS = ("unallocated", "unobserved")
MEMORY = Path("/dev/shm")
ROOM_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Bill:
    """Joules by tenant under the two contracts: for use alone, and with what was reserved."""

    use: Counter[str] = field(default_factory=Counter)
    reservation: Counter[str] = field(default_factory=Counter)

    def less(self, before: "Bill") -> "Bill":
        """What was added to an earlier bill."""
        return Bill(_less(self.use, before.use), _less(self.reservation, before.reservation))


def _less(now: Counter[str], before: Counter[str]) -> Counter[str]:
    return Counter({name: joules - before[name] for name, joules in now.items()})


@dataclass(frozen=True)
class Residual:
    """What was booked of one board, less what passed there: 0 of each at every moment."""

    millijoules: int
    microseconds: int


@dataclass
class Course:
    """How a node went: the bills at some seconds, and each tick's residuals that were not 0.

    `seen` counts the boards that were looked at, over all ticks.
    """

    seen: int = 0
    bills: dict[int, Bill] = field(default_factory=dict)
    faults: list[tuple[int, str, Residual]] = field(default_factory=list)  # second, board


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

    def __init__(
        self,
        machine: Machine,
        root: Path,
        kubelet: Path | None,
        settings: NodeSettings,
        *,
        epoch_unix: float = EPOCH_UNIX,
    ) -> None:
        self.machine = machine
        self.epoch_unix = epoch_unix
        self.now = 0.0
        self.root = root

        def clock() -> float:
            return self.now

        self._driver = LibrarySource(
            SimNvml(machine, clock), clock, fast_seconds=settings.bandwidth_interval_seconds
        )
        sources = [self._driver]
        if machine.dcgm_interval_s is not None:
            sources.append(_Page(self))
        if kubelet is not None:
            sources.append(PodResourcesSource(kubelet, monotonic=clock))
        self.node = Node(
            settings,
            sources,
            node_name=machine.name,
            monotonic=clock,
            wall=lambda: epoch_unix + self.now,
        )
        self._due = {"dcgm": 0.0, "podresources": 0.0, "refresh": 0.0}
        self._running: list[Program] = []
        self._first: dict[str, tuple[int, int]] = {}  # by board: its counter, and when

    def step(self, t: float) -> None:
        """Go on to t: bring the files up to date, read what is due, book."""
        self.now = t
        refreshed = self._is_due("refresh", t)
        self._write_files(also_counters=refreshed)
        for name in self.node.sources:
            if name == "nvml" or self._is_due(name, t):
                self.node.poll(name)
        if refreshed:
            self.node.refresh()
        self.node.assemble()

    def tick(self, t: float) -> None:
        """Go on to t in the fast loops alone."""
        self.now = t
        self._driver.fast.tick()
        self.node.read_fast()

    def course(self, seconds: Collection[int]) -> Course:
        """Go on second by second up to the last of these, with a bill at each of them."""
        course = Course()
        for second in range(max(seconds) + 1):
            self.step(float(second))
            residuals = self.residuals()
            course.seen += len(residuals)
            course.faults += [
                (second, board, residual)
                for board, residual in residuals.items()
                if residual != Residual(0, 0)
            ]
            if second in seconds:
                course.bills[second] = self.bill()
        return course

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

    def residuals(self) -> dict[str, Residual]:
        """By board, all that its accounts hold less what its counter and the clock advanced."""
        booked_mj: Counter[str] = Counter()
        booked_us: Counter[str] = Counter()
        for account in self.node.view.attribution.tenants:
            balance = account.balance
            booked_mj[account.gpu_uuid] += balance.active_mj + balance.reserved_mj
            booked_us[account.gpu_uuid] += balance.active_us + balance.reserved_us
        residuals = {}
        for gpu in self.node.view.gpus:
            uuid = gpu.merged.uuid
            shown = (int(gpu.merged.readings["energy_mj"].value), round(gpu.merged.listed_at * 1e6))
            first_mj, first_us = self._first.setdefault(uuid, shown)
            residuals[uuid] = Residual(
                booked_mj[uuid] - (shown[0] - first_mj), booked_us[uuid] - (shown[1] - first_us)
            )
        return residuals

    def _write_files(self, *, also_counters: bool) -> None:
        """Bring the files up to date where anything reads what has changed in them."""
        running = programs(self.machine, self.now)
        if also_counters or running != self._running:
            self._running = running
            write_proc(self.machine, self.root, self.now, epoch_unix=self.epoch_unix)

    def _is_due(self, what: str, t: float) -> bool:
        interval = {"dcgm": self.machine.dcgm_interval_s or 1.0}.get(what, 5.0)
        if t < self._due[what]:
            return False
        self._due[what] = t + interval
        return True


def quick_folder() -> Path | None:
    """Where files are kept in memory, if they have room there: replacing one on a disk waits."""
    return MEMORY if MEMORY.is_dir() and disk_usage(MEMORY).free > ROOM_BYTES else None


@contextmanager
def simulated_node(
    machine: Machine, folder: Path, *, epoch_unix: float = EPOCH_UNIX, **changes: Any
) -> Iterator[SimulatedNode]:
    """A node of a machine, with a kubelet in a folder where the machine has Kubernetes.

    Its settings are the defaults but for the changes, and for a fast loop of a second.
    """
    with ExitStack() as stack:
        root = stack.enter_context(TemporaryDirectory(dir=quick_folder()))
        settings = NodeSettings(**{"node_root": root, "bandwidth_interval_seconds": 1.0, **changes})
        write_sysfs(machine, Path(root))
        write_proc(machine, Path(root), 0.0, epoch_unix=epoch_unix)
        socket = folder / "kubelet.sock" if machine.kubernetes else None
        if socket is not None:
            stack.enter_context(SimulatedKubelet(machine, socket, now=lambda: node.now))
        node = SimulatedNode(machine, Path(root), socket, settings, epoch_unix=epoch_unix)
        yield node
