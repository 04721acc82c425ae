"""What each workload may use of each board, beside what it uses, and how long it was at limits."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from seedance_obs.exporter.books.account_names import tenant_of, workload_of
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView

LABELS = ("gpu_uuid", "workload", "tenant", "source")


@register("quota", "what workloads may use: cgroup.gpu-quota files, MIG, MPS, HAMi")
class QuotaCollector:
    """Quotas by who sets them; what nothing limits has no series."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        memory = GaugeMetricFamily(
            "seedance_workload_quota_memory_bytes",
            "GPU memory that a workload may use. Source: gpu-quota (a cgroup.gpu-quota file), mig "
            "(the instance's size), mps or hami (limits the process was started with).",
            labels=LABELS,
        )
        share = GaugeMetricFamily(
            "seedance_workload_quota_sm_ratio",
            "Share of the board's SMs, or of their time, that a workload may use, 0 to 1.",
            labels=LABELS,
        )
        changed = GaugeMetricFamily(
            "seedance_workload_quota_change_time_seconds",
            "Unix time at which the quota was last changed.",
            labels=LABELS,
        )
        limited = CounterMetricFamily(
            "seedance_workload_quota_at_limit_seconds",
            "Time a workload has stood at its limit of memory or sm, within 2 %.",
            labels=(*LABELS, "limit"),
        )
        for row in view.attribution.quotas:
            whose = (workload_of(row.account), tenant_of(row.account))
            labels = [row.gpu_uuid, *whose, row.source]
            for family, value in (
                (memory, row.memory_bytes),
                (share, row.sm_ratio),
                (changed, row.changed_at),
            ):
                if value is not None:
                    family.add_metric(labels, value)
            for limit, seconds in row.at_limit.items():
                limited.add_metric([*labels, limit], seconds)
        yield from (memory, share, changed, limited)
