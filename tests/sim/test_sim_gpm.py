"""GPM and PCIe throughput of a simulated board are what its physics did since the call before."""

from collections import Counter

import pytest
from one_gpu import machine_with

from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.gpm import ACTIVITY_METRICS
from seedance_obs.sources.nvml.library import NOT_SUPPORTED, NvmlError
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.wrapping import Unwrapped
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.physics import boards

GPM = "nvmlGpmMetricsGet"
MIB = 2**20


class Time:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def opened(machine: Machine, time: Time) -> SimNvml:
    library = SimNvml(machine, time)
    library.call("nvmlInit")
    return library


def test_each_mean_is_over_the_time_since_the_call_before():
    time = Time(10.0)
    library = opened(machine_with({"phases": [[1, 1.0], [1, 0.0]], "kind": "training"}), time)
    assert library.call(GPM, "gpu0", 1, 2) == [None, None]
    found = []
    for time.now in (10.5, 11.5, 12.0):
        found.append(library.call(GPM, "gpu0", 1, 2))
    assert found == [
        [pytest.approx(100.0), pytest.approx(93.0)],
        [pytest.approx(50.0), pytest.approx(46.5)],
        [0.0, 0.0],
    ]


def test_who_asks_for_other_metrics_has_a_time_of_their_own():
    time = Time(10.0)
    library = opened(machine_with({"phases": [[1, 1.0], [1, 0.0]]}), time)
    library.call(GPM, "gpu0", 1)
    library.call(GPM, "gpu0", 1, 20)
    time.now = 11.0
    library.call(GPM, "gpu0", 1)
    time.now = 12.0
    assert library.call(GPM, "gpu0", 1) == [0.0]
    mean, mib = library.call(GPM, "gpu0", 1, 20)
    assert mean == pytest.approx(50.0)
    assert mib == pytest.approx(1.1e9 / 2 / MIB)


@pytest.mark.parametrize("name", ["a100-pcie", "l40s", "v100-cubemesh"])
def test_boards_before_hopper_have_no_gpm(name):
    with pytest.raises(NvmlError) as refusal:
        opened(load_machine(name), Time(10.0)).call(GPM, "gpu0", 1)
    assert refusal.value.code == NOT_SUPPORTED


def test_passes_over_mig_instances_read_what_each_did():
    time, machine = Time(30.0), load_machine("h100-mig")
    reader = NvmlReader(SimNvml(machine, time), monotonic=time)
    reader.start()
    reader.read()
    time.now = 31.0
    board = boards(machine)[0]
    instances = reader.read().gpus[0].mig
    assert len(instances) == len(board.gpu.mig)
    for index, instance in enumerate(instances):
        assert instance.values["sm_active_ratio"] == pytest.approx(
            board.mean_ratio(30.0, 31.0, mig=index, of="sm")
        )
        assert set(ACTIVITY_METRICS.values()) <= instance.values.keys()


@pytest.mark.parametrize(
    ("name", "sources"), [("h100-nvswitch", ["counter", "gpm"]), ("a100-nvswitch", ["counter"])]
)
def test_windows_add_up_to_what_passed(name, sources):
    time, machine = Time(30.0), load_machine(name)
    library = SimNvml(machine, time)
    fast = FastReader(library, interval_seconds=0.1, monotonic=time, unwrapped=Unwrapped())
    reader = NvmlReader(library, fast=fast, monotonic=time)
    reader.start()
    reader.read()
    for number in range(41):
        time.now = 30.0 + number / 10
        fast.tick()
    by_uuid = {machine.gpu_uuid(board.gpu.index): board for board in boards(machine)}
    links = [flow for flow in reader.read().flows if flow.channel.medium in ("pcie", "nvlink")]
    found = Counter(flow.source for flow in links if flow.source != "throughput")
    assert found == dict.fromkeys(sources, 4 * len(by_uuid))
    for flow in (flow for flow in links if flow.source in found):
        device, medium, direction = flow.channel
        part, share = (f"pcie_{direction}", 1.0) if medium == "pcie" else ("nvlink", 0.5)
        until, since = (by_uuid[device].moved_bytes(t, part) for t in (34.0, 30.0))
        passed = sum(window.amount for window in flow.windows)
        assert passed == pytest.approx(share * (until - since), abs=2048), flow.channel
        assert sum(window.seconds for window in flow.windows) == pytest.approx(4.0)


def test_throughput_is_that_of_the_last_twenty_milliseconds():
    time = Time(10.99)
    library = opened(machine_with({"phases": [[1, 1.0], [1, 0.0]]}), time)
    sent, received = (library.call("nvmlDeviceGetPcieThroughput", "gpu0", n) for n in (0, 1))
    assert (sent, received) == (1_100_000, 2_400_000)
    time.now = 11.01
    assert library.call("nvmlDeviceGetPcieThroughput", "gpu0", 0) == 550_000
