"""What the links between the node's GPUs carry, and how well each workload sits on them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from prometheus_client.core import Metric

from seedance_obs.exporter.channel_families import gauge
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView, WorkloadPlacement

MODEL = "By NCCL's constants, links and PCIe generations"


@register("placement", "what links between GPUs carry, and how well workloads sit on them")
class PlacementCollector:
    """Paths of GPU pairs, classes of link, and workloads on two GPUs or more."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape; of what is not known there is no sample."""
        found = view.placement
        if found is None or not view.gpus:
            return
        yield _paths(found.paths)
        yield _classes(found.classes)
        yield from _workloads(found.workloads)


def _paths(paths: Mapping[tuple[str, str], float]) -> Metric:
    return gauge(
        "seedance_topology_path_bandwidth_bytes_per_second",
        "What the path between two GPUs of this node carries one way, each pair once: its "
        f"NVLinks if it has any, else its PCIe. {MODEL}, not measured, and as if nobody else were "
        "on it.",
        ("source", "target"),
        paths.items(),
    )


def _classes(classes: Mapping[str, float]) -> Metric:
    further = zip_longest(classes, [*classes][1:], fillvalue="")
    return gauge(
        "seedance_topology_link_class_bandwidth_bytes_per_second",
        "What a link class carries one way on this node: the slowest pair of GPUs that has it by "
        "NVLink or by the PCIe between them; PHB: also a GPU and its CPU. Next_class: the next "
        f"further one that this node has, empty for the furthest. {MODEL}.",
        ("link_class", "next_class"),
        ((pair, classes[pair[0]]) for pair in further),
    )


def _workloads(workloads: Sequence[WorkloadPlacement]) -> Iterator[Metric]:
    rows = [((one.workload, one.tenant), one) for one in workloads]
    yield gauge(
        "seedance_workload_placement_regret_ratio",
        "By what share the mean pair of a workload's GPUs carries less than that of the best set "
        "of as many GPUs of this node, held or free, 0 to 1. Only workloads on two whole GPUs or "
        "more; boards in MIG mode do not count.",
        ("workload", "tenant"),
        ((labels, one.regret) for labels, one in rows),
    )
    yield gauge(
        "seedance_workload_placement_bandwidth_bytes_per_second",
        "What the mean pair of GPUs carries one way: of those that a workload has (actual), and "
        "of the best set of as many GPUs of this node (best).",
        ("workload", "tenant", "of"),
        (
            ((*labels, of), value)
            for labels, one in rows
            for of, value in (("actual", one.actual), ("best", one.best))
        ),
    )
