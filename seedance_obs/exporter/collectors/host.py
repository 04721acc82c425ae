"""The energy of the host's CPUs and memory by tenant and workload, where RAPL can be read."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from seedance_obs.exporter.books.account_names import tenant_of, workload_of
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView


@register("host", "energy of the host's CPU packages and memory, split by CPU time")
class HostCollector:
    """A component of its own, never mixed into a board's energy."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        tenants = CounterMetricFamily(
            "seedance_tenant_host_energy_joules",
            "Energy of the host by tenant and RAPL zone (package, dram): the busy part by CPU "
            "time, system being busy time of no GPU workload, unallocated the idle rest and "
            "unobserved what passed unseen. Adds up to the zones' counters.",
            labels=["tenant", "zone"],
        )
        workloads = CounterMetricFamily(
            "seedance_workload_host_energy_joules",
            "Energy of the host by GPU workload, packages and memory together, by CPU time.",
            labels=["workload", "tenant"],
        )
        host = view.attribution.host
        for (zone, tenant), microjoules in sorted(host.tenants.items()):
            tenants.add_metric([tenant, zone], microjoules / 1e6)
        sums: dict[str, int] = {}
        for (_, account), microjoules in host.workloads.items():
            sums[account] = sums.get(account, 0) + microjoules
        for account, microjoules in sorted(sums.items()):
            workloads.add_metric([workload_of(account), tenant_of(account)], microjoules / 1e6)
        yield from (tenants, workloads)
