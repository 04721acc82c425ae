"""What the watch shows when channels fall silent, and when a part of it breaks."""

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from seedance_obs.bandwidth.reading import ChannelReading
from seedance_obs.exporter.bandwidth.lateness import LateSeconds
from seedance_obs.exporter.bandwidth.watch import POLLS_KEPT, BandwidthWatch
from seedance_obs.flow import Channel, Flow, Window
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot
from seedance_obs.topology.model import Topology

LINK = Channel("G0", "pcie", "transmit")
NIC = Channel("0000:18:00.0", "network", "transmit")
BROKEN: Any = SimpleNamespace()  # no topology at all
EMPTY = Topology()


class Watched:
    """A watch that is given flows by hand."""

    def __init__(self, tmp_path, **options: float) -> None:
        self.watch = BandwidthWatch(
            tmp_path, interval_seconds=0.1, window_seconds=15.0, monotonic=lambda: 0.0, **options
        )

    def advance(self, now: float, *, topology: Topology = EMPTY) -> None:
        """Assemble."""
        self.watch.advance((), topology, (), {}, now)

    def tell(self, now: float, *channels: Channel) -> None:
        """A second of ticks that end at a time."""
        ticks = tuple(Window(now - 1 + n / 10, now - 1 + (n + 1) / 10, 1e8) for n in range(10))
        flows = tuple(Flow(channel, "counter", ticks) for channel in channels)
        self.watch.observe(SourceSnapshot("nvml", now, flows=flows))

    def mean(self, channel: Channel) -> float | None:
        """What is shown of a channel that is still told of."""
        return self.watch.view.channels[channel].mean


@pytest.fixture
def watched(tmp_path):
    return Watched(tmp_path)


def test_a_silent_link_is_stale_when_a_source_is_and_a_silent_adapter_at_once(watched):
    watched.tell(1.0, LINK, NIC)
    watched.advance(6.0)
    assert watched.mean(LINK) == watched.mean(NIC) == pytest.approx(1e9)
    watched.advance(6.1)
    assert watched.mean(NIC) is None
    watched.advance(31.0)
    assert watched.mean(LINK) == pytest.approx(1e9)
    watched.advance(31.1)
    last = watched.watch.view.channels[LINK]
    assert (last.mean, last.peak, last.total) == (None, None, pytest.approx(1e9))
    watched.advance(61.1)
    assert watched.watch.view.channels == {}


def test_how_long_a_source_may_be_silent_is_a_setting(tmp_path):
    watched = Watched(tmp_path, stale_after_seconds=10.0)
    watched.tell(1.0, LINK)
    watched.advance(11.0)
    assert watched.mean(LINK) == pytest.approx(1e9)
    watched.advance(11.1)
    assert watched.mean(LINK) is None


def test_a_source_that_tells_seldom_does_not_flicker(watched):
    for now in (0.0, 30.0, 60.0):
        board = GpuReadings("G0", values={"pcie_transmit_bytes_per_second": 1e9})
        watched.watch.observe(SourceSnapshot("dcgm", now, gpus=(board,)))
    for now in (60.0, 120.0, 150.0):
        watched.advance(now)
        assert watched.mean(LINK) == pytest.approx(1e9)
    watched.advance(150.1)
    assert watched.watch.view.channels == {}


def test_a_lasting_fault_keeps_nothing_and_shows_nothing(watched, caplog):
    watched.tell(1.0, LINK)
    watched.advance(1.0)
    assert watched.watch.view.channels
    with caplog.at_level(logging.CRITICAL):
        for second in range(2, 2 + POLLS_KEPT):
            watched.tell(float(second), LINK)
            watched.advance(float(second), topology=BROKEN)
            assert watched.watch.view.channels == {}
            assert not watched.watch._flows
    watched.tell(100.0, LINK)
    watched.advance(100.0)
    assert watched.mean(LINK) == pytest.approx(1e9)


def test_what_nobody_assembles_is_bounded(watched):
    for second in range(1, 3 * POLLS_KEPT):
        watched.tell(float(second), LINK)
    assert len(watched.watch._flows) == POLLS_KEPT


READING = ChannelReading("counter", None, 0, None, None, {}, 0.0, 0.0)


def after(*passes: dict[Channel, ChannelReading]) -> dict[str, float]:
    late = LateSeconds()
    for channels in passes:
        late.add(channels)
    return late.of_loops


def test_a_loop_is_as_late_as_its_latest_channel_each_time_and_never_less():
    five, three, four = (replace(READING, late_seconds=late) for late in (5.0, 3.0, 4.0))
    other = Channel("G1", "power")
    assert after({LINK: five, other: three}) == {"gpu": 5.0}
    assert after({LINK: five, other: three}, {other: three}) == {"gpu": 5.0}
    assert after({LINK: five, other: three}, {other: four}) == {"gpu": 6.0}
    assert after({LINK: five, NIC: three}) == {"gpu": 5.0, "network": 3.0}


def test_pages_that_come_late_are_not_lateness_of_our_loops():
    page, own = (replace(READING, source=source, late_seconds=5.0) for source in ("dcgm", "gpm"))
    assert after({LINK: page}) == {}
    assert after({LINK: page}, {LINK: replace(own, late_seconds=5.5)}) == {"gpu": 0.5}
