"""A driver that is away for a while costs what is known of processes and windows nothing."""

from pathlib import Path

import pytest

from tests.exporter.leaks.watched_host import INNER_ACCOUNT, OUTER_ACCOUNT, Host

STEADY, BEGINS, EVERY = 200, 200, 5
SETTINGS = {"leaks_fd_growth": ("fast=0.5/s,30s",)}


@pytest.fixture
def leaking(tmp_path: Path) -> Host:
    """A host whose server leaks descriptors, one a second, and has been told to."""
    host = Host(tmp_path, **SETTINGS)
    for number in range(STEADY):
        host.tree.write(f"proc/20/fd/{number}", "")
    for now in range(0, 400, EVERY):
        leak(host, now)
        host.probe(float(now), 10, 20)
    assert "fd_growth" in host.kinds()
    return host


def leak(host: Host, now: int) -> None:
    for number in range(STEADY, STEADY + max(0, now - BEGINS)):
        host.tree.write(f"proc/20/fd/{number}", "")


@pytest.mark.parametrize("seconds", [EVERY, 120])
def test_a_driver_that_is_away_for_a_while_costs_no_history(leaking: Host, seconds: int) -> None:
    told = []
    for now in range(400, 400 + seconds, EVERY):
        leak(leaking, now)
        leaking.fall_silent(float(now))
        leaking.watch.probe(float(now))
        told.append("fd_growth" in leaking.kinds())
        assert leaking.windows.owners.keys() == {OUTER_ACCOUNT, INNER_ACCOUNT}
    leak(leaking, 400 + seconds)
    leaking.probe(400.0 + seconds, 10, 20)
    told.append("fd_growth" in leaking.kinds())
    assert told == [True] * len(told)


def test_who_left_the_gpus_is_not_watched_any_more(leaking: Host) -> None:
    leaking.probe(400.0)
    assert leaking.kinds() == []
    assert leaking.windows.owners == {}


def test_a_driver_that_is_let_go_for_long_leaves_nobody_to_watch(leaking: Host) -> None:
    for now in range(400, 1000, 15):
        leaking.fall_silent(float(now))
        leaking.watch.probe(float(now))
    assert leaking.kinds() == []
    assert leaking.windows.owners == {}
    assert leaking.watch.view.processes == {}


def test_after_a_machine_slept_what_is_known_begins_anew_and_nothing_breaks(leaking: Host) -> None:
    leaking.note(400.0, 10, 20)
    leaking.watch.probe(4000.0)  # the tick was before, the probe is after
    assert leaking.kinds() == []
    assert leaking.probe(4015.0, 10, 20) == {"read": 2}
    assert leaking.watch.view.probed_at == 4015.0


def test_before_the_driver_first_answers_probes_go_on(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.watch.probe(0.0)
    host.fall_silent(10.0)
    host.watch.probe(15.0)
    assert host.watch.view.processes == {}
    assert host.watch.view.probed_at == 15.0
    assert host.probe(30.0, 10, 20) == {"read": 2}
