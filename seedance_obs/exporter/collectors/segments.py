"""Parts of the wiring that several GPUs share: how loaded, by which tenants, and who suffers."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import InfoMetricFamily, Metric

from seedance_obs.bandwidth.contention import CONTENDED_RATIO
from seedance_obs.bandwidth.reading import (
    SegmentName,
    SegmentReading,
    TenantReading,
    TenantSensitivity,
)
from seedance_obs.exporter.channel_families import LATELY, OF_PAGES, counter, gauge
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView

SEGMENT_LABELS = ("segment", "segment_kind", "direction")
TENANT_LABELS = ("tenant", *SEGMENT_LABELS)
BUSY_FROM = CONTENDED_RATIO  # of capacity; other thresholds are told of devices
# Their loads are those of one device, which the collectors of devices show.
OF_ONE_DEVICE = frozenset({"hbm", "nic"})


@register("segments", "load of shared links and memories, contention and sensitivity of tenants")
class SegmentsCollector:
    """Shared segments, the tenants on them, and what their neighbours do to them."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape; nothing where no fast loop runs."""
        if view.bandwidth is None:
            return
        yield from _loads(
            [one for one in view.bandwidth.segments if one.segment.kind not in OF_ONE_DEVICE]
        )
        yield _contention(view.bandwidth.segments)
        yield from _tenants(view.bandwidth.tenants)
        yield from _sensitivities(view.bandwidth.sensitivities)


def _named(segment: SegmentName) -> tuple[str, str, str]:
    return (segment.name, segment.kind, segment.direction)


def _loads(segments: Sequence[SegmentReading]) -> Iterator[Metric]:
    rows = [(_named(one.segment), one) for one in segments]
    yield counter(
        "seedance_segment_bytes",
        "Bytes over a shared segment by what passes its members' links, since this exporter "
        "started; transmit leads away from the GPUs. What stays below a PCIe switch is counted "
        "where it cannot be told apart.",
        SEGMENT_LABELS,
        ((labels, one.total) for labels, one in rows),
    )
    yield gauge(
        "seedance_segment_peak_bytes_per_second",
        f"Bytes a second over a shared segment: the highest of any tick {LATELY}; {OF_PAGES}.",
        SEGMENT_LABELS,
        ((labels, one.peak) for labels, one in rows),
    )
    yield gauge(
        "seedance_segment_capacity_bytes_per_second",
        "What a shared segment can carry one way.",
        SEGMENT_LABELS,
        ((labels, one.capacity) for labels, one in rows),
    )
    yield counter(
        "seedance_segment_busy_seconds",
        "Observed time in which a shared segment was at or above a threshold of its capacity, "
        f"tick by tick, since this exporter started; {OF_PAGES}.",
        (*SEGMENT_LABELS, "threshold"),
        (((*labels, str(BUSY_FROM)), one.busy_seconds.get(BUSY_FROM)) for labels, one in rows),
    )
    yield counter(
        "seedance_segment_observed_seconds",
        "Time in which a shared segment was judged, since this exporter started.",
        SEGMENT_LABELS,
        ((labels, one.observed_seconds) for labels, one in rows),
    )


def _contention(segments: Sequence[SegmentReading]) -> Metric:
    return counter(
        "seedance_segment_contention_seconds",
        f"Time in which a shared segment was at or above {BUSY_FROM} of its capacity while two or "
        "more tenants each used more than a tenth of it, tick by tick, since this exporter "
        f"started; {OF_PAGES}. RDMA between GPUs and the adapters next to them below the same "
        "switch or root is load, but does not cross the segment and is left out here.",
        SEGMENT_LABELS,
        ((_named(one.segment), one.contention_seconds) for one in segments),
    )


def _tenants(tenants: Sequence[TenantReading]) -> Iterator[Metric]:
    rows = [((one.tenant, *_named(one.segment)), one) for one in tenants]
    for name, about in (
        ("mean", "mean"),
        ("peak", "the highest of any tick"),
        ("jitter", "standard deviation of the ticks"),
    ):
        end = "" if name == "mean" else f"; {OF_PAGES}"
        yield gauge(
            f"seedance_tenant_segment_{name}_bytes_per_second",
            f"Bytes a second that a tenant sends over a shared segment: {about} {LATELY}{end}.",
            TENANT_LABELS,
            ((labels, getattr(one, name)) for labels, one in rows),
        )
    yield gauge(
        "seedance_tenant_segment_share_ratio",
        f"A tenant's share of what passed over a shared segment {LATELY}, 0 to 1.",
        TENANT_LABELS,
        ((labels, one.share) for labels, one in rows),
    )
    yield counter(
        "seedance_tenant_segment_contention_seconds",
        "Time in which a shared segment was contended (seedance_segment_contention_seconds says "
        "what that is) and this tenant was one of those above a tenth of its capacity, since this "
        f"exporter started; {OF_PAGES}.",
        TENANT_LABELS,
        ((labels, one.contention_seconds) for labels, one in rows),
    )


def _sensitivities(found: Sequence[TenantSensitivity]) -> Iterator[Metric]:
    rows = [((one.tenant, *_named(one.segment)), one.sensitivity) for one in found]
    yield gauge(
        "seedance_tenant_sensitivity_ratio",
        "By what share a tenant slows down for each unit of its neighbours' load on a shared "
        "segment, 0 to 1, whatever its verdict; none before ten windows with little load and ten "
        "with much.",
        TENANT_LABELS,
        ((labels, one.score) for labels, one in rows),
    )
    yield gauge(
        "seedance_tenant_sensitivity_p_value",
        "Share of circular shifts of the neighbours' load that explain the tenant's progress as "
        "well as it does, 0 to 1.",
        TENANT_LABELS,
        ((labels, one.p_value) for labels, one in rows),
    )
    yield gauge(
        "seedance_tenant_sensitivity_windows",
        "Windows that a tenant's sensitivity rests on: with low and with high load of its "
        "neighbours, and all that counted.",
        (*TENANT_LABELS, "load"),
        (
            ((*labels, load), count)
            for labels, one in rows
            for load, count in (("low", one.low), ("high", one.high), ("all", one.windows))
        ),
    )
    info = InfoMetricFamily(
        "seedance_tenant_sensitivity",
        "What a tenant's sensitivity amounts to. Verdict: undecided (too few windows), none, "
        "significant, or association (the neighbours may follow the tenant). Proxy: what the "
        "tenant's progress was taken from.",
        labels=TENANT_LABELS,
    )
    for labels, one in rows:
        info.add_metric(labels, {"verdict": one.verdict, "proxy": one.proxy})
    yield info
