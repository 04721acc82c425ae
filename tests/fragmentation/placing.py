"""Two of the policies that FGD's authors compare with, on their cluster and their pods.

All pods arrive once in random order, then again by lot until 130 % of the GPUs are asked for;
none leaves. A pod that fits nowhere is dropped.
"""

import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import floor

from seedance_obs.fragmentation.request import WHOLE_GPU, FreeNode, Request

# The largest node, by whose size best fit weighs CPU and GPU.
MOST_CPU_MILLI, MOST_GPU_MILLI = 128_000, 8_000


@dataclass(frozen=True, slots=True)
class Pod:
    request: Request
    memory_mib: int

    @property
    def gpu_milli(self) -> int:
        return self.request.gpus * self.request.gpu_milli


@dataclass(slots=True)
class Node:
    gpu_milli: list[int]
    cpu_milli: int
    memory_mib: int
    model: str

    def fits(self, pod: Pod) -> bool:
        asked = pod.request
        if self.cpu_milli < asked.cpu_milli or self.memory_mib < pod.memory_mib:
            return False
        if asked.gpus == 1:
            return max(self.gpu_milli) >= asked.gpu_milli
        return sum(free >= asked.gpu_milli for free in self.gpu_milli) >= asked.gpus

    def place(self, pod: Pod, choose: Callable[[list[int]], int]) -> None:
        """Hand out whole GPUs from the first on, a part of one as `choose` says."""
        asked = pod.request
        self.cpu_milli -= asked.cpu_milli
        self.memory_mib -= pod.memory_mib
        for _ in range(asked.gpus):
            large = [i for i, free in enumerate(self.gpu_milli) if free >= asked.gpu_milli]
            gpu = large[0] if asked.gpu_milli == WHOLE_GPU else choose(large)
            self.gpu_milli[gpu] -= asked.gpu_milli

    @property
    def size(self) -> float:
        """What is free, as best fit weighs it."""
        return 50 * self.cpu_milli / MOST_CPU_MILLI + 50 * sum(self.gpu_milli) / MOST_GPU_MILLI

    def free(self) -> FreeNode:
        return FreeNode(tuple(self.gpu_milli), self.cpu_milli, self.model)


def arrivals(pods: Sequence[Pod], lot: random.Random, gpu_milli: float) -> Iterator[Pod]:
    """Pods until they ask for so much."""
    order = lot.sample(pods, len(pods))
    asked = 0
    while asked < gpu_milli:
        pod = order.pop() if order else lot.choice(pods)
        asked += pod.gpu_milli
        yield pod


class AtRandom:
    """A node by lot, and a GPU of it by lot."""

    def __init__(self, nodes: list[Node], lot: random.Random) -> None:
        self.nodes, self.lot = nodes, lot

    def place(self, pod: Pod) -> None:
        for _ in range(len(self.nodes)):
            node = self.nodes[int(self.lot.random() * len(self.nodes))]
            if node.fits(pod):
                break
        else:
            fitting = [node for node in self.nodes if node.fits(pod)]
            if not fitting:
                return
            node = self.lot.choice(fitting)
        node.place(pod, self.lot.choice)


class BestFit:
    """The node of which least is left, in steps of a hundredth, and the GPU of which least is."""

    def __init__(self, nodes: list[Node], lot: random.Random) -> None:
        self.nodes, self.lot = nodes, lot
        self.by_size = sorted((node.size, i) for i, node in enumerate(nodes))

    def place(self, pod: Pod) -> None:
        request = pod.request.cpu_milli / MOST_CPU_MILLI + pod.gpu_milli / MOST_GPU_MILLI
        best: list[tuple[float, int]] = []
        least = 0
        for sized in self.by_size:
            score = floor(100 + 50 * request - sized[0])
            if best and score < least:
                break
            if self.nodes[sized[1]].fits(pod):
                best.append(sized)
                least = score
        if best:
            self._place(pod, self.lot.choice(best))

    def _place(self, pod: Pod, sized: tuple[float, int]) -> None:
        node = self.nodes[sized[1]]
        del self.by_size[bisect_left(self.by_size, sized)]
        node.place(pod, lambda large: min(large, key=node.gpu_milli.__getitem__))
        insort(self.by_size, (node.size, sized[1]))


def states(
    policy: AtRandom | BestFit, pods: Sequence[Pod], loads: Sequence[float]
) -> Iterator[list[FreeNode]]:
    """What is free when so many per cent of all GPUs have been asked for."""
    total = WHOLE_GPU * sum(len(node.gpu_milli) for node in policy.nodes)
    wanted = [load / 100 * total for load in loads]
    asked = 0
    for pod in arrivals(pods, policy.lot, wanted[-1]):
        asked += pod.gpu_milli
        policy.place(pod)
        if asked >= wanted[0]:
            wanted.pop(0)
            yield [node.free() for node in policy.nodes]
