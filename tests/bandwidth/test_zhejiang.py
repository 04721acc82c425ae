"""Ports of a real RoCE switch, read about every half second: what a minute's mean hides."""

import gzip
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from seedance_obs.bandwidth.meter import Meter
from seedance_obs.bandwidth.reading import ChannelReading
from seedance_obs.flow import Window

SHARED = Path(os.environ.get("SEEDANCE_SHARED") or Path(__file__).parents[3] / "shared")
TRACE = SHARED / "data/traces/zhejiang/leaf9_port_traffic_0000_0030.csv.gz"
STEP_SECONDS = 0.58  # the median
CAPACITY = {"TwoHundredGigE": 25e9, "FourHundredGigE": 50e9}

pytestmark = pytest.mark.skipif(not TRACE.exists(), reason="the traces are not here")


@dataclass(frozen=True)
class Port:
    """What left a port: a window to each row, and the load that was published for it."""

    capacity: float
    windows: tuple[Window, ...]
    published: tuple[float, ...]  # 0 to 1

    @cached_property
    def reading(self) -> ChannelReading:
        """What a meter tells of all of it."""
        meter = Meter(interval_seconds=STEP_SECONDS, window_seconds=60.0)
        meter.add(self.windows, self.capacity)
        return meter.reading()


Ports = Mapping[str, Mapping[str, Port]]


@pytest.fixture(scope="module")
def ports() -> Ports:
    rows: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for line in gzip.decompress(TRACE.read_bytes()).decode().splitlines()[1:]:
        at, _, name, _, _, _, octets, _, ratio = line.split(",")
        if not name.startswith("M-"):
            rows[name].append((at, octets, ratio))
    found: dict[str, dict[str, Port]] = defaultdict(dict)
    for name, told in rows.items():
        kind = name.rstrip("0123456789/:")
        at, octets, ratios = zip(*told, strict=True)
        ends = [int(each) / 1000 for each in at]
        windows = tuple(map(Window, ends, ends[1:], map(int, octets[1:])))
        found[kind][name] = Port(
            CAPACITY[kind], windows, tuple(float(each) / 100 for each in ratios)
        )
    return found


def largest_mean(port: Port, seconds: float) -> float:
    """The largest mean load of a clock's intervals, from bytes."""
    passed: dict[int, float] = defaultdict(float)
    observed: dict[int, float] = defaultdict(float)
    for start, end, amount in port.windows:
        passed[int(end // seconds)] += amount
        observed[int(end // seconds)] += end - start
    return max(passed[at] / observed[at] for at in passed) / port.capacity


def largest_published(port: Port, seconds: float) -> float:
    """The largest mean of the samples of a clock's intervals, each counting alike."""
    samples: dict[int, list[float]] = defaultdict(list)
    ends = [port.windows[0].start, *(window.end for window in port.windows)]
    for end, level in zip(ends, port.published, strict=True):
        samples[int(end // seconds)].append(level)
    return max(sum(levels) / len(levels) for levels in samples.values())


def means(port: Port, seconds: float) -> Iterator[float]:
    """The means that a meter tells once it has seen a whole one, asked after every window."""
    meter = Meter(interval_seconds=STEP_SECONDS, window_seconds=seconds)
    for window in port.windows:
        meter.add((window,), port.capacity)
        reading = meter.reading()
        if reading.mean is not None and reading.observed_seconds >= seconds:
            yield reading.mean / port.capacity


def test_busy_seconds_see_the_bursts_of_the_ports_that_have_any(ports):
    two_hundred = ports["TwoHundredGigE"]
    samples = [level for port in two_hundred.values() for level in port.published]
    bursting = {name for name, port in two_hundred.items() if max(port.published) > 0.8}
    assert sum(level > 0.8 for level in samples) / len(samples) == pytest.approx(0.00789, abs=5e-6)
    assert (len(two_hundred), len(bursting)) == (60, 9)
    seen = {name: port.reading.busy_seconds[0.8] for name, port in two_hundred.items()}
    assert {name for name, seconds in seen.items() if seconds} == bursting
    assert min(seen[name] for name in bursting) > 10


@pytest.mark.parametrize(("seconds", "published"), [(60.0, 0.3713), (15.0, 0.4418)])
def test_no_mean_of_a_minute_sees_any(ports, seconds, published):
    two_hundred = ports["TwoHundredGigE"].values()
    largest = max(largest_published(port, seconds) for port in two_hundred)
    assert largest == pytest.approx(published, abs=1e-4)
    assert 0.3 < max(largest_mean(port, seconds) for port in two_hundred) < 0.4


def test_the_peak_that_is_told_with_a_mean_keeps_the_burst(ports):
    busiest = max(ports["TwoHundredGigE"].values(), key=lambda port: max(port.published))
    assert max(means(busiest, 60.0)) < 0.4
    whole = Meter(interval_seconds=STEP_SECONDS, window_seconds=1800.0)
    whole.add(busiest.windows, busiest.capacity)
    peak = whole.reading().peak
    assert peak is not None
    assert peak / busiest.capacity > 0.8


def test_the_load_of_faster_ports_comes_from_bytes_and_not_from_what_was_published(ports):
    told, published = 0.0, 0.0
    for port in ports["FourHundredGigE"].values():
        told += port.reading.total / port.capacity
        published += sum(
            ratio * window.seconds
            for ratio, window in zip(port.published[1:], port.windows, strict=True)
        )
    assert told / published == pytest.approx(1.603, abs=0.005)


def test_every_byte_of_every_port_is_counted(ports):
    for kind in ports.values():
        for port in kind.values():
            assert port.reading.total == sum(window.amount for window in port.windows)
