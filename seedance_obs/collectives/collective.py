"""The collective operations, who takes part in one, and the two bandwidths that nccl-tests state.

Sizes are the S of nccl-tests (doc/PERFORMANCE.md): of an all-gather, a reduce-scatter, a gather or
a scatter the whole array of all GPUs together; of an all-to-all what one GPU holds for all of them,
its own part included; else what one GPU sends or receives.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Collective(StrEnum):
    """What is asked of a group of GPUs, by the name that nccl-tests' programs have."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALL_TO_ALL = "alltoall"
    GATHER = "gather"
    SCATTER = "scatter"
    SEND_RECV = "sendrecv"


BUS_FACTOR_ONE = (Collective.BROADCAST, Collective.REDUCE, Collective.SEND_RECV)


@dataclass(frozen=True, slots=True)
class Group:
    """The GPUs that take part, spread evenly over nodes.

    A node is what shares one NVLink domain or one host: in a rack of one NVLink domain, the rack.

    Raises:
        ValueError: fewer than two GPUs, no node, or nodes without a GPU.
    """

    gpus: int
    nodes: int = 1

    def __post_init__(self) -> None:
        if self.gpus < 2:
            raise ValueError(f"a collective needs 2 GPUs or more, not {self.gpus}")
        if not 1 <= self.nodes <= self.gpus:
            raise ValueError(f"{self.gpus} GPUs cannot be spread over {self.nodes} nodes")

    @property
    def gpus_per_node(self) -> float:
        """The mean, which need not be whole."""
        return self.gpus / self.nodes

    @property
    def peers_in_node(self) -> int:
        """The other GPUs of a GPU's own node, rounded down as NCCL does."""
        return self.gpus // self.nodes - 1


def bus_factor(collective: Collective, gpus: int) -> float:
    """What algorithm bandwidth is multiplied by to tell what each GPU's link carried.

    0 for a single GPU where each sends to the others, as nccl-tests print it.

    Raises:
        ValueError: no GPU.
    """
    if gpus < 1:
        raise ValueError(f"a collective needs a GPU, not {gpus}")
    if collective in BUS_FACTOR_ONE:
        return 1.0
    share = (gpus - 1) / gpus
    return 2 * share if collective is Collective.ALL_REDUCE else share


def checked_size(size_bytes: float) -> float:
    """The size.

    Raises:
        ValueError: it is negative, infinite or no number.
    """
    if not 0 <= size_bytes < inf:
        raise ValueError(f"a size of 0 bytes or more is wanted, not {size_bytes}")
    return size_bytes


def algorithm_bandwidth(size_bytes: float, seconds: float) -> float:
    """`algbw`: the size over the time, in bytes per second.

    Raises:
        ValueError: the size is none, or the time is not positive.
    """
    if not 0 < seconds < inf:
        raise ValueError(f"a time above 0 s is wanted, not {seconds}")
    return checked_size(size_bytes) / seconds


def bus_bandwidth(collective: Collective, size_bytes: float, seconds: float, *, gpus: int) -> float:
    """`busbw`, in bytes per second: comparable to what a link carries, whatever the group's size.

    Where a switch reduces on the way (NVLS), it can exceed what a link carries.

    Raises:
        ValueError: the size is none, the time is not positive, or there is no GPU.
    """
    return algorithm_bandwidth(size_bytes, seconds) * bus_factor(collective, gpus)


def seconds_at_algorithm_bandwidth(size_bytes: float, bytes_per_second: float) -> float:
    """The time of an operation of which nccl-tests would state this `algbw`.

    Raises:
        ValueError: the size is none, or the bandwidth is not positive.
    """
    if not 0 < bytes_per_second < inf:
        raise ValueError(f"a bandwidth above 0 B/s is wanted, not {bytes_per_second}")
    return checked_size(size_bytes) / bytes_per_second


def seconds_at_bus_bandwidth(
    collective: Collective, size_bytes: float, bytes_per_second: float, *, gpus: int
) -> float:
    """The time of an operation of which nccl-tests would state this `busbw`.

    Raises:
        ValueError: the size is none, the bandwidth is not positive, or there is no GPU.
    """
    share = bus_factor(collective, gpus)
    return seconds_at_algorithm_bandwidth(size_bytes, bytes_per_second) * share
