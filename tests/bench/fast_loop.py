"""What the fast loop costs over 8 GPUs, beside a loop that makes the same reads and does nothing.

The driver answers from Python, alike for both, in the place of the functions that the binding
finds in the driver's library; so the binding and all that is ours are in the times, and the driver
is in neither's favour.

Run by hand from the root of the repository: `python -m tests.bench.fast_loop [TICKS]`.
A time is CPU, the mean over the ticks of a round, and of all rounds the least, which other load
disturbs least. The budget is 1.5 % of a core above the bare loop, network adapters included.
"""

import ctypes
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import pynvml

from seedance_obs.sources.nvml.binding import PynvmlLibrary
from seedance_obs.sources.nvml.board import Board
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.fast_fields import FIELDS
from seedance_obs.sources.nvml.fast_gpm import METRICS
from seedance_obs.sources.nvml.structures import FieldValue, GpmMetricsGet
from seedance_obs.sources.nvml.wrapping import Unwrapped

BOARDS = 8
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


def all_parts(clock: Clock) -> list[Part]:
    """Every part of the fast loops, in the order of a tick."""
    return [
        *driver_parts(clock),
        # The network adapters' loop and the meters join here, each as a Part.
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
    parts = all_parts(Clock())
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
