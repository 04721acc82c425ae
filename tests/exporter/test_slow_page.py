"""A node without NVML, whose dcgm-exporter collects every half minute, as it does by default."""

import random

import pytest

from seedance_obs.exporter.node import Node
from seedance_obs.sources.readings import GpuReadings, SourceSnapshot
from tests.exporter.books.test_workloads import WATTS, Host, holds

COLLECTED_EVERY = 30.0


class Page:
    """Shows a counter of 100 W as it was last collected."""

    name = "dcgm"

    def __init__(self, clock) -> None:
        self._clock = clock

    def read(self) -> SourceSnapshot:
        now = self._clock()
        energy_mj = now // COLLECTED_EVERY * COLLECTED_EVERY * WATTS * 1000
        gpu = GpuReadings("GPU-0", index=0, values={"energy_mj": energy_mj})
        return SourceSnapshot("dcgm", now, gpus=(gpu,))

    def close(self) -> None:
        pass


@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_a_pod_pays_for_all_that_a_seldom_collected_counter_shows(clock, tmp_path, jitter):
    host = Host(clock, tmp_path)
    sources = [Page(clock), host.kubelet]
    host.node = Node(host.settings, sources, node_name="n", monotonic=clock, wall=clock)
    host.kubelet.containers = (holds("red", "a", "GPU-0"),)
    late = random.Random(1)
    began = clock()
    for tenth in range(1, 61):
        clock.advance(began + 10.0 * tenth + late.uniform(0, jitter) - clock())
        for name in host.node.sources:
            host.node.poll(name)
        host.node.assemble()
    assert set(host.joules()) == {"red"}
    assert host.joules()["red"] >= 560 * WATTS
