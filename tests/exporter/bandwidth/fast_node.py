"""A whole node whose fast loops tick ten times a second over a simulated machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.node import Node
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.sim.adapter_files import write_nics
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.page import render_page
from tests.machine import LibrarySource

EPOCH_UNIX = 1_700_000_000.0
TICKS = 10  # a second


class SimulatedPage:
    """The machine's dcgm-exporter."""

    name = "dcgm"

    def __init__(self, machine: Machine, clock: Callable[[], float]) -> None:
        self._machine, self._clock = machine, clock

    def read(self) -> SourceSnapshot:
        now = self._clock()
        return read_page(render_page(self._machine, now), taken_at=now)

    def close(self) -> None:
        pass


class FastNode:
    """Goes on second by second; times are seconds since the machine's epoch."""

    def __init__(
        self, machine: Machine, root: Path, *, start: float, page: bool, updated: float
    ) -> None:
        self.now = start
        self._machine, self._root = machine, root

        def clock() -> float:
            return self.now

        self._driver = LibrarySource(
            SimNvml(machine, lambda: self.now // updated * updated if updated else self.now),
            clock,
            fast_seconds=1 / TICKS,
        )
        self.node = Node(
            NodeSettings(node_root=str(root)),
            [self._driver, *([SimulatedPage(machine, clock)] if page else [])],
            node_name=machine.name,
            monotonic=clock,
            wall=lambda: EPOCH_UNIX + self.now,
        )

    def poll(self) -> None:
        """Ask every source."""
        for name in self.node.sources:
            self.node.poll(name)

    def pass_seconds(self, seconds: int) -> None:
        """Tick, and read and assemble once a second."""
        began = self.now
        for tick in range(1, seconds * TICKS + 1):
            self.now = began + tick / TICKS
            write_nics(self._machine, self._root, self.now)
            self.node.read_fast()
            if tick % TICKS:
                self._driver.fast.tick()
            else:
                self.poll()
                self.node.assemble()


@contextmanager
def fast_node(
    machine: Machine,
    root: Path,
    *,
    start: float = 0.0,
    page: bool = False,
    updated: float = 0.0,
) -> Iterator[FastNode]:
    """A node of a machine below a folder, first seen at `start`.

    Its driver brings its counters up to date only every `updated` seconds, unless that is 0.
    """
    write_sysfs(machine, root)
    write_proc(machine, root, 0.0, epoch_unix=EPOCH_UNIX)
    node = FastNode(machine, root, start=start, page=page, updated=updated)
    node.poll()
    node.node.assemble()
    try:
        yield node
    finally:
        node.node.close()
