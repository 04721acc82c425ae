"""Bursts, contention and tenants of a whole node, against what its machine was told to do."""

import re
from collections import Counter
from dataclasses import replace
from math import sqrt

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from seedance_obs.bandwidth.reading import SegmentName
from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.flow import Channel
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.kinds import KINDS
from seedance_obs.sources.sim.machine import Held, Workload
from tests.exporter.bandwidth.fast_node import TICKS, fast_node

UPLINK = SegmentName("pcie_switch", "0000:18:00.0", "receive")  # of GPU 0 and 1
FULL = 16e9 * 128 / 130 * 16 / 8  # bytes per second, PCIe 4 over 16 lanes
BURST, STEADY = 15e9, 12e9  # one alone leaves the uplink free, both fill it to 86 %
BURST_SHARE = 0.4  # of each second
SECONDS = 40
SETTLED = 2  # seconds that the segments may be behind


@pytest.fixture
def two_tenants(monkeypatch):
    """GPU 0 bursts 0.4 s in each second, GPU 1 below the same switch never rests."""
    for name, rate in (("video", BURST), ("inference", STEADY)):
        monkeypatch.setitem(KINDS, name, replace(KINDS[name], pcie_receive=rate))
    bursts = ((BURST_SHARE, 1.0), (1 - BURST_SHARE, 0.0))
    workloads = (
        Workload(0, "bursting", "vision", "video", (Held(0),), bursts, 1000),
        Workload(1, "steady", "speech", "inference", (Held(1),), ((1.0, 1.0),), 1000),
    )
    return replace(load_machine("a100-pcie"), workloads=workloads, faults=())


def readings(node):
    view = node.node.view.bandwidth
    tenants = {(each.segment, each.tenant): each for each in view.tenants}
    return view, {each.segment: each for each in view.segments}, tenants


def test_contention_is_seen_that_no_mean_of_a_second_shows(two_tenants, tmp_path):
    with fast_node(two_tenants, tmp_path) as node:
        node.pass_seconds(SECONDS)
        view, segments, tenants = readings(node)
    uplink = segments[UPLINK]
    assert uplink.capacity == pytest.approx(FULL)
    assert uplink.mean < 0.6 * FULL
    assert uplink.peak == pytest.approx(BURST + STEADY, rel=1e-3)
    assert uplink.observed_seconds == pytest.approx(SECONDS, abs=SETTLED)
    contended = BURST_SHARE * uplink.observed_seconds
    assert uplink.contention_seconds == pytest.approx(contended, abs=0.5)
    assert uplink.busy_seconds[0.8] == pytest.approx(contended, abs=0.5)
    assert uplink.busy_seconds[0.95] == 0
    bursting, steady = tenants[UPLINK, "vision"], tenants[UPLINK, "speech"]
    assert bursting.mean == pytest.approx(BURST * BURST_SHARE, rel=1e-2)
    assert bursting.jitter == pytest.approx(BURST * sqrt(BURST_SHARE * (1 - BURST_SHARE)), rel=1e-2)
    assert (steady.mean, steady.jitter) == pytest.approx((STEADY, 0.0), rel=1e-2, abs=0.01 * STEADY)
    assert bursting.share + steady.share == pytest.approx(1.0)
    assert steady.contention_seconds == uplink.contention_seconds
    others = [each for name, each in segments.items() if name != UPLINK]
    assert others
    assert not any(each.contention_seconds for each in others)
    assert view.sensitivities == (), "there is no evidence yet"


def test_each_link_tells_every_byte_and_its_bursts(two_tenants, tmp_path):
    with fast_node(two_tenants, tmp_path) as node:
        node.pass_seconds(SECONDS)
        view, _, _ = readings(node)
    bursting = view.channels[Channel(two_tenants.gpu_uuid(0), "pcie", "receive")]
    assert bursting.source == "counter"
    learnt = 1 / TICKS  # the first tick only learns from where to count
    assert bursting.total == pytest.approx(BURST * (BURST_SHARE * SECONDS - learnt), rel=1e-6)
    assert bursting.peak == pytest.approx(BURST, rel=1e-3)
    assert bursting.mean == pytest.approx(BURST * BURST_SHARE, rel=1e-2)
    assert bursting.late_seconds == 0
    idle = view.channels[Channel(two_tenants.gpu_uuid(5), "pcie", "receive")]
    assert (idle.total, idle.peak) == (0, 0)


def test_a_driver_that_seldom_updates_its_counters_makes_no_bursts(two_tenants, tmp_path):
    """A counter that stands for half a second and then jumps says no more than its mean."""
    steady = replace(two_tenants.workloads[1], index=0)
    machine = replace(two_tenants, workloads=(steady,))
    with fast_node(machine, tmp_path, updated=0.5) as node:
        node.pass_seconds(SECONDS)
        view, segments, _ = readings(node)
    link = view.channels[Channel(machine.gpu_uuid(1), "pcie", "receive")]
    for seen in (link, segments[UPLINK]):
        assert seen.peak == pytest.approx(STEADY, rel=1e-2)
        assert seen.busy_seconds[0.5] == 0


def test_what_an_adapter_moves_for_gpus_counts_once(tmp_path):
    """GPUDirect: the bytes are on the GPU's link too, and must not make the uplink look fuller."""
    training = Workload(0, "train", "vision", "training", (Held(0),), ((1.0, 1.0),), 1000)
    machine = replace(load_machine("h100-nvswitch"), workloads=(training,), faults=())
    with fast_node(machine, tmp_path) as node:
        node.pass_seconds(10)
        view, segments, tenants = readings(node)
    below = {
        nic.pci_bus_id
        for nic in view.nics
        if view.channels[Channel(nic.pci_bus_id, "network", "transmit")].total
    }
    assert len(below) == 1
    (adapter,) = below
    nic = SegmentName("nic", adapter, "transmit")
    network, pcie = KINDS["training"].network, KINDS["training"].pcie_transmit
    assert segments[nic].mean == pytest.approx(network, rel=1e-2)
    assert tenants[nic, "vision"].share == pytest.approx(1.0)
    switch = SegmentName("pcie_switch", node.node.view.gpus[0].device.pcie_switch, "transmit")
    assert segments[switch].mean == pytest.approx(pcie, rel=1e-2)


def test_a_gpu_without_a_workload_has_at_most_120_series(tmp_path):
    """With everything that there is to read: NVML, GPM, its fast loops and a dcgm-exporter."""
    machine = replace(load_machine("h100-nvswitch"), workloads=(), faults=())
    with fast_node(machine, tmp_path, page=True) as node:
        node.pass_seconds(3)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(CollectorSet(lambda: node.node.view, NodeSettings(), monotonic=lambda: 3))
        scrape = generate_latest(registry).decode()
    series = Counter(re.findall(r'^seedance_\w+\{.*gpu_uuid="(GPU-[^"]+)"', scrape, re.MULTILINE))
    assert len(series) == 8
    assert max(series.values()) <= 120
    assert min(series.values()) > 90, "this counts what it is to count"
