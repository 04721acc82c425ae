"""Fragmentation as FGD defines it (Weng et al., ATC'23), and what it comes from.

On a node n with R thousandths of GPUs free, a request m leaves the fragment

    F_n(m) = R                     where m cannot run: it asks for no GPU, or for another model,
                                   or too few GPUs have enough free, or too little CPU is
             sum of f where f < s  else: of the free f of each GPU, those below the share s it
                                   wants of each

The fragment of a node is the mean over the mix, F_n = sum of p_m F_n(m), and nodes add up. Beware
that to a request for no GPU *everything* free is a fragment: where 13 % of the requests are such,
an empty cluster has a rate of 13 % at least. So what each cause contributes is told apart, and
`stranded_rate` is of those for GPUs alone.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from seedance_obs.fragmentation.mix import Mix
from seedance_obs.fragmentation.request import FreeNode


class Cause(Enum):
    """Why what is free is a fragment; the authors' names are in brackets."""

    NO_GPU_WANTED = "no_gpu_wanted"  # [xl_satisfied, xr_lack_cpu]
    OTHER_MODEL = "other_model"  # [no_access]
    GPU_AND_CPU = "gpu_and_cpu"  # neither would do [q1_lack_both]
    GPU = "gpu"  # too few GPUs with enough free [q2_lack_gpu, which has the remainders too]
    CPU = "cpu"  # the GPUs would do [q4_lack_cpu]
    REMAINDER = "remainder"  # it runs, beside GPUs that have less free than it wants


Causes = tuple[float, ...]  # thousandths of GPUs by cause, in the order of Cause
NOTHING: Causes = (0.0,) * len(Cause)
_GPU_AND_CPU, _GPU = (list(Cause).index(cause) for cause in (Cause.GPU_AND_CPU, Cause.GPU))


@dataclass(frozen=True, slots=True)
class _Alike:
    """The requests of a mix that differ in the CPU they want alone.

    Attributes:
        cpu_milli: What they want, ascending.
        weights_beyond: By how many of those a node can meet: the weight of the others.
    """

    gpus: int
    gpu_milli: int
    models: frozenset[str]
    cpu_milli: tuple[int, ...]
    weights_beyond: tuple[float, ...]

    def lacking_cpu(self, cpu_milli: int | None) -> float:
        """The weight of those that want more CPU than is free."""
        met = len(self.cpu_milli) if cpu_milli is None else bisect_right(self.cpu_milli, cpu_milli)
        return self.weights_beyond[met]


def fragment_milli(node: FreeNode, mix: Mix) -> float:
    """The fragment of a node: expected thousandths of GPUs that are free and of no use.

    Args:
        node: What is free there.
        mix: What is asked for.

    Returns:
        Between 0 and all that is free; 0 on a full node.

    Raises:
        ValueError: the mix is empty, so that nothing can be said.
    """
    return sum(fragments_by_cause([node], mix)[0])


def rate(nodes: Iterable[FreeNode], mix: Mix) -> float | None:
    """The share of all that is free on some nodes which is a fragment: sum of F_n / sum of R_n.

    Returns:
        The share, in [0, 1]; None where nothing is free.

    Raises:
        ValueError: the mix is empty.
    """
    several = list(nodes)
    total = sum(sum(node.gpu_milli) for node in several)
    found = fragments_by_cause(several, mix)
    return sum(map(sum, found)) / total if total else None


def stranded_rate(nodes: Iterable[FreeNode], mix: Mix) -> float | None:
    """The share of all that is free which lies on nodes with too few GPUs for a request.

    The mean, over the requests for GPUs alone, of the free on nodes where fewer GPUs than it asks
    for have as much free as it wants of each: [q1_lack_both + q2_lack_gpu] without remainders. It
    is where moving placements helps; unlike FGD's rate it knows nothing of CPUs, nor of requests
    for no GPU, which no move of GPUs helps, and nodes of a model that will not do are left out.
    Requests for many GPUs are rare: ask of a mix that keeps all of them.

    Returns:
        The share, in [0, 1]; None where nothing is free, or nothing asks for a GPU.

    Raises:
        ValueError: the mix is empty.
    """
    several = list(nodes)
    total = sum(sum(node.gpu_milli) for node in several)
    stranded = [stranded_milli(causes, mix) for causes in fragments_by_cause(several, mix)]
    known = [milli for milli in stranded if milli is not None]
    return sum(known) / total if total and known else None


def stranded_milli(causes: Causes, mix: Mix) -> float | None:
    """What of a node is stranded, of what is a fragment there by cause; nodes add up.

    Returns:
        Expected thousandths of GPUs; None where nothing asks for a GPU.
    """
    asking = sum(weight for request, weight in mix if request.gpus)
    lacking = causes[_GPU_AND_CPU] + causes[_GPU]
    return lacking / asking if asking else None


def fragments_by_cause(nodes: Sequence[FreeNode], mix: Mix) -> list[Causes]:
    """What of each node is a fragment, by cause; the sum of it is the node's fragment.

    Args:
        nodes: What is free on each.
        mix: What is asked for.

    Returns:
        For each node, expected thousandths of GPUs in the order of `Cause`.

    Raises:
        ValueError: the mix is empty.
    """
    if not mix:
        raise ValueError("nothing is asked for, so nothing is a fragment of it")
    groups = _grouped(mix)
    known: dict[FreeNode, Causes] = {}
    found = []
    for node in nodes:
        causes = known.get(node)
        if causes is None:
            causes = known[node] = _causes(node, groups)
        found.append(causes)
    return found


def _grouped(mix: Mix) -> list[_Alike]:
    by_gpus: dict[tuple[int, int, frozenset[str]], list[tuple[int, float]]] = {}
    for request, weight in mix:
        wanted = request.gpu_milli if request.gpus else 0
        key = (request.gpus, wanted, request.models)
        by_gpus.setdefault(key, []).append((request.cpu_milli, weight))
    return [_alike(*key, sorted(cpus)) for key, cpus in by_gpus.items()]


def _alike(
    gpus: int, gpu_milli: int, models: frozenset[str], cpus: list[tuple[int, float]]
) -> _Alike:
    beyond = list(accumulate((weight for _, weight in reversed(cpus)), initial=0.0))
    return _Alike(gpus, gpu_milli, models, tuple(cpu for cpu, _ in cpus), tuple(reversed(beyond)))


def _causes(node: FreeNode, groups: list[_Alike]) -> Causes:
    free = sorted(node.gpu_milli)
    below = list(accumulate(free, initial=0))  # by how many GPUs are too small: what they have
    total = below[-1]
    if not total:
        return NOTHING
    no_gpu = model = both = gpu = cpu = remainder = 0.0
    for wanted in groups:
        whole = wanted.weights_beyond[0]
        if not wanted.gpus:
            no_gpu += whole
            continue
        if wanted.models and node.model and node.model not in wanted.models:
            model += whole
            continue
        lacking = wanted.lacking_cpu(node.cpu_milli)
        too_small = bisect_right(free, wanted.gpu_milli - 1)
        if len(free) - too_small < wanted.gpus:
            both += lacking
            gpu += whole - lacking
        else:
            cpu += lacking
            remainder += (whole - lacking) * below[too_small]
    return (no_gpu * total, model * total, both * total, gpu * total, cpu * total, remainder)
