"""How far this exporter can be trusted: its sources, what they dropped, who was believed."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from seedance_obs import __version__
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, NodeView

WORTH_TELLING = 0.05  # most quantities agree, and would be a series each


@register("exporter", "sources up and their age, readings dropped, which source won and by how far")
class ExporterCollector:
    """The exporter's account of itself; these series are there even when no source is."""

    def collect(self, view: NodeView, now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        info = InfoMetricFamily("seedance_exporter", "This exporter's version and node name.")
        info.add_metric([], {"version": __version__, "node": view.node_name})
        started = GaugeMetricFamily(
            "seedance_exporter_start_time_seconds",
            "Unix time of this exporter's first view of its GPUs; its own counters began then.",
        )
        if view.started_at is not None:
            started.add_metric([], view.started_at)
        yield from (info, started)
        yield from self._sources(view, now)
        yield _dropped(view)
        yield from _merge(view)

    def _sources(self, view: NodeView, now: float) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "seedance_source_up",
            "1 if a source's last reading succeeded.",
            labels=["source"],
        )
        age = GaugeMetricFamily(
            "seedance_source_age_seconds",
            "Age of a source's last good reading at the moment of this scrape.",
            labels=["source"],
        )
        took = GaugeMetricFamily(
            "seedance_source_read_seconds",
            "How long a source's last reading took, failed or not.",
            labels=["source"],
        )
        restarts = CounterMetricFamily(
            "seedance_source_restarts_total",
            "Times a source's worker process ended or was killed and has to be started anew.",
            labels=["source"],
        )
        abandoned = GaugeMetricFamily(
            "seedance_source_abandoned_workers",
            "Worker processes stuck in an uninterruptible driver call that cannot be killed.",
            labels=["source"],
        )
        for name, state in sorted(view.sources.items()):
            up.add_metric([name], float(state.up))
            if state.taken_at is not None:
                age.add_metric([name], max(0.0, now - state.taken_at))
            if state.read_seconds is not None:
                took.add_metric([name], state.read_seconds)
            if state.restarts is not None:
                restarts.add_metric([name], state.restarts)
            if state.abandoned is not None:
                abandoned.add_metric([name], state.abandoned)
        yield from (up, age, took, restarts, abandoned)


def _dropped(view: NodeView) -> Metric:
    family = CounterMetricFamily(
        "seedance_readings_dropped",
        "Readings a source delivered and this exporter refused, by reason.",
        labels=["source", "reason"],
    )
    for (source, reason), count in sorted(view.dropped.items()):
        family.add_metric([source, reason], count)
    return family


def _merge(view: NodeView) -> Iterator[Metric]:
    winner = GaugeMetricFamily(
        "seedance_gpu_source_gpus",
        "GPUs of this node whose value of a quantity is from this source.",
        labels=["quantity", "source"],
    )
    disagreement = GaugeMetricFamily(
        "seedance_gpu_source_disagreement_ratio",
        "How far apart two sources of one quantity are, as a share of the larger value; none where "
        "that is less than 0.05. Sources sample at different moments: look at what lasts.",
        labels=[*GPU_LABELS, "quantity"],
    )
    won = Counter(
        (quantity, chosen.source)
        for gpu in view.gpus
        for quantity, chosen in gpu.merged.readings.items()
    )
    for (quantity, source), gpus in sorted(won.items()):
        winner.add_metric([quantity, source], gpus)
    for gpu in view.gpus:
        for quantity, distance in gpu.merged.disagreement.items():
            if distance >= WORTH_TELLING:
                disagreement.add_metric([*gpu.labels, quantity], distance)
    yield from (winner, disagreement)
