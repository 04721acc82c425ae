"""What the fast loops saw of each GPU: links, memory and power; and how far to trust them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from prometheus_client.core import Metric

from seedance_obs.bandwidth.reading import ChannelReading, NodeBandwidth
from seedance_obs.exporter.channel_families import ChannelKind, counter, gauge
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, NodeView

LINK_MEDIA = ("pcie", "nvlink")
LINK = ChannelKind(
    prefix="seedance_gpu_link",
    unit="bytes_per_second",
    labels=(*GPU_LABELS, "medium", "direction"),
    what="Bytes a second over a GPU's PCIe link or all its NVLinks, one way",
    full="what it can carry",
)
MEMORY = ChannelKind(
    prefix="seedance_gpu_memory_bandwidth",
    unit="ratio",
    labels=GPU_LABELS,
    what="Share of cycles in which a GPU's memory interface moved data, 0 to 1",
    full="all cycles",
)
POWER = ChannelKind(
    prefix="seedance_gpu_power",
    unit="watts",
    labels=GPU_LABELS,
    what="Power that a GPU draws",
    full="its power limit",
)


class _Row(NamedTuple):
    labels: tuple[str, ...]
    medium: str
    direction: str
    reading: ChannelReading


@register("bandwidth", "what fast loops saw of GPUs' links, memory and power, tick by tick")
class BandwidthCollector:
    """Every channel of the GPUs of this node, whom each believes and how late the loops were."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape; nothing where no fast loop runs."""
        node = view.bandwidth
        if node is None:
            return
        gpus = {gpu.merged.uuid: gpu.labels for gpu in view.gpus}
        rows = [
            _Row(gpus[device], medium, direction, reading)
            for (device, medium, direction), reading in sorted(node.channels.items())
            if device in gpus
        ]
        yield from _links([row for row in rows if row.medium in LINK_MEDIA])
        for kind, medium in ((MEMORY, "hbm"), (POWER, "power")):
            yield from kind.levels(
                [(row.labels, row.reading) for row in rows if row.medium == medium]
            )
        yield _observed(rows)
        yield _stuck(node, gpus)
        yield from _loops(node)


def _links(rows: Sequence[_Row]) -> Iterator[Metric]:
    channels = [((*row.labels, row.medium, row.direction), row.reading) for row in rows]
    yield counter(
        "seedance_gpu_link_bytes",
        "Bytes over a GPU's PCIe link or all its NVLinks while the fast loop watched, since this "
        "exporter started; transmit leaves the GPU.",
        LINK.labels,
        ((labels, reading.total) for labels, reading in channels),
    )
    yield from LINK.levels(channels)
    capacities = {
        (*row.labels, row.medium): row.reading.capacity
        for row in rows
        if row.reading.capacity is not None
    }
    yield gauge(
        "seedance_gpu_link_capacity_bytes_per_second",
        "What a GPU's PCIe link, or all its NVLinks that are up, can carry each way.",
        (*GPU_LABELS, "medium"),
        capacities.items(),
    )


def _observed(rows: Sequence[_Row]) -> Metric:
    seconds = (
        ((*labels, medium), max(row.reading.observed_seconds for row in same))
        for (labels, medium), same in groupby(rows, key=lambda row: (row.labels, row.medium))
    )
    return counter(
        "seedance_gpu_fast_loop_observed_seconds",
        "Time in which means, peaks and busy time of a GPU's pcie, nvlink, hbm or power were "
        "judged, since this exporter started: busy time is a share of this, not of all time.",
        (*GPU_LABELS, "medium"),
        seconds,
    )


def _stuck(node: NodeBandwidth, gpus: Mapping[str, tuple[str, ...]]) -> Metric:
    samples = (
        ((*gpus[device], medium, direction, source), 1.0)
        for (device, medium, direction), source in sorted(node.stuck.items())
        if device in gpus
    )
    return gauge(
        "seedance_gpu_source_stuck",
        "1 while a source says exactly 0 of what another source of the same thing sees move; it "
        "is not believed until it moves.",
        (*GPU_LABELS, "medium", "direction", "source"),
        samples,
    )


def _loops(node: NodeBandwidth) -> Iterator[Metric]:
    believed = Counter((key[1], reading.source) for key, reading in node.channels.items())
    yield gauge(
        "seedance_fast_loop_channels",
        "Channels of this node (one medium of one device, one way) whose readings are from this "
        "source: counter, gpm, dcgm, throughput, sensor, or kinds of traffic that are added.",
        ("medium", "source"),
        sorted(believed.items()),
    )
    yield counter(
        "seedance_fast_loop_late_seconds",
        "By how much ticks came after their time, where that was more than half an interval, since "
        "this exporter started: of the loop over GPUs and of that over network adapters, each time "
        "of its latest channel. Pages of dcgm-exporter have a pace of their own and do not count.",
        ("loop",),
        (((loop,), seconds) for loop, seconds in sorted(node.late_seconds.items())),
    )
    yield gauge(
        "seedance_fast_loop_window_seconds",
        "The observed time that means and peaks of the fast loops are over.",
        (),
        [((), node.window_seconds)],
    )
