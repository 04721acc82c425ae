"""Which algorithm and protocol take the least time, and why: NCCL's choice by its own model."""

from collections.abc import Iterator
from dataclasses import dataclass

from seedance_obs.collectives.collective import Collective, Group, checked_size
from seedance_obs.collectives.fabric import Fabric
from seedance_obs.collectives.latency import latency_us, plateau
from seedance_obs.collectives.plan_bandwidth import algorithm_gbps
from seedance_obs.collectives.tuning import NVLS_EFFICIENCY, Algorithm, Hardware, Protocol

WITH_NVLS = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
NOT_PLANNED = (Collective.GATHER, Collective.SCATTER, Collective.SEND_RECV)


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to do an operation, and its time: latency plus what passing the bytes takes."""

    algorithm: Algorithm
    protocol: Protocol
    latency_seconds: float
    transfer_seconds: float

    @property
    def seconds(self) -> float:
        """Both parts together."""
        return self.latency_seconds + self.transfer_seconds

    @property
    def name(self) -> str:
        """As a person would say it: `ring with ll128`."""
        return f"{self.algorithm} with {self.protocol}"


@dataclass(frozen=True, slots=True)
class Fastest:
    """The fastest plan, and the others from fast to slow."""

    plan: Plan
    others: tuple[Plan, ...]

    @property
    def why(self) -> str:
        """One sentence: what the time is made of, and what the next best would take."""
        plan = self.plan
        parts = f"{plan.latency_seconds * 1e6:.1f} us latency and {_transfer(plan)} transfer"
        if not self.others:
            return f"{plan.name}, {parts}; there is no other way"
        other = self.others[0]
        return f"{plan.name}, {parts}; next {other.name}, {other.seconds * 1e6:.1f} us in all"


def plan(
    collective: Collective,
    algorithm: Algorithm,
    protocol: Protocol,
    *,
    size_bytes: float,
    group: Group,
    fabric: Fabric,
) -> Plan | None:
    """The time of one way to do it; None where a bandwidth that it needs is unknown.

    Raises:
        KeyError: the algorithm has no such protocol, or does not run on such hardware.
        ValueError: the size is negative, infinite or no number.
    """
    checked_size(size_bytes)
    gbps = algorithm_gbps(collective, algorithm, protocol, group, fabric, size_bytes)
    if gbps is None:
        return None
    latency = latency_us(collective, algorithm, protocol, group, fabric)
    latency *= plateau(collective, algorithm, protocol, group, fabric, size_bytes)
    return Plan(algorithm, protocol, latency / 1e6, size_bytes / (gbps * 1e9))


def best(
    collective: Collective, *, size_bytes: float, group: Group, fabric: Fabric
) -> Fastest | None:
    """The plan that takes the least time, beside all others that NCCL would consider.

    None where no time is known: a bandwidth is unknown, or the operation is one that NCCL has no
    model of (gather, scatter, send and receive).

    Raises:
        ValueError: the size is negative, infinite or no number.
    """
    checked_size(size_bytes)
    found = [
        plan(collective, algorithm, protocol, size_bytes=size_bytes, group=group, fabric=fabric)
        for algorithm, protocol in candidates(collective, group, fabric)
    ]
    plans = sorted((each for each in found if each is not None), key=lambda each: each.seconds)
    return Fastest(plans[0], tuple(plans[1:])) if plans else None


def candidates(
    collective: Collective, group: Group, fabric: Fabric
) -> Iterator[tuple[Algorithm, Protocol]]:
    """What NCCL chooses from: LL128 over NVLink only, NVLS where switches and GPUs reduce.

    All-to-alls go from every GPU to every other, with LL or Simple.
    """
    if collective in NOT_PLANNED:
        return
    if collective is Collective.ALL_TO_ALL:
        yield Algorithm.DIRECT, Protocol.LL
        yield Algorithm.DIRECT, Protocol.SIMPLE
        return
    trees = [Algorithm.TREE] if collective is Collective.ALL_REDUCE else []
    for algorithm in (Algorithm.RING, *trees):
        for protocol in Protocol:
            if protocol is not Protocol.LL128 or fabric.hardware is Hardware.NVLINK:
                yield algorithm, protocol
    if _has_nvls(group, fabric):
        if group.nodes == 1 and collective in WITH_NVLS:
            yield Algorithm.NVLS, Protocol.SIMPLE
        if group.nodes > 1 and collective is Collective.ALL_REDUCE:
            yield Algorithm.NVLS_TREE, Protocol.SIMPLE


def _has_nvls(group: Group, fabric: Fabric) -> bool:
    return (
        fabric.nvls
        and fabric.hardware is Hardware.NVLINK
        and fabric.architecture in NVLS_EFFICIENCY
        and group.peers_in_node > 0
    )


def _transfer(plan: Plan) -> str:
    return f"{plan.transfer_seconds * 1e6:.1f} us"
