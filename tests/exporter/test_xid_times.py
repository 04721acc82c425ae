"""When an XID was is told until the driver wants nothing done, or is let go of."""

import pytest

from seedance_obs.errors import DriverReleasedError
from seedance_obs.sources.readings import Xid
from tests.exporter.test_node import Scripted, gpu, samples
from tests.machine import machine

NAME = "seedance_gpu_xid_age_seconds"


@pytest.fixture
def nvml(clock):
    source = Scripted("nvml", clock)
    source.gpus = (gpu(0), gpu(1))
    return source


@pytest.fixture
def host(nvml, clock, tmp_path):
    return machine([nvml], clock, root=tmp_path)


def test_the_last_of_two_equal_errors_is_the_one_that_is_told(host, nvml, clock):
    nvml.xids = (Xid("GPU-0", 31),)
    host.pass_once()
    clock.advance(60.0)
    assert samples(host, NAME) == {("0", "31"): 60.0}
    host.pass_once()
    assert samples(host, NAME) == {("0", "31"): 0.0}


def test_an_error_is_told_while_the_driver_wants_something_done_or_does_not_say(host, nvml, clock):
    nvml.gpus = (gpu(0, recovery_action=1), gpu(1), gpu(2, recovery_action=0))
    nvml.xids = tuple(Xid(f"GPU-{index}", 119) for index in range(3))
    host.pass_once()
    nvml.xids = ()
    clock.advance(899.0)
    host.pass_once()
    assert len(samples(host, NAME)) == 3
    clock.advance(2.0)
    host.pass_once()
    assert samples(host, NAME).keys() == {("0", "119"), ("1", "119")}
    nvml.gpus = (gpu(0, recovery_action=0), gpu(1))
    host.pass_once()
    assert samples(host, NAME).keys() == {("1", "119")}
    assert len(samples(host, "seedance_gpu_xid_errors_total")) == 3


def test_a_driver_that_hangs_settles_nothing_and_one_that_is_let_go_of_does(
    host, nvml, clock, monkeypatch
):
    nvml.xids = (Xid("GPU-0", 119),)
    host.pass_once()
    nvml.gpus, nvml.xids = None, ()
    clock.advance(3600.0)
    host.pass_once()
    assert samples(host, NAME).keys() == {("0", "119")}

    def released() -> None:
        raise DriverReleasedError("for a reset")

    monkeypatch.setattr(nvml, "read", released)
    host.pass_once()
    assert samples(host, NAME) == {}
    assert samples(host, "seedance_gpu_xid_errors_total") == {("0", "119"): 1.0}
