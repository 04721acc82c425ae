"""Views of what fast loops saw, made by hand: a node of eight GPUs and eight adapters."""

from dataclasses import replace

from seedance_obs.bandwidth.reading import (
    THRESHOLDS,
    ChannelReading,
    Nic,
    NodeBandwidth,
    SegmentName,
    SegmentReading,
    Sensitivity,
    TenantReading,
    TenantSensitivity,
)
from seedance_obs.exporter.view import NodeView
from tests.exporter.leak_views import node_view

GIGA = 1e9
GPUS, NICS = 8, 8
SWITCH = SegmentName("pcie_switch", "0000:16:00.0", "transmit")
ROOT = SegmentName("pcie_root", "pci0000:15", "receive")
DOMAIN = SegmentName("nvlink_domain", "gpu-17/0", "transmit")
MEMORY = SegmentName("hbm", "GPU-3")
ADAPTER = SegmentName("nic", "0000:18:00.0", "receive")
SENSITIVE = Sensitivity(0.31, 0.012, 140, 120, 300, "significant", "sm")


def channel(**changes: object) -> ChannelReading:
    """A PCIe link that is busy now and then."""
    whole = ChannelReading(
        source="counter",
        capacity=63.0 * GIGA,
        total=9_007_199_254_740,
        mean=18.2 * GIGA,
        peak=59.0 * GIGA,
        busy_seconds=dict(zip(THRESHOLDS, (40.5, 12.5, 3.0), strict=True)),
        observed_seconds=3_600.0,
        late_seconds=1.5,
    )
    return replace(whole, **changes)


def channels() -> dict[tuple[str, str, str], ChannelReading]:
    """All channels of the node."""
    found = {}
    for number in range(GPUS):
        uuid = f"GPU-{number}"
        for direction in ("transmit", "receive"):
            found[uuid, "pcie", direction] = channel()
            found[uuid, "nvlink", direction] = channel(capacity=450.0 * GIGA, source="gpm")
        found[uuid, "hbm", ""] = channel(capacity=1.0, mean=0.42, peak=0.93, source="gpm")
        found[uuid, "power", ""] = channel(capacity=700.0, mean=512.0, peak=701.5, source="sensor")
    for number in range(NICS):
        for direction in ("transmit", "receive"):
            found[f"0000:{0x18 + number:02x}:00.0", "network", direction] = channel(
                capacity=50.0 * GIGA, source="ethernet+rdma"
            )
    return found


def nics() -> tuple[Nic, ...]:
    return tuple(
        Nic(f"0000:{0x18 + number:02x}:00.0", f"mlx5_{number}", "0", "pci0000:15", "0000:16:00.0")
        for number in range(NICS)
    )


def segment(name: SegmentName = SWITCH, **changes: object) -> SegmentReading:
    """A segment under half load that nobody contends for."""
    whole = SegmentReading(
        segment=name,
        capacity=31.5 * GIGA,
        total=123_456_789_012,
        mean=18.2 * GIGA,
        peak=29.9 * GIGA,
        busy_seconds=dict(zip(THRESHOLDS, (400.0, 132.0, 30.0), strict=True)),
        contention_seconds=0.0,
        observed_seconds=3_600.0,
    )
    return replace(whole, **changes)


def tenant(name: str, on: SegmentName = SWITCH, **changes: object) -> TenantReading:
    """A tenant that takes half of a segment."""
    whole = TenantReading(
        segment=on,
        tenant=name,
        mean=9.12 * GIGA,
        jitter=1.203 * GIGA,
        share=0.5,
        peak=15.002 * GIGA,
        contention_seconds=132.0,
    )
    return replace(whole, **changes)


def sensitivity(name: str, on: SegmentName = SWITCH, **changes: object) -> TenantSensitivity:
    return TenantSensitivity(on, name, replace(SENSITIVE, **changes))


def bandwidth(**changes: object) -> NodeBandwidth:
    """Two tenants who contend for a switch's uplink, one of whom suffers."""
    whole = NodeBandwidth(
        channels=channels(),
        nics=nics(),
        segments=(
            segment(ROOT),
            segment(DOMAIN, mean=2e6, peak=3e6),
            segment(SWITCH, contention_seconds=132.0),
            segment(MEMORY),
            segment(ADAPTER),
        ),
        tenants=(
            tenant("team-vision"),
            tenant("genomics", mean=9.08 * GIGA, jitter=44e6, peak=9.4 * GIGA),
            tenant("genomics", ROOT, contention_seconds=0.0),
        ),
        sensitivities=(sensitivity("team-vision"),),
        window_seconds=15.0,
    )
    return replace(whole, **changes)


def view(node: NodeBandwidth | None) -> NodeView:
    return replace(node_view(None), bandwidth=node)
