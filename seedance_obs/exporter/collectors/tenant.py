"""Who held each GPU and who burned its energy, as counters that add up to the board's own."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, NodeView

ABOUT = (
    "A tenant is the namespace of the pod that holds the GPU, else the user of its processes; "
    "unallocated is what nobody held, unobserved what passed while nobody looked. The tenants of "
    "a GPU add up to all of it."
)


@register("tenant", "GPU time and energy by tenant, adding up to the board's counters exactly")
class TenantCollector:
    """The running accounts of every GPU this exporter has seen."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        labels = [*GPU_LABELS, "tenant"]
        held = CounterMetricFamily(
            "seedance_tenant_gpu_seconds", f"GPU time by tenant. {ABOUT}", labels=labels
        )
        energy = CounterMetricFamily(
            "seedance_tenant_gpu_energy_joules",
            f"Board energy by tenant. {ABOUT}",
            labels=labels,
        )
        for account in view.accounts:
            held.add_metric([*account.labels, account.tenant], account.held_us / 1_000_000)
            if account.energy_mj is not None:
                values = [*account.labels, account.tenant]
                energy.add_metric(values, account.energy_mj / 1000)
        yield from (held, energy)
