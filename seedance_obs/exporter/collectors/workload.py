"""What each workload has used of each GPU, as counters born at zero with the workload."""

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from seedance_obs.exporter.books.account_names import tenant_of, workload_of
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView, WorkloadAccount

LABELS = ("workload", "tenant")
ON_A_GPU = ("gpu_uuid", *LABELS)


@register("workload", "GPU time, energy, memory and traffic of each workload on each GPU")
class WorkloadCollector:
    """Living workloads, and ended ones until every scraper has seen their end."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        yield from _identities(view)
        yield from _energy(view)
        yield from _time(view)
        yield _traffic(view)
        yield _intensities(view)


def _identities(view: NodeView) -> Iterator[Metric]:
    info = InfoMetricFamily(
        "seedance_workload",
        "A workload on this node's GPUs: a pod, Slurm job, container, service, process group or "
        "virtual machine, and whose it is. Empty: not known.",
    )
    started = GaugeMetricFamily(
        "seedance_workload_start_time_seconds",
        "Unix time at which a workload began; its counters are born at zero then, or when this "
        "exporter first saw it.",
        labels=LABELS,
    )
    for shown in view.attribution.workloads:
        workload = shown.workload
        info.add_metric(
            [],
            {
                "workload": workload.key,
                "tenant": shown.tenant,
                "kind": workload.kind,
                "uid": workload.uid,
                "namespace": workload.namespace,
                "pod": workload.pod,
                "container": workload.container,
                "slurm_job": workload.slurm_job,
                "slurm_account": workload.slurm_account,
                "user": workload.user,
            },
        )
        if workload.started_at > 0:
            started.add_metric([workload.key, shown.tenant], workload.started_at)
    yield from (info, started)


def _labels(account: WorkloadAccount) -> list[str]:
    return [account.gpu_uuid, workload_of(account.account), tenant_of(account.account)]


def _energy(view: NodeView) -> Iterator[Metric]:
    energy = CounterMetricFamily(
        "seedance_workload_gpu_energy_joules",
        "Board energy by workload. Component active: burned by its own work; reserved_idle: of "
        "the idle board, by the part it held. With what tenants hold of unallocated and "
        "unobserved, all of a GPU's add up to its energy counter.",
        labels=[*ON_A_GPU, "component"],
    )
    shapley = CounterMetricFamily(
        "seedance_workload_gpu_shapley_energy_joules",
        "Active board energy by Shapley value over the board's learned power curve, where "
        "attribution.shapley is on.",
        labels=ON_A_GPU,
    )
    for account in view.attribution.workload_accounts:
        if not account.metered:
            continue
        balance, labels = account.balance, _labels(account)
        energy.add_metric([*labels, "active"], balance.active_mj / 1000)
        energy.add_metric([*labels, "reserved_idle"], balance.reserved_mj / 1000)
        if view.attribution.shapley:
            shapley.add_metric(labels, balance.shapley_mj / 1000)
    yield from (energy, shapley)


def _time(view: NodeView) -> Iterator[Metric]:
    seconds = CounterMetricFamily(
        "seedance_workload_gpu_seconds",
        "GPU time by workload. State active: its work kept the GPU busy; reserved: it held its "
        "part and did not use it.",
        labels=[*ON_A_GPU, "state"],
    )
    memory = CounterMetricFamily(
        "seedance_workload_gpu_memory_byte_seconds",
        "GPU memory held, times how long it was held.",
        labels=ON_A_GPU,
    )
    used = GaugeMetricFamily(
        "seedance_workload_gpu_memory_used_bytes",
        "GPU memory held now; absent once a workload has ended.",
        labels=ON_A_GPU,
    )
    for account in view.attribution.workload_accounts:
        balance, labels = account.balance, _labels(account)
        seconds.add_metric([*labels, "active"], balance.active_us / 1e6)
        seconds.add_metric([*labels, "reserved"], balance.reserved_us / 1e6)
        memory.add_metric(labels, balance.memory_byte_us / 1e6)
        if account.memory_bytes is not None:
            used.add_metric(labels, account.memory_bytes)
    yield from (seconds, memory, used)


def _traffic(view: NodeView) -> Metric:
    traffic = CounterMetricFamily(
        "seedance_workload_link_bytes",
        "Bytes over a GPU's links, both directions, by workload and the class of link that they "
        "took on its placement: NV<links> over NVLink, PIX to SYS over PCIe.",
        labels=[*ON_A_GPU, "link_class"],
    )
    for account in view.attribution.workload_accounts:
        for link_class, passed in sorted(account.balance.link_bytes.items()):
            traffic.add_metric([*_labels(account), link_class], passed)
    return traffic


def _intensities(view: NodeView) -> Metric:
    intensity = GaugeMetricFamily(
        "seedance_workload_gpu_intensity_ratio",
        "Power a sharer draws for its activity, relative to the mean of its GPU's sharers; only "
        "while it is learned well enough to be used.",
        labels=ON_A_GPU,
    )
    for account in view.attribution.workload_accounts:
        if account.intensity is not None:
            intensity.add_metric(_labels(account), account.intensity)
    return intensity
