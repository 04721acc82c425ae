"""What nobody holds of the node's GPUs, and of how little use that is: sums that add up."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import Metric

from seedance_obs.exporter.channel_families import gauge
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import GPU_LABELS, FragmentationView, FreeGpus, NodeView

Of = Callable[[FreeGpus], float | None]
Family = tuple[str, str, Of]  # its name, what it says, and the value

OF_FREE = (
    "as a share of seedance_node_free_gpus. Absent on a full node. Of several nodes, add up both."
)

AMOUNTS: tuple[Family, ...] = (
    (
        "seedance_node_free_gpus",
        "GPUs that nobody holds, the sum of seedance_gpu_free_ratio: parts of shared boards and "
        "free MIG instances count as fractions. A GPU that is lost is not among them; those of a "
        "node that is cordoned or reserved are, since only its scheduler knows.",
        lambda free: free.gpus,
    ),
    (
        "seedance_node_whole_free_gpus",
        "GPUs that are free as a whole: not in MIG mode, and held by nobody.",
        lambda free: free.whole,
    ),
    (
        "seedance_node_unusable_free_gpus",
        "Of seedance_node_free_gpus, what lies in parts smaller than a request wants of one GPU: a "
        "mean over the quartiles of the request mix. How many GPUs are wanted at once does not "
        "count. Absent before the first placement.",
        lambda free: free.unusable,
    ),
    (
        "seedance_node_stranded_free_gpus",
        "Of seedance_node_free_gpus, what is of no use to requests that want more GPUs with enough "
        "free than there are on this node: all of it to such a request, nothing to others; a mean "
        "over the request mix. What moving placements could win back, and much less than FGD's "
        "number. Absent before the first placement.",
        lambda free: free.stranded,
    ),
    (
        "seedance_node_fragmentation_fgd_gpus",
        "Of seedance_node_free_gpus, what is a fragment as FGD (Weng et al., ATC'23) defines it: "
        "all of it to a request that this node cannot serve, else what lies in parts smaller than "
        "the request wants of a GPU; a mean over the most frequent requests, up to 95 % of the "
        "mix. What requests want of the CPU is not known here and never lacks, and nothing that "
        "wants no GPU is placed here. Absent before the first placement.",
        lambda free: free.fgd,
    ),
)
RATIOS: tuple[Family, ...] = (
    (
        "seedance_node_fragmentation_fgd_ratio",
        f"seedance_node_fragmentation_fgd_gpus {OF_FREE}",
        lambda free: _share(free.fgd, free),
    ),
    (
        "seedance_node_fragmentation_stranded_ratio",
        f"seedance_node_stranded_free_gpus {OF_FREE}",
        lambda free: _share(free.stranded, free),
    ),
    (
        "seedance_node_fragmentation_unusable_ratio",
        f"seedance_node_unusable_free_gpus {OF_FREE}",
        lambda free: _share(free.unusable, free),
    ),
    (
        "seedance_node_fragmentation_memory_ratio",
        "External fragmentation of GPU memory: the share of the memory that nobody holds and "
        "nothing uses which is not on the GPU or MIG instance with most of it. An empty node of 8 "
        "GPUs has 0.875, so it is no alarm by itself. Absent where none is free.",
        lambda free: free.memory_external,
    ),
    (
        "seedance_node_fragmentation_memory_normalized_ratio",
        "seedance_node_fragmentation_memory_ratio as a share of the most that it can be with as "
        "many GPUs and MIG instances: 0 all free memory in one, 1 the same in each.",
        lambda free: free.memory_external_normalised,
    ),
)


@register("fragmentation", "which GPUs nobody holds, and how much of that is of no use")
class FragmentationCollector:
    """GPUs that are free in numbers, so that nodes add up; and each node's own shares of them."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape; of what cannot be told there is no sample."""
        found = view.fragmentation
        if found is None or not view.gpus:
            return
        yield _boards(view, found)
        yield from _placed(found)
        if found.free is not None:
            yield from _numbers(AMOUNTS, found.free)
            yield from _by_size_and_level(found.free)
            yield from _numbers(RATIOS, found.free)


def _boards(view: NodeView, found: FragmentationView) -> Metric:
    return gauge(
        "seedance_gpu_free_ratio",
        "Share of the board that nobody holds, 0 to 1. Whoever was given a device holds it, "
        "though nothing runs there, and so does a process that nobody placed; one that only draws, "
        "such as a display server, does not. Of a shared board holders take their limits of "
        "memory and SMs, at least a thousandth, and without limits all of it; of one in MIG mode "
        "the instances without holder are free, and what is not cut into instances is neither. "
        "Absent where holders cannot be told.",
        GPU_LABELS,
        ((gpu.labels, found.boards.get(gpu.merged.uuid)) for gpu in view.gpus),
    )


def _placed(found: FragmentationView) -> Iterator[Metric]:
    yield _number(
        "seedance_node_holders_unknown_gpus",
        "GPUs that answer, and of which it cannot be told who holds them: no process list, a "
        "kubelet or Slurm job map that is asked and silent, a device in a spelling nobody knows. "
        "While there are any, what is free on this node is not known and has no series.",
        found.unknown,
    )
    yield _number(
        "seedance_node_placements_remembered",
        "Workloads whose requests make this node's request mix: the last fragmentation.placements "
        "that held GPUs here since this exporter started, each with the most that it held at once. "
        "A Slurm job that runs nothing is seen only by slurm.job_map_directory.",
        found.placements,
    )


def _numbers(families: tuple[Family, ...], free: FreeGpus) -> Iterator[Metric]:
    return (_number(name, about, value(free)) for name, about, value in families)


def _by_size_and_level(free: FreeGpus) -> Iterator[Metric]:
    yield _by(
        "gpus",
        "seedance_node_gang_free_gpus",
        "Free GPUs that requests for that many whole GPUs of one node can be given: gpus times "
        "the number of such requests that fit.",
        {str(size): gpus for size, gpus in free.gang.items()},
    )
    yield _by(
        "level",
        "seedance_node_island_free_gpus",
        "Of seedance_node_whole_free_gpus, how many are on the island that has most of them, by "
        "level: nvlink_domain, pcie_switch or numa_node. A GPU that is on none is an island of its "
        "own. Absent for a level that this node does not have or that is not known.",
        free.island,
    )
    yield _by(
        "level",
        "seedance_node_fragmentation_island_ratio",
        "Share of the GPUs that are free as a whole outside the island that has most of them, 0 to "
        "1, by level; 0 where they are all on one. Absent where none is free as a whole.",
        {
            level: (free.whole - most) / free.whole
            for level, most in free.island.items()
            if free.whole
        },
    )


def _share(part: float | None, free: FreeGpus) -> float | None:
    return part / free.gpus if part is not None and free.gpus else None


def _number(name: str, about: str, value: float | None) -> Metric:
    return gauge(name, about, (), [((), value)])


def _by(label: str, name: str, about: str, values: Mapping[str, float]) -> Metric:
    return gauge(name, about, (label,), (((key,), value) for key, value in values.items()))
