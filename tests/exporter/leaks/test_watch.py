"""What the ticks and probes of a made-up host are joined into."""

import logging
from pathlib import Path

import pytest

from seedance_obs.exporter.view import AttributionView, BoardEvidence
from tests.exporter.books.boards import board, reading
from tests.exporter.leaks.watched_host import INNER_ACCOUNT, OUTER_ACCOUNT, Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_whole_tree_of_who_is_on_a_gpu_is_probed_and_nobody_else(host: Host) -> None:
    host.start(11, parent=10)
    host.start(12, parent=1)
    assert host.probe(0.0, 20) == {"read": 1}
    assert host.probe(15.0, 10) == {"read": 3}


@pytest.mark.parametrize(("on_gpu", "whose"), [((10, 20), "bob"), ((10,), "ann")])
def test_of_two_trees_a_process_is_the_ones_that_has_it_on_a_gpu(
    tmp_path: Path, on_gpu: tuple[int, ...], whose: str
) -> None:
    host = Host(tmp_path, leaks_fd_limit_ratio=0.2)
    for number in range(250):
        host.tree.write(f"proc/20/fd/{number}", "")
    host.probe(0.0, *on_gpu)
    (suspect,) = host.watch.view.suspects
    assert (suspect.finding.kind, suspect.tenant) == ("fd_near_limit", whose)
    assert suspect.finding.process is not None
    assert suspect.finding.process.comm == "python20"


@pytest.mark.parametrize("known", [False, None])
def test_unless_pids_are_the_hosts_none_is_read_and_that_is_counted(
    host: Host, known: bool | None
) -> None:
    host.host_pids = known
    assert host.probe(0.0, 10, 20) == {"no_host_pids": 2}
    host.host_pids = True
    assert host.probe(15.0, 10, 20) == {"read": 2}


@pytest.mark.parametrize(("known", "told"), [(True, True), (False, False), (None, False)])
def test_unless_pids_are_the_hosts_an_empty_list_is_no_proof_of_an_empty_board(
    host: Host, known: bool | None, told: bool
) -> None:
    host.host_pids = known
    for now in range(0, 400, 10):
        host.note(float(now), memory_used_bytes=2.0**33)
        host.watch.probe(float(now))
    kinds = [suspect.finding.kind for suspect in host.watch.view.suspects]
    assert kinds == (["memory_without_process"] if told else [])


def test_what_cannot_be_read_is_said_once_and_so_is_its_end(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    said = []
    for now, hidden in enumerate((False, True, True, False)):
        caplog.clear()
        host.host_pids = not hidden
        host.probe(15.0 * now, 10)
        said.append([record.getMessage() for record in caplog.records])
    assert said == [
        [],
        ["event=leak_probe_blind reason=no_host_pids processes=1"],
        [],
        ["event=leak_probe_sees reason=no_host_pids"],
    ]


def test_that_a_process_has_ended_is_nothing_to_say(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.tree.end(20)
    assert host.probe(0.0, 10, 20) == {"read": 1, "gone": 1}
    assert caplog.records == []


@pytest.mark.parametrize(
    ("node_open", "open_accounts", "told"),
    [
        (False, (), False),
        (True, (), True),
        (False, (OUTER_ACCOUNT,), True),
        (False, (INNER_ACCOUNT,), False),
    ],
)
def test_memory_is_judged_while_the_node_or_its_owner_is_idle(
    tmp_path: Path, node_open: bool, open_accounts: tuple[str, ...], told: bool
) -> None:
    host = Host(tmp_path, leaks_memory_growth=("fast=1MiB/h,30s",))
    host.windows.node_open, host.windows.open = node_open, frozenset(open_accounts)
    for now in range(0, 300, 5):
        host.hold(10, anonymous_pages=100 + now)
        host.probe(float(now), 10, 20)
    kinds = [suspect.finding.kind for suspect in host.watch.view.suspects]
    assert kinds == (["anonymous_growth"] if told else [])


def test_growth_in_many_short_idle_windows_is_told_as_in_one(tmp_path: Path) -> None:
    host = Host(tmp_path, leaks_memory_growth=("fast=1MiB/h,30s",))
    host.windows.open = frozenset()
    for now in range(0, 600, 5):
        host.windows.node_open = now % 60 < 30
        host.hold(10, anonymous_pages=100 + now)
        host.probe(float(now), 10, 20)
    kinds = [suspect.finding.kind for suspect in host.watch.view.suspects]
    assert kinds == ["anonymous_growth"]


def test_it_is_said_since_when_processes_are_watched_without_a_gap(host: Host) -> None:
    since = []
    for now in (10.0, 25.0, 70.0, 85.0, 131.0):
        host.probe(now, 10)
        since.append(host.watch.view.watching_since)
    assert since == [10.0, 10.0, 10.0, 10.0, 131.0]


def test_the_last_probe_in_an_idle_window_is_remembered(host: Host) -> None:
    at = []
    for now, is_open in ((0.0, False), (15.0, True), (30.0, False)):
        host.windows.node_open = is_open
        host.probe(now, 10)
        at.append(host.watch.view.probed_in_window_at)
    assert at == [None, 15.0, 15.0]
    assert host.watch.view.probed_at == 30.0


@pytest.mark.parametrize(("base_watts", "told"), [(None, False), (40.0, True)])
def test_a_board_spins_below_a_tenth_above_what_open_contexts_draw(
    host: Host, base_watts: float | None, told: bool
) -> None:
    evidence = BoardEvidence("GPU-a", "counter", 60.0, "measured", base_watts, {}, 0, 0, None)
    books = AttributionView(evidence=(evidence,))
    told_of = {"utilization_ratio": 1.0, "power_watts": 140.0, "power_limit_watts": 700.0}
    for now in range(0, 700, 10):
        host.note(float(now), 10, books=books, **told_of)
    host.watch.probe(float(now))
    kinds = [suspect.finding.kind for suspect in host.watch.view.suspects]
    assert kinds == (["spinning"] if told else [])


def test_a_fault_of_a_tick_costs_that_tick_only(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.watch.note([object()], [], AttributionView(), 0.0, expected=1)  # no board at all
    assert "fault_started" in caplog.text
    assert host.probe(15.0, 10) == {"read": 2}


def test_a_fault_of_one_board_costs_the_others_nothing(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    for now in range(0, 400, 10):
        broken = board("GPU-0", readings={"memory_used_bytes": reading(float("nan"))})
        gpu = board(
            "GPU-1", listed_at=now, processes=(), readings={"memory_used_bytes": reading(2**33)}
        )
        host.watch.note([broken, gpu], [], AttributionView(), float(now), expected=1)
        host.watch.probe(float(now))
    found = [suspect.finding for suspect in host.watch.view.suspects]
    assert [(each.kind, each.gpu_uuid) for each in found] == [("memory_without_process", "GPU-1")]
    assert [record.getMessage() for record in caplog.records if "fault" in record.getMessage()] == [
        "event=fault_started of='watching GPU-0 for leaks'"
    ]
