"""What the leak probes see: idle windows, the probe itself, and how many suspects at what cost."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, LeakView, NodeView
from seedance_obs.leaks.cost import cost_per_hour
from seedance_obs.leaks.suspect import KINDS

WORKLOAD = ("workload", "tenant")


@register("leaks", "idle windows, leak probes, how many suspects there are and what they cost")
class LeaksCollector:
    """Counts and sums, of which there are as many on any node."""

    def collect(self, view: NodeView, now: float) -> Iterator[Metric]:
        """The families of one scrape; nothing where nothing is probed."""
        leaks = view.leaks
        if leaks is None:
            return
        yield from _node_window(leaks)
        yield from _workload_windows(leaks)
        yield _skipped(leaks)
        yield from _ages(leaks, now)
        yield from _last_probe(leaks)
        yield from _totals(leaks)
        yield _costs(leaks)
        yield _held(view, leaks)
        yield _counts(leaks)


def _node_window(leaks: LeakView) -> Iterator[Metric]:
    is_open = GaugeMetricFamily(
        "seedance_node_idle_window_open",
        "1 while the node's idle window is open: CPU, memory and all GPUs have been quiet for "
        "leaks.idle_seconds on end.",
    )
    seconds = CounterMetricFamily(
        "seedance_node_idle_window_seconds",
        "Time that the node's idle window has been open since this exporter started.",
    )
    for window in leaks.windows:
        if not window.workload:
            is_open.add_metric([], float(window.open))
            seconds.add_metric([], window.seconds)
    yield from (is_open, seconds)


def _workload_windows(leaks: LeakView) -> Iterator[Metric]:
    is_open = GaugeMetricFamily(
        "seedance_workload_idle_window_open",
        "1 while a workload's idle window is open, 0 while it is closed again. Absent until it has "
        "been open.",
        labels=WORKLOAD,
    )
    seconds = CounterMetricFamily(
        "seedance_workload_idle_window_seconds",
        "Time that a workload's idle window has been open since this exporter first saw it: its "
        "own CPU use and its GPUs had been quiet for leaks.idle_seconds on end. Absent until then.",
        labels=WORKLOAD,
    )
    for window in leaks.windows:
        if window.workload and (window.open or window.seconds):
            is_open.add_metric([window.workload, window.tenant], float(window.open))
            seconds.add_metric([window.workload, window.tenant], window.seconds)
    yield from (is_open, seconds)


def _skipped(leaks: LeakView) -> Metric:
    family = CounterMetricFamily(
        "seedance_leak_probe_skipped",
        "Probes that found the node's idle window closed and so judged no memory by it, by "
        "reason: cpu, memory or gpu busy or unknown, a gap, or not quiet for long enough.",
        labels=["reason"],
    )
    for reason, count in sorted(leaks.skipped.items()):
        family.add_metric([reason], count)
    return family


def _ages(leaks: LeakView, now: float) -> Iterator[Metric]:
    for name, about, at in (
        (
            "seedance_leak_probe_age_seconds",
            "Time since the last leak probe of which no part broke, at the moment of this scrape.",
            leaks.probed_at,
        ),
        (
            "seedance_leak_idle_probe_age_seconds",
            "Time since the last leak probe that the node's idle window was open for; until there "
            "is one, since the first probe.",
            leaks.watching_since
            if leaks.probed_in_window_at is None
            else leaks.probed_in_window_at,
        ),
    ):
        age = GaugeMetricFamily(name, about)
        if at is not None:
            age.add_metric([], max(0.0, now - at))
        yield age


def _last_probe(leaks: LeakView) -> Iterator[Metric]:
    took = GaugeMetricFamily(
        "seedance_leak_probe_cpu_seconds", "CPU time that the last leak probe took."
    )
    if leaks.probe_seconds is not None:
        took.add_metric([], leaks.probe_seconds)
    processes = GaugeMetricFamily(
        "seedance_leak_probe_processes",
        "Processes of the last leak probe by outcome: read, or why something of them could not be.",
        labels=["outcome"],
    )
    for outcome, count in sorted(leaks.processes.items()):
        processes.add_metric([outcome], count)
    yield from (took, processes)


def _totals(leaks: LeakView) -> Iterator[Metric]:
    seconds = CounterMetricFamily(
        "seedance_leak_gpu_seconds",
        "GPU time that suspects have held or wasted since this exporter started, by kind.",
        labels=["kind"],
    )
    energy = CounterMetricFamily(
        "seedance_leak_gpu_energy_joules",
        "Energy that GPUs have drawn for suspects since this exporter started, by kind.",
        labels=["kind"],
    )
    for kind, passed in sorted(leaks.gpu_seconds.items()):
        seconds.add_metric([kind], passed)
    for kind, used_mj in sorted(leaks.gpu_energy_mj.items()):
        energy.add_metric([kind], used_mj / 1000)
    yield from (seconds, energy)


def _held(view: NodeView, leaks: LeakView) -> Metric:
    family = CounterMetricFamily(
        "seedance_gpu_memory_held_byte_seconds",
        "GPU memory in use times how long, since this exporter started, by state: idle while "
        "neither SMs nor memory were busier than leaks.context_activity_ratio, else active; time "
        "of unknown activity is left out.",
        labels=[*GPU_LABELS, "state"],
    )
    for gpu in view.gpus:
        held = leaks.held.get(gpu.merged.uuid)
        if held is not None and held.samples:
            active = held.byte_seconds - held.idle_byte_seconds
            family.add_metric([*gpu.labels, "active"], active)
            family.add_metric([*gpu.labels, "idle"], held.idle_byte_seconds)
    return family


def _costs(leaks: LeakView) -> Metric:
    family = GaugeMetricFamily(
        "seedance_leak_cost_per_hour",
        "What all suspects of a kind cost an hour, in the currency of [prices]: their power times "
        "prices.kwh, and the part of a GPU that is booked to them times prices.gpu_hour, as far as "
        "either is known.",
        labels=["kind", "currency"],
    )
    of_kind: dict[str, float] = {}
    for suspect in leaks.suspects:
        cost = cost_per_hour(
            suspect, kwh_price=leaks.kwh_price, gpu_hour_price=leaks.gpu_hour_price
        )
        if cost is not None:
            kind = suspect.finding.kind
            of_kind[kind] = of_kind.get(kind, 0.0) + cost
    for kind, cost in sorted(of_kind.items()):
        family.add_metric([kind, leaks.currency], cost)
    return family


def _counts(leaks: LeakView) -> Metric:
    family = GaugeMetricFamily(
        "seedance_leak_suspects",
        "Suspects of each kind, those that are not shown one by one included. Absent of a kind "
        "that the last probe could not judge, since a part of it broke.",
        labels=["kind"],
    )
    if leaks.probed_at is not None:
        counts = Counter(suspect.finding.kind for suspect in leaks.suspects)
        for kind in KINDS:
            if kind not in leaks.unjudged:
                family.add_metric([kind], counts[kind])
    return family
