"""What each GPU is: model, firmware, MIG layout; and how many are missing."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, MIG_LABELS, NodeView, mig_labels
from seedance_obs.topology.encoding.gpu_place import encode

FACTS = (
    "vbios_version",
    "serial",
    "compute_capability",
    "minor_number",
    "pcie_generation_board",  # what the board could do in the best of slots
)
ENCODED = ("bandwidth_class", "topo_mask", "root_complex_id")


@register("device", "identity and model of each GPU, MIG instances, driver; GPUs expected and seen")
class DeviceCollector:
    """The static facts of the node's GPUs."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape."""
        yield _gpu_info(view)
        yield _mig_info(view)
        yield _driver_info(view)
        yield from _counts(view)


def _counts(view: NodeView) -> tuple[Metric, Metric]:
    expected = GaugeMetricFamily(
        "seedance_gpus_expected",
        "GPUs this node should have: as configured, else as many as PCI lists or were seen.",
    )
    seen = GaugeMetricFamily("seedance_gpus_seen", "GPUs that a source answers for now.")
    if view.expected_gpus is not None:
        expected.add_metric([], view.expected_gpus)
        seen.add_metric([], len(view.gpus))
    return expected, seen


def _gpu_info(view: NodeView) -> Metric:
    family = InfoMetricFamily(
        "seedance_gpu",
        "Facts about a GPU that do not change while it is installed. Topo_mask: the GPUs of its "
        "NVLink domain, bit i from the right for GPU i.",
        labels=list(GPU_LABELS),
    )
    for gpu in view.gpus:
        facts = {name: gpu.merged.facts.get(name, "") for name in FACTS}
        place = encode(view.topology, gpu.device)
        facts |= {name: getattr(place, name) or "" for name in ENCODED}
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
