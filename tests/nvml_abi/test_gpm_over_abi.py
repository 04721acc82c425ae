"""GPM over NVML's ABI: samples are allocated, kept apart, swapped and given back."""

from collections.abc import Callable, Mapping

import pytest

from seedance_obs.flow import Channel, Flow, Window
from seedance_obs.sources.nvml.fast import FastReader
from seedance_obs.sources.nvml.library import FUNCTION_NOT_FOUND, NOT_SUPPORTED, NvmlError
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.nvml.wrapping import Unwrapped
from tests.nvml_abi.conftest import StandInMachine
from tests.nvml_abi.machines import machine_library
from tests.nvml_abi.state_file import state_of

StandIn = Callable[..., StandInMachine]
GPM = "nvmlGpmMetricsGet"
MIB = 2**20
SUPPORT = {"nvmlInit -": "0", "nvmlDeviceGetCount -": "0 1", "nvmlDeviceGetHandleByIndex gpu0": "0"}
SUPPORT |= {"nvmlGpmQueryDeviceSupport gpu0": "0 1"}


def sample(seconds: float, totals: Mapping[int, float]) -> str:
    items = [f"{metric}:{total!r}" for metric, total in {0: seconds, **totals}.items()]
    return " ".join(["0", str(len(items)), *items])


def sampled(seconds: float, totals: Mapping[int, float]) -> dict[str, str]:
    return {**SUPPORT, "nvmlGpmSampleGet gpu0": sample(seconds, totals)}


def test_means_are_between_one_call_and_the_next(stand_in: StandIn) -> None:
    machine = stand_in(sampled(10.0, {2: 100.0, 20: 5.0}))
    nvml = machine.binding()
    assert nvml.call(GPM, "gpu0", 2, 20, 61) == [None, None, None]
    machine.write(sampled(12.0, {2: 160.0, 20: 6.0}))
    assert nvml.call(GPM, "gpu0", 2, 20, 61) == [30.0, 0.5, None]
    machine.write(sampled(12.5, {2: 160.0, 20: 8.0}))
    assert nvml.call(GPM, "gpu0", 2, 20, 61) == [0.0, 4.0, None]
    assert nvml.call(GPM, "gpu0", 2, 20, 61) == [None, None, None], "a value that is no number"


def test_who_asks_for_other_metrics_does_not_shorten_the_time_of_the_first(
    stand_in: StandIn,
) -> None:
    machine = stand_in(sampled(10.0, {2: 0.0, 20: 0.0}))
    nvml = machine.binding()
    nvml.call(GPM, "gpu0", 2)
    nvml.call(GPM, "gpu0", 20)
    for number in range(1, 5):
        machine.write(sampled(10.0 + number, {2: 10.0 * number**2, 20: 7.0 * number}))
        assert nvml.call(GPM, "gpu0", 20) == [7.0]
    assert nvml.call(GPM, "gpu0", 2) == [40.0]


def test_a_failed_sample_makes_the_next_mean_longer(stand_in: StandIn) -> None:
    machine = stand_in(sampled(10.0, {2: 0.0}))
    nvml = machine.binding()
    nvml.call(GPM, "gpu0", 2)
    machine.write({**SUPPORT, "nvmlGpmSampleGet gpu0": "4"})
    with pytest.raises(NvmlError, match="no_permission"):
        nvml.call(GPM, "gpu0", 2)
    machine.write(sampled(20.0, {2: 500.0}))
    assert nvml.call(GPM, "gpu0", 2) == [50.0]


def test_samples_are_given_back_before_the_driver_is_let_go(stand_in: StandIn) -> None:
    nvml = stand_in(sampled(10.0, {2: 0.0})).binding()
    for _ in range(3):
        assert nvml.call(GPM, "gpu0", 2) == [None]
        nvml.call("nvmlShutdown")
        nvml.call("nvmlInit")


@pytest.mark.parametrize(("driver", "code"), [("", NOT_SUPPORTED), ("OLD_DRIVER", 13)])
def test_a_board_without_gpm_says_so(stand_in: StandIn, driver: str, code: int) -> None:
    assert FUNCTION_NOT_FOUND == 13
    machine = stand_in({**SUPPORT, "nvmlGpmQueryDeviceSupport gpu0": "0 0"}, driver=driver)
    with pytest.raises(NvmlError) as refusal:
        machine.binding().call(GPM, "gpu0", 2)
    assert refusal.value.code == code


def test_a_mig_device_is_sampled_by_its_gpu_instance(stand_in: StandIn) -> None:
    lines = state_of(machine_library("h100-mig"))
    lines |= {f"nvmlGpmQueryDeviceSupport gpu{gpu}": "0 1" for gpu in range(8)}
    first = {f"nvmlGpmMigSampleGet gpu0 {number}": sample(1.0, {2: 0.0}) for number in (2, 3, 9)}
    then = {
        f"nvmlGpmMigSampleGet gpu0 {number}": sample(3.0, {2: 2.0 * number}) for number in (2, 3, 9)
    }
    machine = stand_in({**lines, **first})
    reader = NvmlReader(machine.binding(initialise=False))
    reader.start()
    reader.read()
    machine.write({**lines, **then})
    activity = {
        one.gpu_instance: one.values.get("sm_active_ratio") for one in reader.read().gpus[0].mig
    }
    assert activity == {2: pytest.approx(0.02), 3: pytest.approx(0.03), 9: 0.09, 10: None}


def test_the_fast_loop_reads_the_real_binding(
    stand_in: StandIn, clock: Callable[[], float]
) -> None:
    lines = state_of(machine_library("h100-nvswitch"))
    uuid = str(machine_library("h100-nvswitch").call("nvmlDeviceGetUUID", "gpu0"))

    def moment(pcie: int, nvlink_kib: int, seconds: float, mib: float) -> dict[str, str]:
        counters = {197: pcie, 198: pcie * 2, 138 | 0xFFFFFFFF << 32: nvlink_kib}
        asked = {
            f"nvmlDeviceGetFieldValues gpu0 {code}": f"0 0 3 {value}"
            for code, value in counters.items()
        }
        return {**lines, **asked, **sampled(seconds, {20: mib, 10: seconds * 25.0})}

    machine = stand_in({**moment(2**32 - 100, 7, 50.0, 0.0), "nvmlDeviceGetCount -": "0 1"})
    library = machine.binding(initialise=False)
    fast = FastReader(library, interval_seconds=0.2, monotonic=clock, unwrapped=Unwrapped())
    reader = NvmlReader(library, fast=fast, monotonic=clock)
    reader.start()
    reader.read()
    fast.tick()
    clock.advance(0.25)  # type: ignore[attr-defined]  # the fake clock
    machine.write({**moment(900, 9, 50.25, 3.0), "nvmlDeviceGetCount -": "0 1"})
    fast.tick()
    flows = {(flow.channel[1:], flow.source): flow for flow in reader.read().flows}
    start, end = clock() - 0.25, clock()
    assert flows[("pcie", "transmit"), "counter"].windows == (Window(start, end, 1000),)
    assert flows[("nvlink", "transmit"), "counter"].windows == (Window(start, end, 2048),)
    assert flows[("pcie", "transmit"), "gpm"] == Flow(
        Channel(uuid, "pcie", "transmit"), "gpm", (Window(start, end, 3.0 * MIB),), pace=0.2
    )
    assert flows[("hbm", ""), "gpm"].windows == (Window(start, end, 0.25 * 0.25),)
    assert flows[("power", ""), "sensor"].windows[0].level > 60.0
