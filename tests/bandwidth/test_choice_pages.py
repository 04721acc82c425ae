"""Whom a channel believes when one of its sources is a page that is read every so many seconds."""

from itertools import pairwise

import pytest

from seedance_obs.bandwidth.choice import Choice
from seedance_obs.flow import Channel, Flow, Window
from tests.bandwidth.flows import PCIE, flow, ticks

HBM = Channel("GPU-0", "hbm")
RATE = 10_000_000_000  # bytes per second


class Pages:
    """Goes on second by second; a source ticks all the time, a page comes every `every` seconds."""

    def __init__(self, every: int, *, channel: Channel = PCIE, sources: tuple[str, ...]) -> None:
        self.choice = Choice()
        self.now = 0
        self.told: list[Flow] = []
        self._channel, self._every, self._sources = channel, every, sources

    def run(self, seconds: int, *, ticking: float | None, page: float | None) -> str:
        """Levels of the sources and of the page; None is silence. Who is believed at last."""
        for _ in range(seconds):
            self.now += 1
            chosen = self.choice.choose(self._flows(ticking, page), float(self.now))
            self.told += chosen
        return self.told[-1].source if self.told else ""

    def _flows(self, ticking: float | None, page: float | None) -> list[Flow]:
        every, now, channel = self._every, self.now, self._channel
        flows = []
        if ticking is not None:
            windows = ticks([ticking / 10] * 10, start=now - 1.0)
            flows = [flow(source, windows, channel) for source in self._sources]
        if page is not None and now % every == 0:
            flows.append(flow("dcgm", [Window(now - every, now, page * every)], channel))
        return flows


@pytest.mark.parametrize(("every", "within"), [(1, 8), (10, 30), (30, 90)])
@pytest.mark.parametrize(
    ("source", "channel", "high"), [("counter", PCIE, RATE), ("gpm", HBM, 0.3)]
)
def test_a_standing_source_is_found_out_however_rare_pages_are(
    every, within, source, channel, high
):
    scene = Pages(every, channel=channel, sources=(source,))
    for step in range(within):
        scene.run(1, ticking=0.0, page=high * (1 + step / 1000))
    assert scene.choice.stuck == {channel: source}
    assert scene.told[-1].source == "dcgm"


@pytest.mark.parametrize("every", [1, 10, 30])
def test_so_it_is_by_pages_that_always_say_the_same_in_three_minutes(every):
    scene = Pages(every, sources=("counter",))
    assert scene.run(180, ticking=0.0, page=RATE) == "dcgm"
    assert scene.choice.stuck == {PCIE: "counter"}


@pytest.mark.parametrize(("every", "within"), [(1, 70), (10, 80), (30, 120)])
def test_a_page_that_stands_is_found_out_and_not_before_it_may_be_an_old_one(every, within):
    scene = Pages(every, sources=("gpm",))
    scene.run(50, ticking=RATE, page=0.0)
    assert scene.choice.stuck == {}
    scene.run(within - 50, ticking=RATE, page=0.0)
    assert scene.choice.stuck == {PCIE: "dcgm"}


@pytest.mark.parametrize("every", [1, 5, 10])
@pytest.mark.parametrize("stopped", [61, 75, 89])
def test_an_old_page_is_no_proof_against_a_source_that_saw_the_traffic_end(every, stopped):
    """Pages are made anew every 30 s, and say until then what was before."""
    scene = Pages(every, sources=("gpm",))
    scene.run(stopped, ticking=RATE, page=RATE)
    scene.run(90 - stopped, ticking=0.0, page=RATE)
    scene.run(30, ticking=0.0, page=RATE * (stopped - 60) / 30)
    scene.run(300, ticking=0.0, page=0.0)
    assert scene.choice.stuck == {}
    assert sum(window.amount for one in scene.told for window in one.windows) == pytest.approx(
        stopped * RATE
    )


@pytest.mark.parametrize("every", [1, 10, 30])
@pytest.mark.parametrize("silent", [3, 8, 37, 50])
def test_what_passed_while_the_driver_was_silent_is_told_by_the_page(every, silent):
    scene = Pages(every, sources=("gpm", "counter"))
    scene.run(63, ticking=RATE, page=RATE)
    scene.run(silent, ticking=None, page=RATE)
    assert scene.run(60, ticking=RATE, page=RATE) == "gpm"
    windows = [window for one in scene.told for window in one.windows]
    assert all(after.start >= before.end - 1e-9 for before, after in pairwise(windows))
    assert sum(window.amount for window in windows) == pytest.approx((123 + silent) * RATE)


def test_a_page_that_stays_away_is_not_waited_for():
    scene = Pages(10, sources=("gpm",))
    scene.run(60, ticking=RATE, page=RATE)
    scene.run(5, ticking=None, page=None)
    scene.run(2, ticking=RATE, page=None)
    assert scene.told[-1].windows[-1].end == 60
    scene.run(10, ticking=RATE, page=None)
    assert scene.told[-1].windows[-1].end == pytest.approx(77)
