"""Metric families of channels, whatever device they belong to; what is not known is left out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from seedance_obs.bandwidth.reading import THRESHOLDS, ChannelReading

Labels: TypeAlias = tuple[str, ...]
Samples: TypeAlias = Iterable[tuple[Labels, float | None]]

LATELY = "over the last seedance_fast_loop_window_seconds of observed time"
OF_PAGES = "where dcgm is the source, of means as long as the interval of its pages"


def gauge(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """A gauge of the samples that have a value."""
    return _filled(GaugeMetricFamily(name, about, labels=labels), samples)


def counter(name: str, about: str, labels: Sequence[str], samples: Samples) -> Metric:
    """A counter of the samples that have a value; its name ends in `_total` by itself."""
    return _filled(CounterMetricFamily(name, about, labels=labels), samples)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, samples: Samples) -> Metric:
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)
    return family


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """How channels of one kind are shown.

    Attributes:
        prefix: What the names of their series begin with.
        unit: What their levels are in, as a name's end.
        labels: Those of each channel.
        what: Their level, in words.
        full: What fills one, in words.
    """

    prefix: str
    unit: str
    labels: Labels
    what: str
    full: str

    def levels(self, rows: Sequence[tuple[Labels, ChannelReading]]) -> Iterator[Metric]:
        """Mean and peak of each channel, and for how long it was how busy."""
        yield gauge(
            f"{self.prefix}_mean_{self.unit}",
            f"{self.what}: mean {LATELY}.",
            self.labels,
            ((labels, reading.mean) for labels, reading in rows),
        )
        yield gauge(
            f"{self.prefix}_peak_{self.unit}",
            f"{self.what}: the highest of any tick of the fast loop {LATELY}; {OF_PAGES}.",
            self.labels,
            ((labels, reading.peak) for labels, reading in rows),
        )
        yield counter(
            f"{self.prefix}_busy_seconds",
            f"{self.what}: observed time in which it was at or above a threshold of {self.full}, "
            f"tick by tick, since this exporter started; none while that is not known; {OF_PAGES}.",
            (*self.labels, "threshold"),
            (
                ((*labels, str(threshold)), reading.busy_seconds.get(threshold))
                for labels, reading in rows
                for threshold in THRESHOLDS
            ),
        )
