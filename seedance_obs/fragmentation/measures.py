"""Shares of what is free, each for one way in which it may be of no use.

External is of GPUs on a node (of their memory, if that is what is given), unusable of sizes, gang
of whole GPUs on the nodes of a fleet. Islands of a node take `external` too, over what is free on
each: what a job should not have to leave, such as an NVLink domain, a PCIe switch or a NUMA node.

All are in [0, 1], and all are absent where nothing is free: a full node has no fragmentation, which
is not the same as none being measured on a free one. What is free is what nobody was *given*; what
processes happen not to use of a GPU is not.
"""

from collections.abc import Iterable, Sequence


def external(free: Sequence[float]) -> float | None:
    """External fragmentation of a node: the share of the free that lies not on its freest GPU.

    1 - max(f) / sum(f), in [0, 1 - 1/G] for G GPUs: what allocators of memory call external
    fragmentation. An *empty* node of 8 GPUs has 0.875, so it is no alarm by itself; see
    `external_normalised`. A node that is one island has 0 by islands.

    Args:
        free: What is free on each GPU or island, in any one unit; what is full counts as 0.

    Returns:
        The share; None where nothing is free.
    """
    total = sum(free)
    return 1 - max(free) / total if total > 0 else None


def external_normalised(free: Sequence[float]) -> float | None:
    """External fragmentation divided by its bound, so that nodes of 2 and of 8 GPUs compare.

    (1 - max(f) / sum(f)) / (1 - 1/G): 0 where all that is free is on one GPU, 1 where it is spread
    evenly over all of them.

    Args:
        free: What is free on each GPU, in any one unit; what is full counts as 0.

    Returns:
        The share; None where nothing is free, and for a single GPU, which cannot be fragmented.
    """
    found = external(free)
    return None if found is None or len(free) < 2 else found / (1 - 1 / len(free))


def unusable(free: Iterable[float], demands: Iterable[float]) -> float | None:
    """The share of the free that lies on GPUs with less free than a request wants of one.

    The mean over the demands of sum(f where f < demand) / sum(f), in [0, 1]. The demands are some
    quantiles of what requests want of each GPU (`Mix.demands_milli`). Unlike FGD it knows nothing
    of CPUs, of models and of how many GPUs are wanted at once, and leaves out requests that want no
    GPU; of several nodes, give the GPUs of all: shares of nodes must not be averaged.

    Args:
        free: What is free on each GPU.
        demands: What requests want of one GPU, in the same unit, each weighted alike.

    Returns:
        The share; None where nothing is free, or where there is no demand.
    """
    sizes, wanted = list(free), list(demands)
    total = sum(sizes)
    if total <= 0 or not wanted:
        return None
    lost = sum(sum(size for size in sizes if size < demand) for demand in wanted)
    return lost / (total * len(wanted))


def gang(free_by_node: Iterable[float], gpus: int) -> float | None:
    """The share of a fleet's free GPUs that no job of so many GPUs on one node can be given.

    1 - g * sum(floor(F / g)) / sum(F), in [0, 1], for whole free GPUs F of each node.

    Args:
        free_by_node: Free whole GPUs of each node.
        gpus: How many GPUs the job wants of one node.

    Returns:
        The share; None where nothing is free.

    Raises:
        ValueError: the job wants no GPU.
    """
    if gpus < 1:
        raise ValueError(f"a gang has at least one GPU, not {gpus}")
    free = list(free_by_node)
    total = sum(free)
    return 1 - gpus * sum(count // gpus for count in free) / total if total > 0 else None


def of_several(free_by_node: Iterable[Sequence[float]]) -> float | None:
    """External or island fragmentation of several nodes: what is missed over what is free.

    sum of (sum(f) - max(f)) / sum of sum(f): a node counts by what is free on it, where a mean of
    the nodes' shares would count one with a sliver left like an empty one.

    Args:
        free_by_node: What is free on each GPU, or each island, of each node.

    Returns:
        The share, in [0, 1); None where nothing is free.
    """
    nodes = [list(free) for free in free_by_node if free]
    total = sum(map(sum, nodes))
    return 1 - sum(map(max, nodes)) / total if total > 0 else None
