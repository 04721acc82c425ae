"""The constants by which NCCL chooses an algorithm and a protocol, as src/graph/tuning.cc has them.

Latencies are microseconds, bandwidths GB/s, as there. Constants per channel are left out: how many
channels NCCL opens is not known from outside. So are CollNet and PAT, which need a network that
reduces, or one GPU per node.
"""

from collections.abc import Mapping
from enum import StrEnum


class Algorithm(StrEnum):
    """How data goes round. DIRECT is every GPU to every other, which NCCL has no model of."""

    RING = "ring"
    TREE = "tree"
    NVLS = "nvls"
    NVLS_TREE = "nvls_tree"
    DIRECT = "direct"


class Protocol(StrEnum):
    """How one step is sent: with a flag in every 8 or 128 bytes, or in chunks with a fence."""

    LL = "ll"
    LL128 = "ll128"
    SIMPLE = "simple"


class Hardware(StrEnum):
    """What one step crosses."""

    NVLINK = "nvlink"
    PCIE = "pcie"
    NET = "net"


class Architecture(StrEnum):
    """The generations of GPUs that NCCL's constants tell apart; later ones count as the last."""

    VOLTA = "volta"
    AMPERE = "ampere"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"


class CpuVendor(StrEnum):
    """Who made the hosts' CPUs; other vendors are the same to NCCL as Intel."""

    INTEL = "intel"
    AMD = "amd"


ByProtocol = Mapping[Protocol, float]


def _row(ll: float, ll128: float, simple: float) -> ByProtocol:
    return {Protocol.LL: ll, Protocol.LL128: ll128, Protocol.SIMPLE: simple}


def _simple(simple: float) -> ByProtocol:
    return {Protocol.SIMPLE: simple}


# baseLatencies
BASE_US: Mapping[Algorithm, ByProtocol] = {
    Algorithm.TREE: _row(6.8, 14.0, 8.4),
    Algorithm.RING: _row(6.6, 14.0, 8.4),
    Algorithm.NVLS: _simple(0.0),
    Algorithm.NVLS_TREE: _simple(0.0),
}
# hwLatencies: one step
STEP_US: Mapping[Hardware, Mapping[Algorithm, ByProtocol]] = {
    Hardware.NVLINK: {
        Algorithm.TREE: _row(0.6, 1.25, 4.0),
        Algorithm.RING: _row(0.6, 1.9, 3.4),
        Algorithm.NVLS: _simple(25.0),
        Algorithm.NVLS_TREE: _simple(25.0),
    },
    Hardware.PCIE: {
        Algorithm.TREE: _row(1.0, 1.9, 4.0),
        Algorithm.RING: _row(1.0, 2.5, 5.7),
    },
    Hardware.NET: {
        Algorithm.TREE: _row(5.0, 8.5, 14.0),
        Algorithm.RING: _row(2.7, 4.0, 14.0),
        Algorithm.NVLS: _simple(18.0),
        Algorithm.NVLS_TREE: _simple(20.9),
    },
}
# getNetOverhead: what a CPU takes to post one message; three of them with the Simple protocol
NET_OVERHEAD_US: Mapping[CpuVendor, float] = {CpuVendor.INTEL: 1.0, CpuVendor.AMD: 2.0}
NET_OVERHEAD_ELSE_US = 1.0
SIMPLE_POSTS = 3

# llMaxBws: the most that LL carries; in one node by GPU, beyond by CPU (2 nodes, more)
LL_MOST_IN_NODE_GBPS: Mapping[Architecture, float] = {
    Architecture.VOLTA: 39.0,
    Architecture.AMPERE: 87.7,
    Architecture.HOPPER: 141.0,
    Architecture.BLACKWELL: 282.0,
}
LL_MOST_OVER_NET_GBPS: Mapping[CpuVendor, tuple[float, float]] = {
    CpuVendor.INTEL: (39.0, 20.4),
    CpuVendor.AMD: (22.5, 19.0),
}

RING_SHARE: ByProtocol = _row(1 / 2, 0.92, 1.0)
TREE_SHARE = 0.92
TREE_LL_SHARE = 1 / 3.8
TREE_LL128_SHARE = (7 / 9, 120 / 128)  # in one node, over several

# nvlsEfficiency; older GPUs have no NVLS
NVLS_EFFICIENCY: Mapping[Architecture, float] = {
    Architecture.HOPPER: 0.85,
    Architecture.BLACKWELL: 0.74,
}

# ncclTopoGetAlgoTime: a ring over nodes with Simple takes so much longer from 64 bytes on that
# each channel of each GPU carries
PLATEAU = 1.4
PLATEAU_BEFORE_AMPERE = 1.9
PLATEAU_BYTES = 64

# treeCorrectionFactor: what is left of a tree's bandwidth at 64 B, 128 B, ... 1 GiB and beyond
TREE_CORRECTION_FROM_BYTES = 64
TREE_CORRECTION: Mapping[Protocol, tuple[float, ...]] = {
    Protocol.LL: (
        *(1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5),
        *(0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    ),
    Protocol.LL128: (
        *(1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6),
        *(0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0, 1.0),
    ),
    Protocol.SIMPLE: (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9, 1.0),
    ),
}
