"""What DCGM's profiling gauges say of the time between two pages."""

import pytest

from seedance_obs.exporter.bandwidth.page_flows import PageFlows
from seedance_obs.flow import Channel, Window
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot


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


@pytest.mark.parametrize("later", [100.0, 90.0, 161.0])
def test_a_page_of_the_same_moment_or_of_much_later_tells_of_no_time(later):
    flows = PageFlows()
    flows.of(page(100.0, dram_active_ratio=0.5))
    assert flows.of(page(later, dram_active_ratio=0.5)) == ()
    assert len(flows.of(page(later + 10, dram_active_ratio=0.5))) == 1
