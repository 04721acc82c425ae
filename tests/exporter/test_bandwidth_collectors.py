"""The series of fast loops, segments and tenants, from views made by hand."""

import shutil
import subprocess
from collections import Counter

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.bandwidth.reading import NodeBandwidth
from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from tests.exporter.bandwidth_views import (
    ADAPTER,
    GIGA,
    MEMORY,
    ROOT,
    SWITCH,
    bandwidth,
    channel,
    segment,
    sensitivity,
    tenant,
    view,
)

OURS = (
    *("seedance_gpu_link", "seedance_gpu_memory_bandwidth", "seedance_gpu_power"),
    *("seedance_gpu_fast", "seedance_gpu_source_stuck", "seedance_fast_loop"),
    *("seedance_nic", "seedance_segment", "seedance_tenant_segment", "seedance_tenant_sens"),
)
SETTINGS = NodeSettings(
    collectors_disabled=("attribution", "device", "exporter", "gpu", "links", "topology")
)


def page(node: NodeBandwidth | None) -> str:
    registry = CollectorRegistry(auto_describe=False)
    seen = view(node)
    registry.register(CollectorSet(lambda: seen, SETTINGS, monotonic=lambda: 0.0))
    return generate_latest(registry).decode()


def scraped(node: NodeBandwidth | None) -> list[tuple[str, dict[str, str], float]]:
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(page(node))
        for sample in family.samples
        if sample.name.startswith(OURS)
    ]


def values(node: NodeBandwidth, name: str, **labels: str) -> list[float]:
    return [
        value
        for found, has, value in scraped(node)
        if found == name and has.items() >= labels.items()
    ]


def value(node: NodeBandwidth, name: str, **labels: str) -> float:
    (only,) = values(node, name, **labels)
    return only


def test_where_no_fast_loop_runs_nothing_is_shown():
    assert scraped(None) == []


def test_a_loop_that_has_seen_nothing_shows_only_its_window():
    (only,) = scraped(NodeBandwidth(window_seconds=15.0))
    assert only == ("seedance_fast_loop_window_seconds", {}, 15.0)


def test_each_link_has_its_bytes_levels_and_busy_time_one_way():
    link = {"gpu_uuid": "GPU-2", "gpu": "2", "medium": "nvlink", "direction": "receive"}
    node, prefix = bandwidth(), "seedance_gpu_link"
    assert value(node, f"{prefix}_bytes_total", **link) == 9_007_199_254_740
    assert value(node, f"{prefix}_mean_bytes_per_second", **link) == 18.2 * GIGA
    assert value(node, f"{prefix}_peak_bytes_per_second", **link) == 59 * GIGA
    assert value(node, f"{prefix}_busy_seconds_total", **link, threshold="0.8") == 12.5
    capacity = value(node, f"{prefix}_capacity_bytes_per_second", gpu_uuid="GPU-2", medium="nvlink")
    assert capacity == 450 * GIGA


def test_memory_is_shown_as_a_share_and_power_in_watts():
    node = bandwidth()
    assert value(node, "seedance_gpu_memory_bandwidth_peak_ratio", gpu_uuid="GPU-1") == 0.93
    assert value(node, "seedance_gpu_power_mean_watts", gpu_uuid="GPU-1") == 512
    busy = value(node, "seedance_gpu_power_busy_seconds_total", gpu_uuid="GPU-1", threshold="0.95")
    assert busy == 3


def test_an_adapter_carries_where_it_sits():
    place = {"nic": "mlx5_3", "pci_bus_id": "0000:1b:00.0", "numa_node": "0"}
    place |= {"pcie_root": "pci0000:15", "pcie_switch": "0000:16:00.0"}
    node = bandwidth()
    assert value(node, "seedance_nic_capacity_bytes_per_second", **place) == 50 * GIGA
    assert len(values(node, "seedance_nic_bytes_total", **place)) == 2
    assert len(values(node, "seedance_nic_busy_seconds_total", **place)) == 6


def test_what_is_not_known_has_no_series():
    unknown = channel(capacity=None, mean=None, peak=None, busy_seconds={})
    found = {
        name
        for name, labels, _ in scraped(bandwidth(channels={("GPU-0", "pcie", "transmit"): unknown}))
        if "gpu_uuid" in labels
    }
    assert found == {
        "seedance_gpu_link_bytes_total",
        "seedance_gpu_fast_loop_observed_seconds_total",
    }


def test_a_device_that_the_node_does_not_show_has_no_series():
    gone = {
        ("GPU-99", "pcie", "transmit"): channel(),
        ("0000:ff:00.0", "network", "receive"): channel(),
    }
    assert not [name for name, has, _ in scraped(bandwidth(channels=gone)) if "pci_bus_id" in has]


def test_whom_channels_believe_is_counted_and_a_stuck_source_is_named():
    node = bandwidth(stuck={("GPU-3", "pcie", "transmit"): "dcgm"})
    assert value(node, "seedance_fast_loop_channels", medium="pcie", source="counter") == 16
    assert value(node, "seedance_fast_loop_channels", medium="power", source="sensor") == 8
    assert value(node, "seedance_gpu_source_stuck", gpu="3", medium="pcie", source="dcgm") == 1


def test_a_loops_lateness_does_not_fall_when_its_latest_channel_goes():
    node = bandwidth(channels={}, late_seconds={"gpu": 77.0, "network": 1.5})
    assert value(node, "seedance_fast_loop_late_seconds_total", loop="gpu") == 77
    assert value(node, "seedance_fast_loop_late_seconds_total", loop="network") == 1.5


def test_a_gpu_has_at_most_45_series_of_ours():
    stuck = {("GPU-0", "pcie", way): "dcgm" for way in ("transmit", "receive")}
    of_gpus = Counter(
        labels["gpu_uuid"]
        for _, labels, _ in scraped(bandwidth(stuck=stuck))
        if "gpu_uuid" in labels
    )
    assert (of_gpus["GPU-0"], of_gpus["GPU-1"]) == (42, 40)


def test_an_adapter_has_14_series_and_a_shared_link_6_each_way():
    found = scraped(bandwidth())
    assert Counter(has["nic"] for _, has, _ in found if "nic" in has)["mlx5_0"] == 14
    of_switch = [name for name, has, _ in found if has.get("segment") == SWITCH.name]
    assert sum(not name.startswith("seedance_tenant") for name in of_switch) == 6


def test_a_segment_of_one_device_shows_only_who_contends_for_it():
    named = {"segment": ADAPTER.name, "segment_kind": "nic", "direction": "receive"}
    node = bandwidth(tenants=(tenant("a", ADAPTER),))
    assert value(node, "seedance_segment_contention_seconds_total", **named) == 0
    assert not values(node, "seedance_segment_bytes_total", **named)


def test_contention_of_every_segment_is_shown_from_zero_whoever_is_there():
    name = "seedance_segment_contention_seconds_total"
    assert value(bandwidth(tenants=()), name, segment=ROOT.name) == 0
    after = bandwidth(tenants=(), segments=(segment(MEMORY, contention_seconds=4.5), segment(ROOT)))
    assert values(after, name) == [4.5, 0]


def test_help_says_that_pages_tell_means_as_long_as_their_interval():
    said = [line for line in page(bandwidth()).splitlines() if line.startswith("# HELP seedance_")]
    of_ticks = ("_peak_", "_jitter_", "busy_seconds", "contention_seconds")
    ours = [
        line
        for line in said
        if any(part in line.split()[2] for part in of_ticks) and line.split()[2].startswith(OURS)
    ]
    assert len(ours) == 14
    assert [line for line in ours if "where dcgm is the source" not in line] == []


def test_a_tenant_has_its_levels_on_each_segment_that_it_uses():
    node = bandwidth()
    on = {"tenant": "genomics", "segment": SWITCH.name, "segment_kind": "pcie_switch"}
    on["direction"] = "transmit"
    prefix = "seedance_tenant_segment"
    assert value(node, f"{prefix}_mean_bytes_per_second", **on) == 9.08 * GIGA
    assert value(node, f"{prefix}_jitter_bytes_per_second", **on) == 44e6
    assert value(node, f"{prefix}_peak_bytes_per_second", **on) == 9.4 * GIGA
    assert value(node, f"{prefix}_share_ratio", **on) == 0.5
    assert value(node, f"{prefix}_contention_seconds_total", **on) == 132


def test_sensitivity_comes_with_its_evidence_and_is_absent_without_any():
    node = bandwidth(sensitivities=(sensitivity("team-vision"),))
    prefix = "seedance_tenant_sensitivity"
    assert value(node, f"{prefix}_ratio", tenant="team-vision") == 0.31
    assert value(node, f"{prefix}_p_value", tenant="team-vision") == 0.012
    windows = [value(node, f"{prefix}_windows", load=load) for load in ("low", "high", "all")]
    assert windows == [140, 120, 300]
    assert value(node, f"{prefix}_info", verdict="significant", proxy="sm") == 1
    assert not [
        has for name, has, _ in scraped(node) if "sens" in name and has["tenant"] == "genomics"
    ]


def test_promtool_finds_nothing_to_say():
    promtool = shutil.which("promtool")
    assert promtool, "promtool is not installed: apt-get install prometheus"
    run = subprocess.run(
        [promtool, "check", "metrics"], input=page(bandwidth()).encode(), capture_output=True
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")
