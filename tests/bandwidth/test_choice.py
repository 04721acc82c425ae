"""Whom a channel believes, and that nobody tells what another has told."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.bandwidth.choice import Choice
from seedance_obs.flow import Channel, Window
from tests.bandwidth.flows import PCIE, TICK, flow, ticks

NIC = Channel("0000:18:00.0", "network", "transmit")
BUSY = 100_000_000  # in a tick: 1 GB/s


class Node:
    """Sources that tell a second of one channel at a time; each has its bytes for a tick."""

    def __init__(self, channel: Channel = PCIE) -> None:
        self.choice = Choice()
        self.channel = channel
        self.now = 100.0
        self.told: list[tuple[str, Window]] = []

    def run(self, seconds: int, **amounts: int) -> list[str]:
        """Who is believed in each of so many seconds; empty where nobody is."""
        believed = []
        for _ in range(seconds):
            flows = [
                flow(source, self._windows(source, amount), self.channel)
                for source, amount in amounts.items()
            ]
            self.now += 1.0
            chosen = self.choice.choose(flows, self.now)
            believed.append(chosen[0].source if chosen else "")
            self.told += [(one.source, window) for one in chosen for window in one.windows]
        return believed

    def _windows(self, source: str, amount: float) -> tuple[Window, ...]:
        """Ten ticks; of a page one window, which is never quite as the one before."""
        if source == "dcgm":
            return ticks([10 * amount * (1 + self.now / 1e6)], start=self.now, tick=1.0)
        return ticks([amount] * 10, start=self.now)

    @property
    def total(self) -> float:
        return sum(window.amount for _, window in self.told)

    def times(self) -> list[Window]:
        return [window for _, window in self.told]


def assert_told_once(windows: list[Window]) -> None:
    for before, after in pairwise(windows):
        assert after.start >= before.end - 1e-9


@pytest.mark.parametrize(
    ("medium", "sources", "best"),
    [
        ("pcie", ("throughput", "dcgm", "counter", "gpm"), "gpm"),
        ("pcie", ("throughput", "dcgm", "counter"), "counter"),
        ("pcie", ("throughput", "dcgm"), "dcgm"),
        ("nvlink", ("dcgm", "gpm", "counter"), "counter"),
        ("nvlink", ("dcgm", "gpm"), "gpm"),
        ("hbm", ("dcgm", "gpm"), "gpm"),
        ("power", ("sensor",), "sensor"),
        ("pcie", ("hearsay", "throughput"), "throughput"),
    ],
)
def test_the_best_source_is_believed_whatever_comes_first(medium, sources, best):
    node = Node(Channel("GPU-0", medium, ""))
    assert node.run(3, **dict.fromkeys(sources, BUSY)) == [best] * 3


def test_a_silent_source_gives_way_without_losing_or_repeating_a_byte():
    node = Node()
    node.run(5, gpm=BUSY, counter=BUSY)
    while_waiting = node.run(10, counter=BUSY)
    after = node.run(5, counter=BUSY)
    assert (set(while_waiting), set(after)) == ({""}, {"counter"})
    assert_told_once(node.times())
    assert node.total == 20 * 10 * BUSY


def test_a_better_source_that_comes_back_is_believed_at_once_and_tells_only_what_is_left():
    node = Node()
    node.run(2, gpm=BUSY, counter=BUSY)
    node.run(15, counter=BUSY)
    back = flow("gpm", [Window(102.0, 118.0, 160 * BUSY)])
    (told,) = node.choice.choose([back], 118.0)
    assert told.source == "gpm"
    assert told.windows == (Window(117.0, 118.0, 10 * BUSY),)
    assert isinstance(told.windows[0].amount, int)


def test_a_page_that_is_scraped_rarely_is_not_silent_between_two():
    choice = Choice()
    believed = []
    for start in range(0, 120, 30):
        flows = [
            flow("dcgm", [Window(start, start + 30, 30)]),
            flow("throughput", [Window(start + n, start + n + 0.02, 1) for n in range(30)]),
        ]
        believed += [one.source for one in choice.choose(flows, start + 59.0)]
    assert set(believed) == {"dcgm"}


@pytest.mark.parametrize(("stuck", "seconds"), [("gpm", 12), ("counter", 12), ("dcgm", 65)])
def test_a_source_that_stands_at_0_while_another_moves_gives_way_and_is_named(stuck, seconds):
    node = Node()
    node.run(seconds, **{stuck: 0}, throughput=BUSY)
    assert node.choice.stuck == {PCIE: stuck}
    assert node.run(3, **{stuck: 0}, throughput=BUSY) == ["throughput"] * 3
    assert_told_once(node.times())


def test_pages_of_a_board_whose_fields_are_always_0_are_found_out():
    choice = Choice()
    for start in range(0, 150, 30):
        flows = [
            flow("dcgm", [Window(start, start + 30, 0)]),
            flow("throughput", [Window(start + n, start + n + 0.02, BUSY) for n in range(30)]),
        ]
        last = choice.choose(flows, start + 30.0)
    assert [one.source for one in last] == ["throughput"]
    assert choice.stuck == {PCIE: "dcgm"}


def test_a_stuck_source_comes_back_when_it_moves():
    node = Node()
    node.run(15, counter=0, dcgm=BUSY)
    assert node.run(2, counter=BUSY, dcgm=BUSY) == ["counter"] * 2
    assert node.choice.stuck == {}
    assert_told_once(node.times())


def test_a_stuck_source_stays_unbelieved_when_the_other_falls_silent():
    node = Node()
    node.run(15, counter=0, dcgm=BUSY)
    node.run(30, counter=0)
    assert node.run(5, counter=0) == [""] * 5


def test_an_idle_link_is_idle_and_not_stuck():
    node = Node()
    node.run(60, gpm=0, counter=0)
    node.run(60, gpm=0, counter=50_000)  # 0.5 MB/s, which the other may round to nothing
    assert node.choice.stuck == {}
    assert {source for source, _ in node.told} == {"gpm"}


def test_one_burst_that_a_source_has_not_told_yet_is_no_proof_against_it():
    node = Node()
    node.run(10, gpm=0, counter=0)
    node.run(2, gpm=0, counter=BUSY)
    node.run(10, gpm=0, counter=0)
    assert node.choice.stuck == {}


def test_memory_that_reads_0_while_it_is_busy_is_stuck_too():
    node = Node(Channel("GPU-0", "hbm"))
    for _ in range(15):
        node.run(1, gpm=0, dcgm=0.05)
    assert node.choice.stuck == {node.channel: "gpm"}


@given(st.lists(st.sets(st.sampled_from(["gpm", "counter", "throughput"])), max_size=40))
def test_no_second_is_told_twice_whoever_comes_and_goes(present):
    node = Node()
    for sources in present:
        node.run(1, **dict.fromkeys(sorted(sources), BUSY))
    assert_told_once(node.times())
    assert node.total <= len(present) * 10 * BUSY


def test_what_a_network_adapter_counts_apart_is_added():
    rdma = flow("rdma", ticks([10, 20, 30]), NIC)
    ethernet = flow("ethernet", ticks([1, 2, 3], start=100.001), NIC)
    (told,) = Choice().choose([rdma, ethernet], 101.0)
    assert told.source == "ethernet+rdma"
    assert [window.amount for window in told.windows] == [11, 22, 33]


def test_an_adapter_one_of_whose_counters_lags_loses_no_byte_and_no_time_is_told_twice():
    rdma = flow("rdma", ticks([10] * 3), NIC)
    ethernet = flow("ethernet", ticks([1] * 6, start=100.25), NIC)
    (told,) = Choice().choose([rdma, ethernet], 101.0)
    assert sum(window.amount for window in told.windows) == 36
    assert_told_once(list(told.windows))


def test_channels_do_not_mix():
    other = PCIE._replace(direction="receive")
    chosen = Choice().choose([flow("gpm", ticks([1])), flow("counter", ticks([2]), other)], 100.0)
    assert {one.channel: one.source for one in chosen} == {PCIE: "gpm", other: "counter"}


def test_a_flow_without_windows_says_nothing():
    assert Choice().choose([flow("gpm", []), flow("rdma", [], NIC)], 100.0) == []


def test_windows_keep_touching_over_many_batches():
    node = Node()
    node.run(100, counter=BUSY)
    assert sum(window.seconds for window in node.times()) == pytest.approx(100)
    assert len(node.told) == round(100 / TICK)
