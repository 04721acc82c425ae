"""What a collective takes however small it is, in microseconds, as NCCL plans it.

ncclTopoTuneModel in src/graph/tuning.cc. A ring's latency grows with the GPUs, a tree's with the
GPUs of a node and the logarithm of the nodes, and NVLS' not at all in a node.
"""

from seedance_obs.collectives.collective import Collective, Group
from seedance_obs.collectives.fabric import Fabric
from seedance_obs.collectives.tuning import (
    BASE_US,
    NET_OVERHEAD_ELSE_US,
    NET_OVERHEAD_US,
    PLATEAU,
    PLATEAU_BEFORE_AMPERE,
    PLATEAU_BYTES,
    SIMPLE_POSTS,
    STEP_US,
    Algorithm,
    Architecture,
    Hardware,
    Protocol,
)

ONE_WAY = (Collective.BROADCAST, Collective.REDUCE)


def ring_steps(collective: Collective, gpus: int) -> int:
    """How often a ring passes data on."""
    if collective is Collective.ALL_REDUCE:
        return 2 * (gpus - 1)
    return gpus if collective in ONE_WAY else gpus - 1


def latency_us(
    collective: Collective,
    algorithm: Algorithm,
    protocol: Protocol,
    group: Group,
    fabric: Fabric,
) -> float:
    """The latency in microseconds, before `plateau` lengthens it.

    Raises:
        KeyError: the algorithm has no such protocol, or does not run on such hardware.
    """
    if algorithm is Algorithm.DIRECT:
        return _direct_us(protocol, group, fabric)
    if algorithm is Algorithm.RING and collective in ONE_WAY:
        return _one_way_us(protocol, group, fabric)
    base = BASE_US[algorithm][protocol]
    step = STEP_US[fabric.hardware][algorithm][protocol]
    net = _net_step_us(algorithm, protocol, group, fabric)
    log_nodes = group.nodes.bit_length() - 1
    if algorithm is Algorithm.TREE:
        return base + 2 * (group.peers_in_node * step + log_nodes * net)
    if algorithm is Algorithm.NVLS_TREE:
        return base + step + 2 * log_nodes * net
    if algorithm is Algorithm.NVLS:
        return base + step + (net if group.nodes > 1 else 0.0)
    return base + _ring_us(collective, protocol, group, fabric, net)


def plateau(
    collective: Collective,
    algorithm: Algorithm,
    protocol: Protocol,
    group: Group,
    fabric: Fabric,
    size_bytes: float,
) -> float:
    """What the latency is multiplied by: above 1 for a ring over nodes once pieces are large."""
    if (
        (collective, algorithm, protocol)
        != (Collective.ALL_REDUCE, Algorithm.RING, Protocol.SIMPLE)
        or group.nodes == 1
        or size_bytes < PLATEAU_BYTES * fabric.channels * group.gpus
    ):
        return 1.0
    return PLATEAU_BEFORE_AMPERE if fabric.architecture is Architecture.VOLTA else PLATEAU


def _ring_us(
    collective: Collective, protocol: Protocol, group: Group, fabric: Fabric, net: float
) -> float:
    """All steps of a ring; where it crosses nodes, none is shorter than posting a message."""
    step = STEP_US[fabric.hardware][Algorithm.RING][protocol]
    steps = ring_steps(collective, group.gpus)
    if group.nodes == 1:
        return steps * step
    between = ring_steps(collective, group.nodes)
    return (steps - between) * max(step, _post_us(protocol, fabric)) + between * net


def _one_way_us(protocol: Protocol, group: Group, fabric: Fabric) -> float:
    """A chain through all GPUs; NCCL takes a tree's step for a chunk of the Simple protocol.

    Counted as if rings differ from channel to channel; where they are all alike, NCCL counts one
    step only.
    """
    hardware = fabric.hardware if group.nodes == 1 else Hardware.NET
    by = Algorithm.TREE if protocol is Protocol.SIMPLE else Algorithm.RING
    return BASE_US[Algorithm.RING][protocol] + group.gpus * STEP_US[hardware][by][protocol]


def _direct_us(protocol: Protocol, group: Group, fabric: Fabric) -> float:
    """A step for each peer in the node; of the others, one step and the posting of all the rest.

    Ours, since NCCL has no model of it: GPUs serve near peers one after another, while messages
    that are posted one after another travel together.
    """
    near = group.peers_in_node
    far = group.gpus - 1 - near
    latency = BASE_US[Algorithm.RING][protocol]
    latency += near * STEP_US[fabric.hardware][Algorithm.RING][protocol]
    if far:
        latency += _net_step_us(Algorithm.RING, protocol, group, fabric)
        latency += (far - 1) * _post_us(protocol, fabric)
    return latency


def _net_step_us(algorithm: Algorithm, protocol: Protocol, group: Group, fabric: Fabric) -> float:
    """One step between nodes; Simple crosses the network twice, the second time to flush."""
    alone = group.gpus == group.nodes
    by = Algorithm.TREE if alone and algorithm is Algorithm.RING else algorithm
    crossings = 2 if protocol is Protocol.SIMPLE else 1
    step = STEP_US[Hardware.NET].get(by, {}).get(protocol, 0.0)
    return step + crossings * fabric.network_latency * 1e6


def _post_us(protocol: Protocol, fabric: Fabric) -> float:
    post = NET_OVERHEAD_ELSE_US if fabric.cpu is None else NET_OVERHEAD_US[fabric.cpu]
    return post * SIMPLE_POSTS if protocol is Protocol.SIMPLE else post
