"""Who held each GPU and who burned its energy, as counters that add up to the board's own.

These series are what people pay by, so they carry the GPU's UUID alone: no change of what is known
of its place or its mode may end one and begin another.
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView

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
        labels = ["gpu_uuid", "tenant"]
        held = CounterMetricFamily(
            "seedance_tenant_gpu_seconds", f"GPU time by tenant. {ABOUT}", labels=labels
        )
        energy = CounterMetricFamily(
            "seedance_tenant_gpu_energy_joules",
            f"Board energy by tenant. {ABOUT}",
            labels=labels,
        )
        for account in view.accounts:
            held.add_metric([account.gpu_uuid, account.tenant], account.held_us / 1_000_000)
            if account.energy_mj is not None:
                values = [account.gpu_uuid, account.tenant]
                energy.add_metric(values, account.energy_mj / 1000)
        yield from (held, energy)
