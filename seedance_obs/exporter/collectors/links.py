"""Whether the links of each GPU are whole, and what its NVLink fabric says of itself."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, NodeView
from seedance_obs.topology.domains import rack_domain
from seedance_obs.topology.fabric import state_name, status_name
from seedance_obs.topology.model import Absent, FabricMembership


@register("links", "health of the NVLinks, the PCIe link and the NVLink fabric of each GPU")
class LinksCollector:
    """Links that are up against those that should be, and membership of a fabric."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        yield from _health(view)
        yield from _fabric(view)


def _health(view: NodeView) -> Iterator[Metric]:
    active = _gauge("seedance_gpu_nvlinks_active", "NVLinks of the GPU that are up.")
    expected = _gauge(
        "seedance_gpu_nvlinks_expected",
        "NVLinks that the GPU should have up: the most that ever were since this exporter "
        "started, or as many as every board of this product has.",
    )
    degraded = _gauge(
        "seedance_gpu_pcie_link_degraded",
        "1 if the PCIe link was slower or narrower than GPU and slot allow when the GPU was last "
        "under load; none before it was, because an idle link slows down to save power.",
    )
    for gpu in view.gpus:
        health = view.links[gpu.merged.uuid]
        for family, value in (
            (active, health.nvlinks_active),
            (expected, health.nvlinks_expected),
            (degraded, health.pcie_degraded),
        ):
            if value is not None:
                family.add_metric(gpu.labels, value)
    yield from (active, expected, degraded)


def _fabric(view: NodeView) -> Iterator[Metric]:
    info = InfoMetricFamily(
        "seedance_gpu_fabric",
        "The NVLink fabric of a GPU as its driver sees it: state, the status of joining once "
        "completed, cluster UUID and clique of a rack that it has joined, and the faults that the "
        "driver names.",
        labels=list(GPU_LABELS),
    )
    healthy = _gauge(
        "seedance_gpu_fabric_healthy",
        "1 if the GPU has joined its NVLink fabric and the driver finds that healthy; none while "
        "it joins.",
    )
    for gpu in view.gpus:
        fabric = view.links[gpu.merged.uuid].fabric
        if fabric is None:
            continue
        info.add_metric(gpu.labels, _fabric_labels(fabric))
        if isinstance(fabric.healthy, bool):
            healthy.add_metric(gpu.labels, fabric.healthy)
    yield from (info, healthy)


def _fabric_labels(fabric: FabricMembership) -> dict[str, str]:
    completed = state_name(fabric.state) == "completed"
    status = "" if isinstance(fabric.status, Absent) else status_name(fabric.status)
    in_rack = rack_domain(fabric) is not None  # a zero UUID names none
    return {
        "state": state_name(fabric.state),
        "status": status if completed else "",
        "cluster_uuid": str(fabric.cluster_uuid) if in_rack else "",
        "clique_id": str(fabric.clique_id) if in_rack else "",
        "faults": ",".join(fabric.faults),
    }


def _gauge(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=GPU_LABELS)
