"""Who held each GPU and who burned its energy, as counters that add up to the board's own.

These series are what people pay by, so they carry the GPU's UUID alone: no change of what is known
of its place or its mode may end one and begin another, and they outlive a tenant's workloads.
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from seedance_obs.attribution.tick import UNALLOCATED, UNOBSERVED
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView

ABOUT = (
    "Whose a workload is, the tenant rules say; unallocated is what nobody held, unobserved what "
    "passed while nobody looked. The tenants of a GPU add up to all of it."
)
NOBODY = (UNALLOCATED, UNOBSERVED)


@register("tenant", "GPU time and energy by tenant, adding up to the board's counters exactly")
class TenantCollector:
    """The running accounts of every GPU this exporter has seen."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        labels = ["gpu_uuid", "tenant"]
        held = CounterMetricFamily(
            "seedance_tenant_gpu_seconds",
            "GPU time by tenant; state active (kept busy), reserved (held, not used), unallocated "
            f"or unobserved. {ABOUT}",
            labels=[*labels, "state"],
        )
        energy = CounterMetricFamily(
            "seedance_tenant_gpu_energy_joules",
            "Board energy by tenant; component active (burned by its work), reserved_idle (of the "
            f"idle board, by the part it held), unallocated or unobserved. {ABOUT}",
            labels=[*labels, "component"],
        )
        for account in view.attribution.tenants:
            balance, tenant = account.balance, account.tenant
            values = [account.gpu_uuid, tenant]
            if tenant in NOBODY:
                held.add_metric([*values, tenant], balance.reserved_us / 1e6)
            else:
                held.add_metric([*values, "active"], balance.active_us / 1e6)
                held.add_metric([*values, "reserved"], balance.reserved_us / 1e6)
            if not account.metered:
                continue
            if tenant in NOBODY:
                energy.add_metric([*values, tenant], balance.reserved_mj / 1000)
            else:
                energy.add_metric([*values, "active"], balance.active_mj / 1000)
                energy.add_metric([*values, "reserved_idle"], balance.reserved_mj / 1000)
        yield from (held, energy)
