"""What each GPU is and where it sits: model, firmware, MIG layout, NVLink peers, GPUs missing."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from seedance_obs.exporter.registry import Context, register
from seedance_obs.exporter.view import GPU_LABELS, MIG_LABELS, NodeView, mig_labels
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.readings import NvLink
from seedance_obs.topology.domains import HIDDEN_SWITCH

FACTS = ("vbios_version", "serial", "compute_capability", "minor_number")


@register("device", "identity, model and NVLink peers of each GPU; GPUs expected and seen")
class DeviceCollector:
    """The static facts of the node's GPUs."""

    def __init__(self, context: Context) -> None:
        self._view = context.view

    def collect(self) -> Iterator[Metric]:
        """The families of one scrape."""
        view = self._view()
        yield _gpu_info(view)
        yield _mig_info(view)
        yield _driver_info(view)
        yield _nvlinks(view)
        expected = GaugeMetricFamily(
            "seedance_gpus_expected",
            "GPUs this node should have: as configured, else as many as PCI lists or were seen.",
        )
        expected.add_metric([], view.expected_gpus)
        seen = GaugeMetricFamily("seedance_gpus_seen", "GPUs that a source answers for now.")
        seen.add_metric([], len(view.gpus))
        yield from (expected, seen)


def _gpu_info(view: NodeView) -> Metric:
    family = InfoMetricFamily(
        "seedance_gpu",
        "Facts about a GPU that do not change while it is installed.",
        labels=list(GPU_LABELS),
    )
    for gpu in view.gpus:
        facts = {name: gpu.merged.facts.get(name, "") for name in FACTS}
        family.add_metric(gpu.labels, {"gpu_model": gpu.merged.model or "", **facts})
    return family


def _mig_info(view: NodeView) -> Metric:
    family = InfoMetricFamily(
        "seedance_mig", "The MIG instances of a GPU.", labels=list(GPU_LABELS)
    )
    for gpu in view.gpus:
        for instance in gpu.merged.mig:
            names = zip(MIG_LABELS, mig_labels(instance), strict=True)
            family.add_metric(gpu.labels, dict(names))
    return family


def _driver_info(view: NodeView) -> Metric:
    family = InfoMetricFamily("seedance_driver", "Versions of the NVIDIA driver in use.")
    names = ("driver_version", "cuda_version", "nvml_version")
    if view.versions:
        family.add_metric([], {name: view.versions.get(name, "") for name in names})
    return family


def _nvlinks(view: NodeView) -> Metric:
    family = GaugeMetricFamily(
        "seedance_topology_nvlinks",
        "Active NVLinks from this GPU to a peer: another GPU, a switch, or what the host cannot "
        "see (peer hidden).",
        labels=[*GPU_LABELS, "peer", "peer_kind"],
    )
    here = {gpu.merged.pci_bus_id for gpu in view.gpus}
    for gpu in view.gpus:
        for (peer, kind), links in sorted(_peers(gpu.merged, here).items()):
            family.add_metric([*gpu.labels, peer, kind], links)
    return family


def _peers(gpu: MergedGpu, here: set[str | None]) -> Counter[tuple[str, str]]:
    return Counter(_peer(link, here) for link in gpu.nvlinks)


def _peer(link: NvLink, here: set[str | None]) -> tuple[str, str]:
    if link.remote_bus_id is None:
        return HIDDEN_SWITCH, "hidden"
    if link.remote_bus_id in here or link.remote_kind == "gpu":
        return link.remote_bus_id, "gpu"
    return link.remote_bus_id, link.remote_kind
