"""What DCGM's profiling gauges say of the time between two pages."""

import pytest

from seedance_obs.exporter.bandwidth.page_flows import PageFlows
from seedance_obs.flow import Channel, Window
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot

UUID = "GPU-11111111-2222-3333-4444-555555555555"


def page(at: float, **values: float) -> SourceSnapshot:
    return SourceSnapshot("dcgm", at, (GpuReadings("G0", values=values),))


def test_a_gauge_is_the_mean_of_the_time_since_the_page_before():
    flows = PageFlows()
    assert flows.of(page(100.0, dram_active_ratio=0.5)) == ()
    told = flows.of(page(110.0, dram_active_ratio=0.25, pcie_receive_bytes_per_second=2e9))
    windows = {flow.channel: (flow.source, flow.windows) for flow in told}
    assert windows == {
        Channel("G0", "hbm"): ("dcgm", (Window(100.0, 110.0, 2.5),)),
        Channel("G0", "pcie", "receive"): ("dcgm", (Window(100.0, 110.0, 2e10),)),
    }


def test_nodes_of_dcgm_alone_have_nvlinks_too():
    flows = PageFlows()
    text = "".join(
        f'DCGM_FI_PROF_NVLINK_{way}_BYTES{{gpu="0",UUID="{UUID}"}} {rate}\n'
        for way, rate in (("TX", 3_000_000_000), ("RX", 1_000_000_000))
    )
    for at in (100.0, 110.0):
        told = flows.of(read_page(text, taken_at=at))
    assert {flow.channel: flow.windows for flow in told} == {
        Channel(UUID, "nvlink", "transmit"): (Window(100.0, 110.0, 3e10),),
        Channel(UUID, "nvlink", "receive"): (Window(100.0, 110.0, 1e10),),
    }


@pytest.mark.parametrize("later", [100.0, 90.0, 161.0])
def test_a_page_of_the_same_moment_or_of_much_later_tells_of_no_time(later):
    flows = PageFlows()
    flows.of(page(100.0, dram_active_ratio=0.5))
    assert flows.of(page(later, dram_active_ratio=0.5)) == ()
    assert len(flows.of(page(later + 10, dram_active_ratio=0.5))) == 1
