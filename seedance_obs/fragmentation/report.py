"""All measures of a fleet at one moment, of its nodes and of what is asked for."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seedance_obs.fragmentation import measures
from seedance_obs.fragmentation.fgd import Cause, Causes, fragments_by_cause, stranded_rate
from seedance_obs.fragmentation.mix import QUARTILES, Mix
from seedance_obs.fragmentation.request import WHOLE_GPU, FreeNode, Request
from seedance_obs.fragmentation.tables import NamedNode

GANGS = (2, 4, 8)
ALL = 100


@dataclass(frozen=True, slots=True)
class NodeFragments:
    """What of one node is a fragment.

    Attributes:
        name: The node.
        free_milli: Thousandths of GPUs that are free.
        by_cause: Expected thousandths of them that are of no use, in the order of `Cause`.
    """

    name: str
    free_milli: int
    by_cause: Causes

    @property
    def fragment_milli(self) -> float:
        """Expected thousandths of GPUs that are free and of no use."""
        return sum(self.by_cause)

    @property
    def main_cause(self) -> Cause:
        """What most of it comes from."""
        return max(zip(self.by_cause, Cause, strict=True), key=lambda pair: pair[0])[1]


@dataclass(frozen=True, slots=True)
class FleetReport:
    """The measures of a fleet: shares of what is free, None where nothing is or none is known.

    Attributes:
        gpus: GPUs there are.
        free_milli: Thousandths of them that are free.
        requests: Requests the mix is made from.
        classes: Distinct requests that are in it.
        models_unknown: Nodes with free GPUs of no known model, if requests name models; such a node
            serves a request for any.
        by_cause: What each cause contributes to FGD's fragmentation rate.
        stranded: Free on nodes with too few GPUs for a request, the mean over requests for GPUs.
        demands_milli: What requests for GPUs want of one, at the quartiles.
        unusable: Free on GPUs with less free than those demands.
        external: Free elsewhere than on the freest GPU of each node.
        island: Free elsewhere than on the island of each node that has most free.
        gang: Free whole GPUs that no job of 2, 4 or 8 GPUs on a node can be given.
        nodes: What of each node is a fragment.
    """

    gpus: int
    free_milli: int
    requests: int
    classes: int
    models_unknown: int
    by_cause: dict[Cause, float]
    stranded: float | None
    demands_milli: list[int]
    unusable: float | None
    external: float | None
    island: float | None
    gang: dict[int, float | None]
    nodes: list[NodeFragments]

    @property
    def fgd(self) -> float | None:
        """FGD's fragmentation rate."""
        return sum(self.by_cause.values()) if self.free_milli else None

    def worst(self, most: int) -> list[NodeFragments]:
        """The nodes with the largest fragments, the largest first."""
        fragmented = [node for node in self.nodes if node.fragment_milli > 0]
        return sorted(fragmented, key=lambda node: -node.fragment_milli)[:most]


def fleet_report(nodes: Sequence[NamedNode], requests: Sequence[Request]) -> FleetReport:
    """Measure a fleet.

    Args:
        nodes: Its nodes, at least one.
        requests: What is asked for, at least one.
    """
    counts = Counter(requests)
    mix, whole_mix = Mix.of_counts(counts), Mix.of_counts(counts, percent_kept=ALL)
    free = [node.free for node in nodes]
    each = [gpu for node in free for gpu in node.gpu_milli]
    whole = [sum(gpu == WHOLE_GPU for gpu in node.gpu_milli) for node in free]
    causes = fragments_by_cause(free, mix)
    demands = whole_mix.demands_milli(QUARTILES)
    return FleetReport(
        gpus=len(each),
        free_milli=sum(each),
        requests=len(requests),
        classes=len(mix),
        models_unknown=_models_unknown(free, counts),
        by_cause=_shares(causes, sum(each)),
        stranded=stranded_rate(free, whole_mix),
        demands_milli=demands,
        unusable=measures.unusable(each, demands),
        external=measures.of_several(node.gpu_milli for node in free),
        island=measures.of_several(_islands(node) for node in nodes if node.islands is not None),
        gang={gpus: measures.gang(whole, gpus) for gpus in GANGS},
        nodes=[
            NodeFragments(node.name, sum(node.free.gpu_milli), found)
            for node, found in zip(nodes, causes, strict=True)
        ],
    )


def _models_unknown(nodes: Iterable[FreeNode], requests: Iterable[Request]) -> int:
    if not any(request.gpus and request.models for request in requests):
        return 0
    return sum(any(node.gpu_milli) and not node.model for node in nodes)


def _shares(causes: Iterable[Causes], total: int) -> dict[Cause, float]:
    if not total:
        return {}
    return {
        cause: sum(milli) / total
        for cause, milli in zip(Cause, zip(*causes, strict=True), strict=True)
    }


def _islands(node: NamedNode) -> list[int]:
    free: Counter[str] = Counter()
    for island, milli in zip(node.islands or (), node.free.gpu_milli, strict=True):
        free[island] += milli
    return list(free.values())
