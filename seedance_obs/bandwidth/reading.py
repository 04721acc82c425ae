"""What is told of channels, shared segments and tenants: the plain values that are exported."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.flow import Channel

THRESHOLDS = (0.5, 0.8, 0.95)  # of capacity: from where a channel or segment counts as busy


@dataclass(frozen=True, slots=True)
class ChannelReading:
    """One channel so far, and lately.

    Amounts are bytes (`hbm`: seconds of full activity; `power`: joules), levels the same per
    second. `mean` and `peak` are over the last window of observed time, None where there was none.
    Totals only grow.

    Attributes:
        source: Who is believed now; see `Flow`.
        capacity: The level that is full; None where it is not known.
        total: What passed in all windows.
        busy_seconds: Observed time at or above each of `THRESHOLDS` of capacity; empty where the
            capacity is not known.
        observed_seconds: Time that mean, peak and busy time were judged in.
        late_seconds: By how much windows were longer than the loop's interval, added up.
    """

    source: str
    capacity: float | None
    total: float
    mean: float | None
    peak: float | None
    busy_seconds: Mapping[float, float]
    observed_seconds: float
    late_seconds: float


SEGMENT_KINDS = ("pcie_switch", "pcie_root", "nvlink_domain", "hbm", "nic")


@dataclass(frozen=True, slots=True)
class SegmentName:
    """A shared segment in one direction.

    Attributes:
        kind: One of `SEGMENT_KINDS`.
        name: A switch's upstream port, a root complex, an NVLink domain, a GPU's UUID, or a network
            adapter's address.
        direction: `transmit` away from the GPUs, `receive` towards them; empty for `hbm`.
    """

    kind: str
    name: str
    direction: str = ""


@dataclass(frozen=True, slots=True)
class SegmentReading:
    """One segment so far, and lately; units and windows as in `ChannelReading`, in bytes."""

    segment: SegmentName
    capacity: float
    total: float
    mean: float | None
    peak: float | None
    busy_seconds: Mapping[float, float]
    contention_seconds: float  # busy, with two or more tenants each above a tenth of capacity
    observed_seconds: float


@dataclass(frozen=True, slots=True)
class TenantReading:
    """What one tenant sends over one segment: bytes per second over the last window.

    `jitter` is the standard deviation over the fast samples, `share` of what passed in the window
    (0 to 1), `contention_seconds` the contended time in which it was one of those above a tenth.
    """

    segment: SegmentName
    tenant: str
    mean: float
    jitter: float
    share: float
    peak: float
    contention_seconds: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much slower a tenant gets for each unit of its neighbours' pressure on a segment.

    Attributes:
        score: 0 to 1; see `bandwidth.sensitivity`.
        p_value: By circular shifts; one-sided.
        low, high: Windows with little and with much pressure that it was computed from.
        windows: All windows that counted.
        verdict: `undecided` (fewer than 240 windows), `none`, `significant` or `association`.
        proxy: What progress was taken from: `sm` (SM activity times clock), `process`.
    """

    score: float
    p_value: float
    low: int
    high: int
    windows: int
    verdict: str
    proxy: str


@dataclass(frozen=True, slots=True)
class TenantSensitivity:
    """The sensitivity of one tenant to one segment."""

    segment: SegmentName
    tenant: str
    sensitivity: Sensitivity


@dataclass(frozen=True, slots=True)
class Nic:
    """A network adapter near a GPU; texts are empty where unknown."""

    pci_bus_id: str
    name: str
    numa_node: str
    pcie_root: str
    pcie_switch: str


@dataclass(frozen=True, slots=True)
class NodeBandwidth:
    """The fast loops' picture of a node.

    `stuck` names of some channels the source that is not believed, since it stands at 0 while
    another moves. `late_seconds` is by how much the ticks of each loop, `gpu` and `network`, came
    late since the exporter started.
    """

    channels: Mapping[Channel, ChannelReading] = field(default_factory=dict)
    nics: tuple[Nic, ...] = ()
    segments: tuple[SegmentReading, ...] = ()
    tenants: tuple[TenantReading, ...] = ()
    sensitivities: tuple[TenantSensitivity, ...] = ()
    window_seconds: float = 0.0
    stuck: Mapping[Channel, str] = field(default_factory=dict)
    late_seconds: Mapping[str, float] = field(default_factory=dict)
