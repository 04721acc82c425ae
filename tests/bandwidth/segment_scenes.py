"""A switch with two GPUs and an adapter, and what passes there by hand."""

from collections.abc import Iterable, Sequence

from seedance_obs.bandwidth.loads import Holders, SharedSegment
from seedance_obs.bandwidth.reading import SegmentReading, TenantReading
from seedance_obs.bandwidth.segment_meters import SegmentMeters
from seedance_obs.flow import Channel, Flow, Window

GB = 1e9
ONE, TWO = "GPU-1", "GPU-2"
NIC = "0000:1b:00.0"
FULL = 50 * GB
SWITCH = SharedSegment("pcie_switch", "0000:18:00.0", (ONE, TWO), (), FULL)
WITH_NIC = SharedSegment("pcie_switch", "0000:18:00.0", (ONE, TWO), (NIC,), FULL)
ADAPTER = SharedSegment("nic", NIC, (), (NIC,), FULL)
DOMAIN = SharedSegment("nvlink_domain", "node.0000-1a-00.0", (ONE, TWO), (), 10 * FULL)
MEMORY = SharedSegment("hbm", ONE, (ONE,), (), 3000 * GB)
ANNA_AND_BERT = Holders({ONE: {"anna": 1.0}, TWO: {"bert": 1.0}}, {NIC: (ONE,)})


def meters(*segments: SharedSegment, **options: float) -> SegmentMeters:
    made = SegmentMeters(**{"interval_seconds": 0.1, "window_seconds": 15.0, **options})
    made.follow(segments)
    return made


def flow(
    device: str,
    rates: Sequence[float],
    *,
    medium: str = "pcie",
    direction: str = "transmit",
    source: str = "gpm",
    since: float = 0.0,
    every: float = 0.1,
) -> Flow:
    """Windows one after the other, each with its mean rate."""
    edges = [since + number * every for number in range(len(rates) + 1)]
    windows = (
        Window(start, end, rate * (end - start))
        for start, end, rate in zip(edges, edges[1:], rates, strict=False)
    )
    return Flow(Channel(device, medium, direction), source, tuple(windows))


def seen(flows: Iterable[Flow], seconds: float = 20.0, **more: float) -> list[Flow]:
    """The flows, and of each GPU's PCIe direction that none is of, that nothing passed there."""
    flows = list(flows)
    told = {each.channel for each in flows}
    idle = (
        flow(gpu, [0.0] * round(seconds * 10), direction=direction, **more)
        for gpu in (ONE, TWO)
        for direction in ("transmit", "receive")
    )
    return [*flows, *(each for each in idle if each.channel not in told)]


def reading(meters: SegmentMeters, direction: str = "transmit", kind: str = "") -> SegmentReading:
    (found,) = (
        each
        for each in meters.readings()
        if each.segment.direction == direction and each.segment.kind in (kind or each.segment.kind)
    )
    return found


def tenants(meters: SegmentMeters, direction: str = "transmit") -> dict[str, TenantReading]:
    return {each.tenant: each for each in meters.tenants() if each.segment.direction == direction}
