"""The algorithm bandwidth that NCCL counts on for an algorithm and a protocol, in GB/s.

ncclTopoTuneModel and ncclTopoGetAlgoTime in src/graph/tuning.cc: what the channels carry together,
less what protocol and algorithm cost, turned into bytes of the whole operation per second.
"""

from math import floor, inf, log2

from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.collectives.fabric import Fabric
from seedance_obs.collectives.latency import ring_steps
from seedance_obs.collectives.tuning import (
    LL_MOST_IN_NODE_GBPS,
    LL_MOST_OVER_NET_GBPS,
    NVLS_EFFICIENCY,
    RING_SHARE,
    TREE_CORRECTION,
    TREE_CORRECTION_FROM_BYTES,
    TREE_LL128_SHARE,
    TREE_LL_SHARE,
    TREE_SHARE,
    Algorithm,
    CpuVendor,
    Protocol,
)


def algorithm_gbps(
    collective: Collective,
    algorithm: Algorithm,
    protocol: Protocol,
    group: Group,
    fabric: Fabric,
    size_bytes: float,
) -> float | None:
    """The size over the time that passing it takes, latency apart; None where unknown.

    Unknown is a bandwidth of the fabric that the operation needs, or for NVLS the architecture.
    """
    if algorithm is Algorithm.DIRECT:
        return _direct(protocol, group, fabric)
    if algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return _nvls(collective, algorithm, group, fabric)
    bottleneck = fabric.bottleneck(group)
    if bottleneck is None:
        return None
    if algorithm is Algorithm.TREE:
        bus = _tree_bus(bottleneck / 1e9, protocol, group, fabric)
        return bus / 2 * tree_correction(protocol, size_bytes)
    bus = min(bottleneck / 1e9 * RING_SHARE[protocol], ll_most_gbps(protocol, group, fabric))
    return bus * group.gpus / ring_steps(collective, group.gpus)


def ll_most_gbps(protocol: Protocol, group: Group, fabric: Fabric) -> float:
    """The most that LL carries: by the GPU in a node, by the CPU beyond; infinite for others.

    Infinite too in a node of GPUs of an unknown architecture.
    """
    if protocol is not Protocol.LL:
        return inf
    if group.nodes > 1:
        two_nodes, more = LL_MOST_OVER_NET_GBPS[fabric.cpu or CpuVendor.INTEL]
        return two_nodes if group.nodes == 2 else more
    if fabric.architecture is None:
        return inf
    return LL_MOST_IN_NODE_GBPS[fabric.architecture]


def tree_correction(protocol: Protocol, size_bytes: float) -> float:
    """What is left of a tree's bandwidth at a size: medium sizes fall short of the model.

    NCCL takes steps at powers of two, by which an operation could be faster than a smaller one;
    between them this goes straight over the logarithm of the size.
    """
    table = TREE_CORRECTION[protocol]
    place = log2(max(size_bytes, TREE_CORRECTION_FROM_BYTES) / TREE_CORRECTION_FROM_BYTES)
    if place >= len(table) - 1:
        return table[-1]
    low = floor(place)
    return table[low] + (place - low) * (table[low + 1] - table[low])


def _tree_bus(bottleneck_gbps: float, protocol: Protocol, group: Group, fabric: Fabric) -> float:
    bus = bottleneck_gbps * TREE_SHARE
    if protocol is Protocol.LL:
        return min(bus * TREE_LL_SHARE, ll_most_gbps(protocol, group, fabric))
    if protocol is Protocol.LL128:
        return bus * TREE_LL128_SHARE[0 if group.nodes == 1 else 1]
    return bus


def _nvls(
    collective: Collective, algorithm: Algorithm, group: Group, fabric: Fabric
) -> float | None:
    """Through the switches: each GPU is the head of one channel for all of its node.

    A GPU's link carries every head's channel once and its own twice (ncclTopoSearchTryNvls in
    src/graph/search.cc), so a head has one part in gpus + 1. All-reduces overlap their two halves.
    """
    efficiency = NVLS_EFFICIENCY.get(fabric.architecture) if fabric.architecture else None
    if efficiency is None or fabric.in_node is None:
        return None
    heads = group.peers_in_node + 1
    carried = fabric.in_node / 1e9 * heads / (heads + 1)
    carried *= efficiency * (heads - 1) / heads
    if collective is not Collective.ALL_REDUCE:
        return carried * (heads - 1) / heads
    carried *= 2
    if algorithm is Algorithm.NVLS_TREE:
        if fabric.between_nodes is None:
            return None
        between = fabric.between_nodes / 1e9 * (2 if group.nodes == 2 else 1)
        carried = min(carried, between)
    return carried * group.gpus / ring_steps(collective, group.gpus)


def _direct(protocol: Protocol, group: Group, fabric: Fabric) -> float | None:
    """Each GPU sends every other its part; the slower of links and adapters sets the time.

    A node's adapters carry the parts of all its GPUs for all GPUs of other nodes.
    """
    near = group.peers_in_node
    far = group.gpus - 1 - near
    seconds_per_byte = 0.0
    if near:
        if fabric.in_node is None:
            return None
        seconds_per_byte = near / group.gpus / fabric.in_node
    if group.nodes > 1:
        if fabric.between_nodes is None:
            return None
        over_net = group.gpus_per_node * far / group.gpus / fabric.between_nodes
        seconds_per_byte = max(seconds_per_byte, over_net)
    return RING_SHARE[protocol] / seconds_per_byte / 1e9
