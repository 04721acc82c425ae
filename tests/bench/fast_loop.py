"""What the fast loops cost over 8 GPUs and 8 adapters, beside the same reads and nothing else.

The driver answers from Python, alike for both, in the place of the functions that the binding
finds in the driver's library; so the binding and all that is ours are in the times, and the driver
is in neither's favour.

Run by hand from the root of the repository: `python -m tests.bench.fast_loop [TICKS]`.
A time is CPU, the mean over the ticks of a round, and of all rounds the least, which other load
disturbs least. The budget is 1.5 % of a core above the bare loop, network adapters included.
"""

import ctypes
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import pynvml

from seedance_obs.exporter.bandwidth.watch import BandwidthWatch
from seedance_obs.flow import DIRECTIONS, Channel, Flow, Window
from seedance_obs.sources.nics import NicLoop
from seedance_obs.sources.nvml.binding import PynvmlLibrary
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.fast_fields import FIELDS
from seedance_obs.sources.nvml.fast_gpm import METRICS
from seedance_obs.sources.nvml.structures import FieldValue, GpmMetricsGet
from seedance_obs.sources.nvml.wrapping import Unwrapped
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_sysfs
from tests.attribution.simulated_node import simulated_node

BOARDS = 8
NICS = 8
MACHINE = "h100-nvswitch"
WARM_SECONDS = 5
INTERVAL_SECONDS = 0.1
TICKS_A_PASS = 10
TICKS = 500
ROUNDS = 5
UNSIGNED_LONG_LONG = 3
BUDGET = 0.015


class ConstantDriver:
    """The driver's functions by name; counters go on by the same amount with each call."""

    def __init__(self) -> None:
        self._calls = 0

    def function(self, name: str) -> Callable[..., int]:
        """What the binding would find in the library."""
        return getattr(self, name, self._success)

    def _success(self, *_args: Any) -> int:
        return 0

    def nvmlDeviceGetFieldValues(  # noqa: N802  # the driver's name
        self, _handle: Any, count: int, values: Any
    ) -> int:
        """Fields that grow."""
        self._calls += 1
        for place in range(count):
            value = values[place]
            value.nvmlReturn, value.valueType = 0, UNSIGNED_LONG_LONG
            value.value.ullVal = self._calls * 1_000
        return 0

    def nvmlGpmQueryDeviceSupport(  # noqa: N802  # the driver's name
        self, _handle: Any, support: Any
    ) -> int:
        """Every board has GPM."""
        support._obj.isSupportedDevice = 1
        return 0


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


@dataclass(frozen=True)
class Part:
    """One part of the loop: what we do in a tick, and the same reads without us."""

    name: str
    ours: Callable[[int], object]
    bare: Callable[[int], object]


def nothing(_tick: int) -> None:
    """What a part without reads of its own costs bare."""


def driver_parts(clock: Clock) -> list[Part]:
    """The loop over the driver, and the handing over of its windows from process to process."""
    driver = ConstantDriver()
    pynvml._nvmlGetFunctionPointer = driver.function
    fast = FastReader(
        PynvmlLibrary(),
        interval_seconds=INTERVAL_SECONDS,
        monotonic=clock,
        unwrapped=Unwrapped(),
    )
    fast.watch([Board(f"gpu{n}", f"GPU-{n}", None, None, {}, {}) for n in range(BOARDS)])

    def tick(_tick: int) -> None:
        clock.now += INTERVAL_SECONDS
        fast.tick()

    def hand_over(tick: int) -> None:
        if tick % TICKS_A_PASS == 0:
            pickle.loads(pickle.dumps(fast.take()))

    return [
        Part("driver", tick, bare_reads(driver)),
        Part("hand over", hand_over, nothing),
    ]


def bare_reads(driver: ConstantDriver) -> Callable[[int], object]:
    """The driver's own functions, called with buffers that are there already."""
    handle = ctypes.c_void_p()
    values = (FieldValue * (len(FIELDS) + 1))()
    fields = driver.function("nvmlDeviceGetFieldValues")
    sample = driver.function("nvmlGpmSampleGet")
    metrics = driver.function("nvmlGpmMetricsGet")
    asked = ctypes.byref(GpmMetricsGet(*METRICS))

    def tick(tick: int) -> None:
        for _ in range(BOARDS):
            fields(handle, len(FIELDS), values)
            if tick % 2 == 0:
                sample(handle, handle)
                metrics(asked)

    return tick


def nic_parts(clock: Clock, root: Path) -> list[Part]:
    """The loop over network adapters: two counters each, in files that stay open."""
    machine = load_machine(MACHINE)
    write_sysfs(machine, root)
    loop = NicLoop(root, interval_seconds=INTERVAL_SECONDS, monotonic=clock)
    addresses = [nic.device.pci for nic in machine.nics[:NICS]]
    loop.watch(addresses)
    counters = [*root.glob("sys/devices/**/port_*_data")][: 2 * NICS]
    files = [os.open(file, os.O_RDONLY) for file in counters]
    assert (len(addresses), len(files)) == (NICS, 2 * NICS)

    def tick(number: int) -> None:
        loop.tick()
        if number % TICKS_A_PASS == 0:
            loop.take()

    def bare(_tick: int) -> None:
        for file in files:
            os.pread(file, 64, 0)

    return [Part("adapters", tick, bare)]


def joining(clock: Clock) -> Part:
    """Choice of sources, meters, segments and tenants, once a pass, on a node at work."""
    with TemporaryDirectory() as folder, simulated_node(load_machine(MACHINE), Path(folder)) as sim:
        for second in range(WARM_SECONDS):
            sim.step(float(second))
        view, seats = sim.node.view, sim.node._attribution.seats
    watch = BandwidthWatch(
        Path(os.devnull),
        interval_seconds=INTERVAL_SECONDS,
        window_seconds=15.0,
        monotonic=clock,
    )
    gpus = view.gpus
    channels = [
        *(
            (Channel(gpu.merged.uuid, "pcie", way), s)
            for gpu in gpus
            for way in DIRECTIONS
            for s in ("gpm", "counter")
        ),
        *(
            (Channel(gpu.merged.uuid, "nvlink", way), s)
            for gpu in gpus
            for way in DIRECTIONS
            for s in ("gpm", "counter")
        ),
        *((Channel(gpu.merged.uuid, "hbm"), "gpm") for gpu in gpus),
        *((Channel(gpu.merged.uuid, "power"), "sensor") for gpu in gpus),
    ]

    def join(tick: int) -> None:
        if tick % TICKS_A_PASS:
            return
        end = clock.now
        windows = tuple(
            Window(end - (n + 1) * INTERVAL_SECONDS, end - n * INTERVAL_SECONDS, 1e6 * (tick % 7))
            for n in reversed(range(TICKS_A_PASS))
        )
        flows = tuple(Flow(channel, source, windows) for channel, source in channels)
        watch.observe(SourceSnapshot("nvml", end, flows=flows))
        watch.advance(gpus, view.topology, seats, {}, end)

    return Part("joining", join, nothing)


def all_parts(clock: Clock, root: Path) -> list[Part]:
    """Every part of the fast loops, in the order of a tick."""
    return [
        *driver_parts(clock),
        *nic_parts(clock, root),
        joining(clock),
    ]


def seconds_a_tick(parts: list[Callable[[int], object]], ticks: int) -> list[float]:
    """The CPU seconds of a tick in each part: the least of the rounds' means."""
    best = [float("inf")] * len(parts)
    for _ in range(ROUNDS):
        spent = [0.0] * len(parts)
        for number in range(ticks):
            for place, part in enumerate(parts):
                begun = process_time()
                part(number)
                spent[place] += process_time() - begun
        best = [min(pair) for pair in zip(best, (one / ticks for one in spent), strict=True)]
    return best


def main() -> None:
    """Measure and print."""
    ticks = int(sys.argv[1]) if len(sys.argv) > 1 else TICKS
    with TemporaryDirectory() as folder:
        parts = all_parts(Clock(), Path(folder))
        ours = seconds_a_tick([part.ours for part in parts], ticks)
        bare = seconds_a_tick([part.bare for part in parts], ticks)
    print(f"{BOARDS} GPUs, every {INTERVAL_SECONDS * 1000:g} ms; % of a core (us a tick and GPU)")
    print(f"  {'':12} {'ours':>18} {'bare':>18} {'difference':>18}")
    for part, one, other in zip(parts, ours, bare, strict=True):
        print(f"  {part.name:12} {shown(one)} {shown(other)} {shown(one - other)}")
    difference = sum(ours) - sum(bare)
    print(f"  {'all':12} {shown(sum(ours))} {shown(sum(bare))} {shown(difference)}")
    print(f"  budget of the difference {BUDGET:.1%}: {difference / INTERVAL_SECONDS / BUDGET:.0%}")


def shown(seconds: float) -> str:
    """CPU seconds of a tick as a share of a core, and for one GPU."""
    return f"{seconds / INTERVAL_SECONDS:8.3%} ({seconds / BOARDS * 1e6:6.1f})"


if __name__ == "__main__":
    main()
