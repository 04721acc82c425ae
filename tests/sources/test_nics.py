"""What the loop over network adapters tells of counters that behave, and of those that do not."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from seedance_obs.bandwidth.meter import Meter
from seedance_obs.flow import Channel, Window
from seedance_obs.sources.nics import LOOK_SECONDS, NicLoop
from tests.no_descriptors import no_descriptors
from tests.sources.nic_tree import NIC, NicTree

OTHER = "0000:1b:00.0"
GIGABYTE = 10**9


class Ticking:
    """A loop over adapters on a clock that a test moves."""

    def __init__(self, root: Path) -> None:
        self.now = 100.0
        self.loop = NicLoop(root, interval_seconds=0.1, monotonic=lambda: self.now)

    def tick(self, after: float = 0.1) -> None:
        self.now = round(self.now + after, 6)
        self.loop.tick()

    def windows(self) -> dict[tuple[str, str], list[tuple[float, float]]]:
        """Seconds and bytes of the windows taken, by source and direction."""
        return {
            (flow.source, flow.channel.direction): [
                (round(window.seconds, 6), window.amount) for window in flow.windows
            ]
            for flow in self.loop.take()
        }


@pytest.fixture
def ticking(tmp_path: Path) -> Iterator[Ticking]:
    made = Ticking(tmp_path)
    made.loop.watch([NIC])
    yield made
    made.loop.close()


@pytest.fixture
def nic(tmp_path: Path) -> NicTree:
    return NicTree(tmp_path)


def open_below(folder: Path) -> int:
    """How many files in a folder this process has open, whatever other threads open meanwhile."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
    return found


def test_rdma_counters_are_words_of_four_bytes(ticking: Ticking, nic: NicTree) -> None:
    nic.rdma(1000, 50)
    ticking.tick()
    assert ticking.loop.take() == ()
    nic.rdma(1250, 51)
    ticking.tick()
    sent, received = ticking.loop.take()
    assert sent.channel == (NIC, "network", "transmit")
    assert (sent.source, received.source) == ("rdma", "rdma")
    assert sent.windows == (Window(100.1, 100.2, 1000.0),)
    assert received.channel == (NIC, "network", "receive")
    assert received.windows[0].amount == 4.0


def test_an_ethernet_adapter_counts_bytes_also_below_virtio(ticking: Ticking, nic: NicTree) -> None:
    for folder in ("net", "virtio3/net"):
        nic.ethernet(1000, 50, folder=folder)
    ticking.tick()
    nic.ethernet(1700, 60)
    ticking.tick()
    assert ticking.windows() == {
        ("ethernet", "transmit"): [(0.1, 700.0)],
        ("ethernet", "receive"): [(0.1, 10.0)],
    }
    nic.ethernet(1005, 50, folder="virtio3/net")
    ticking.tick()
    assert ticking.windows()["ethernet", "transmit"] == [(0.1, 5.0)]


def test_a_late_tick_makes_a_longer_window_and_a_hasty_one_none(
    ticking: Ticking, nic: NicTree
) -> None:
    nic.rdma(0, 0)
    ticking.tick()
    for words, after in ((100, 0.35), (200, 0.02), (300, 0.08)):
        nic.rdma(words, 0)
        ticking.tick(after)
    assert ticking.windows()["rdma", "transmit"] == [(0.35, 400.0), (0.1, 800.0)]


@pytest.mark.parametrize("fallen", [0, 7, 2**32 - 1, 2**64 - 1, "N/A (no PMA)", ""])
def test_a_counter_that_fell_or_is_full_or_mute_makes_no_window(
    fallen: int | str, ticking: Ticking, nic: NicTree
) -> None:
    nic.rdma(4 * 10**9, 0)
    ticking.tick()
    nic.rdma(fallen, 25)
    ticking.tick()
    assert ticking.windows() == {("rdma", "receive"): [(0.1, 100.0)]}
    nic.rdma(8, 25)
    ticking.tick()
    nic.rdma(10, 25)
    ticking.tick()
    last = ticking.windows()["rdma", "transmit"][-1]
    assert last == (0.1, 8.0)


def test_a_counter_that_stays_full_is_not_an_idle_link(ticking: Ticking, nic: NicTree) -> None:
    nic.rdma(2**32 - 1, 0)
    for _ in range(5):
        ticking.tick()
    assert set(ticking.windows()) == {("rdma", "receive")}


@pytest.mark.parametrize("rate", ["400 Gb/sec (4X NDR)", "unknown"])
def test_a_counter_that_was_zero_for_a_moment_does_not_count_all_again(
    rate: str, ticking: Ticking, nic: NicTree
) -> None:
    for words in (10**15, 0, 10**15, 10**15 + 5):
        nic.rdma(words, 0, rate=rate)
        ticking.tick()
    assert ticking.windows()["rdma", "transmit"] == [(0.1, 20.0)]


def test_a_burst_at_full_rate_and_a_loop_inside_the_adapter_are_believed(
    ticking: Ticking, nic: NicTree
) -> None:
    for words in (0, 10**9 + 250 * 10**6, 3 * (10**9 + 250 * 10**6)):
        nic.rdma(words, 0)
        ticking.tick()
    amounts = [amount for _, amount in ticking.windows()["rdma", "transmit"]]
    assert amounts == [5 * GIGABYTE, 10 * GIGABYTE]


def test_ports_of_one_function_add_up_and_one_that_falls_costs_the_window(
    ticking: Ticking, nic: NicTree
) -> None:
    for first, second in ((0, 0), (10, 5), (20, 1), (20, 2)):
        nic.rdma(first, 0)
        nic.rdma(second, 0, port=2)
        ticking.tick()
    assert ticking.windows()["rdma", "transmit"] == [(0.1, 60.0), (0.1, 4.0)]


def test_a_device_that_goes_and_comes_back_is_opened_anew(
    ticking: Ticking, nic: NicTree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nic.rdma(1000, 0)
    ticking.tick()
    assert open_below(tmp_path) == 2
    with monkeypatch.context() as patch:
        patch.setattr("os.pread", gone)
        ticking.tick()
    assert open_below(tmp_path) == 0
    shutil.rmtree(nic.device / "infiniband")
    ticking.tick(1.0)
    assert ticking.loop.capacity(NIC) is None
    for words in (5000, 5001):
        nic.rdma(words, 0)
        ticking.tick(LOOK_SECONDS)
    assert ticking.windows()["rdma", "transmit"] == [(LOOK_SECONDS, 4.0)]
    assert open_below(tmp_path) == 2
    assert ticking.loop.capacity(NIC) == 50 * GIGABYTE


def gone(_descriptor: int, _bytes: int, _offset: int) -> bytes:
    raise OSError(errno.ENODEV, "No such device")


def test_a_counter_that_was_replaced_unseen_is_found_at_the_next_look(
    ticking: Ticking, nic: NicTree
) -> None:
    nic.ethernet(1000, 0)
    ticking.tick()
    kept = nic.device / "old"
    (nic.device / "net").rename(kept)  # the old inode stays taken
    nic.ethernet(9000, 0)
    ticking.tick(LOOK_SECONDS)
    nic.ethernet(9001, 0)
    ticking.tick()
    assert ticking.windows()["ethernet", "transmit"] == [(0.1, 1.0)]


def test_a_failing_read_costs_one_counter_only(
    ticking: Ticking, nic: NicTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    nic.rdma(0, 0)
    ticking.tick()
    real, calls = os.pread, iter([True])

    def first_fails(descriptor: int, size: int, offset: int) -> bytes:
        if next(calls, False):
            raise OSError(errno.EIO, "Input/output error")
        return real(descriptor, size, offset)

    monkeypatch.setattr("os.pread", first_fails)
    ticking.tick()
    assert set(ticking.windows()) == {("rdma", "receive")}


def test_a_counter_refreshed_once_a_second_makes_windows_from_change_to_change(
    ticking: Ticking, nic: NicTree
) -> None:
    (nic.device / "driver").symlink_to("../../../../bus/pci/drivers/bnxt_en")
    nic.ethernet(0, 0)
    ticking.tick()
    for tenth in range(1, 41):
        nic.ethernet(tenth // 10 * GIGABYTE, 0)
        ticking.tick()
    found = ticking.windows()
    assert found["ethernet", "transmit"] == [(1.0, GIGABYTE)] * 4
    assert found["ethernet", "receive"] == [(1.5, 0.0)] * 2


def test_an_adapter_that_is_told_once_a_second_is_judged_and_not_lost(
    ticking: Ticking, nic: NicTree
) -> None:
    (nic.device / "driver").symlink_to("../../../../bus/pci/drivers/bnxt_en")
    meters: dict[Channel, Meter] = {}
    for tenth in range(301):
        nic.ethernet(tenth // 10 * GIGABYTE, 0)
        ticking.tick()
        for flow in ticking.loop.take():
            meter = meters.setdefault(
                flow.channel, Meter(interval_seconds=0.1, window_seconds=15.0)
            )
            meter.add(flow.windows, 10 * GIGABYTE, flow.source, pace=flow.pace)
    for meter, level in zip(meters.values(), (GIGABYTE, 0), strict=True):
        reading = meter.reading()
        assert (reading.mean, reading.peak) == (pytest.approx(level), pytest.approx(level))
        assert reading.observed_seconds == pytest.approx(30, abs=3)
        assert reading.late_seconds == 0


def test_a_part_that_is_refreshed_at_other_times_does_not_make_a_burst_of_the_rest(
    ticking: Ticking, nic: NicTree
) -> None:
    (nic.device / "driver").symlink_to("../../../../bus/pci/drivers/bnxt_en")
    for tenth in range(41):
        nic.ethernet(tenth // 10 * GIGABYTE + tenth, 0)
        ticking.tick()
    found = ticking.windows()["ethernet", "transmit"]
    assert len(found) == 5
    assert max(amount / seconds for seconds, amount in found) < 1.3 * GIGABYTE


def test_what_is_no_longer_watched_is_closed_and_forgotten(tmp_path: Path) -> None:
    for address in (NIC, OTHER):
        NicTree(tmp_path, address).rdma(0, 0)
    ticking = Ticking(tmp_path)
    for _ in range(50):
        for wanted in ([NIC, OTHER], [OTHER], []):
            ticking.loop.watch(wanted)
            ticking.tick()
            assert open_below(tmp_path) == 2 * len(wanted)
    ticking.loop.watch([NIC, NIC])
    ticking.tick()
    assert ticking.loop.capacity(OTHER) is None
    ticking.loop.close()
    assert open_below(tmp_path) == 0


def test_a_process_that_can_open_nothing_goes_on_with_what_is_open(
    tmp_path: Path, ticking: Ticking, nic: NicTree
) -> None:
    nic.rdma(0, 0)
    NicTree(tmp_path, OTHER).rdma(0, 0)
    ticking.tick()
    nic.rdma(1, 0)
    ticking.loop.watch([NIC, OTHER])
    with no_descriptors():
        ticking.tick(LOOK_SECONDS)
    assert open_below(tmp_path) == 2
    assert ticking.windows()["rdma", "transmit"] == [(LOOK_SECONDS, 4.0)]
    ticking.tick(1.0)
    assert open_below(tmp_path) == 4


def test_windows_that_nobody_takes_do_not_pile_up(ticking: Ticking, nic: NicTree) -> None:
    nic.rdma(0, 0)
    for _ in range(1300):
        ticking.tick()
    assert {len(windows) for windows in ticking.windows().values()} == {1200}
    assert ticking.windows() == {}


def test_an_adapter_that_is_not_there_is_silent(ticking: Ticking) -> None:
    ticking.tick()
    ticking.tick()
    assert ticking.loop.take() == ()
    assert ticking.loop.capacity(NIC) is None
