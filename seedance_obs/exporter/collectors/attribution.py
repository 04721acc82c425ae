"""What the attribution rests on: how each joule was split, and how well that could be known."""

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView

GPU = ["gpu_uuid"]


@register("attribution", "how each board's energy was split, its idle floor, and what went wrong")
class AttributionCollector:
    """The evidence behind the workload and tenant counters."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        yield from _energy(view)
        yield from _intensity(view)
        yield from _workloads(view)


def _energy(view: NodeView) -> Iterator[Metric]:
    estimators = CounterMetricFamily(
        "seedance_gpu_attributed_energy_joules",
        "Board energy by how it was split: exclusive (one holder), activity, intensity (activity "
        "times learned intensity), residency (equal: no activity known), unallocated, unobserved. "
        "Adds up to the energy counter; without unobserved, it is the coverage.",
        labels=[*GPU, "estimator"],
    )
    source = InfoMetricFamily(
        "seedance_gpu_energy_source",
        "Where a board's energy is from: counter, or integrated_power on boards without one.",
    )
    floor = GaugeMetricFamily(
        "seedance_gpu_floor_power_watts",
        "What the board draws while nothing holds it: measured, configured, or same_model, as "
        "measured on other boards of its model. Without it all energy of a held board is active.",
        labels=[*GPU, "source"],
    )
    faults = CounterMetricFamily(
        "seedance_gpu_energy_faults",
        "Times a board's energy counter restarted, or advanced by more than a board can draw; "
        "that energy is booked as unobserved.",
        labels=[*GPU, "reason"],
    )
    for board in view.attribution.evidence:
        uuid = board.gpu_uuid
        for estimator, millijoules in board.estimators.items():
            estimators.add_metric([uuid, estimator], millijoules / 1000)
        if board.energy_source is not None:
            source.add_metric([], {"gpu_uuid": uuid, "source": board.energy_source})
            faults.add_metric([uuid, "counter_restart"], board.counter_restarts)
            faults.add_metric([uuid, "implausible"], board.implausible)
        if board.floor_watts is not None and board.floor_source is not None:
            floor.add_metric([uuid, board.floor_source], board.floor_watts)
    yield from (estimators, source, floor, faults)


def _intensity(view: NodeView) -> Iterator[Metric]:
    used = GaugeMetricFamily(
        "seedance_gpu_intensity_used",
        "1 while learned intensities split a shared board's energy, 0 while activity alone does.",
        labels=GPU,
    )
    seconds = GaugeMetricFamily(
        "seedance_gpu_intensity_evidence_seconds",
        "Observation behind the intensities, older ones forgotten.",
        labels=GPU,
    )
    condition = GaugeMetricFamily(
        "seedance_gpu_intensity_condition_number",
        "Condition number of the sharers' activities: large where they rise and fall together.",
        labels=GPU,
    )
    residual = GaugeMetricFamily(
        "seedance_gpu_intensity_residual_ratio",
        "What the intensities leave unexplained of the active power: its standard deviation over "
        "the mean.",
        labels=GPU,
    )
    for board in view.attribution.evidence:
        evidence = board.intensity
        if evidence is None:
            continue
        labels = [board.gpu_uuid]
        used.add_metric(labels, float(evidence.used))
        seconds.add_metric(labels, evidence.effective_seconds)
        for family, value in (
            (condition, evidence.condition_number),
            (residual, evidence.residual_ratio),
        ):
            if value is not None:
                family.add_metric(labels, value)
    yield from (used, seconds, condition, residual)


def _workloads(view: NodeView) -> Iterator[Metric]:
    workloads = GaugeMetricFamily(
        "seedance_workloads",
        "Workloads of this node's GPUs, ended ones of the last minutes included: shown, or hidden "
        "by attribution.workload_limit (their tenants are billed all the same).",
        labels=["state"],
    )
    workloads.add_metric(["shown"], len(view.attribution.workloads))
    workloads.add_metric(["hidden"], view.attribution.hidden_workloads)
    dropped = GaugeMetricFamily(
        "seedance_workload_claims_contradicted",
        "Claims of pods to devices that are not believed now, since living processes of another "
        "pod hold them: while it stays above 0, the kubelet's answers are stale.",
    )
    dropped.add_metric([], view.attribution.dropped_claims)
    yield from (workloads, dropped)
