"""A fault is kept to what fails, and is told when it starts and when it ends."""

import logging

import pytest

from seedance_obs.exporter.faults import Faults


def test_a_fault_is_logged_when_it_starts_and_when_it_ends(caplog):
    faults = Faults()
    for fails in (False, True, True, False, False):
        with faults.kept_to("one thing"):
            assert not fails
    started, ended = caplog.records
    assert started.message == "event=fault_started of='one thing'"
    assert started.levelno == logging.ERROR
    assert started.exc_info
    assert ended.message == "event=fault_ended of='one thing'"


def test_things_fail_each_for_itself(caplog):
    faults = Faults()
    for what in ("one", "another", "one"):
        with faults.kept_to(what):
            raise ValueError(what)
    assert [record.args for record in caplog.records] == [("one",), ("another",)]


def test_who_wants_to_stop_is_not_held_up(caplog):
    with pytest.raises(KeyboardInterrupt), Faults().kept_to("one thing"):
        raise KeyboardInterrupt
    assert caplog.records == []
