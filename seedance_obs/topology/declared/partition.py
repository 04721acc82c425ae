"""How the targets of a node with too many edges fall into parts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

from seedance_obs.topology.declared.findings import shown
from seedance_obs.topology.declared.graph import DeclaredGraph

MOST_EDGES = 512
PARTS_SHOWN = 4
SMALLEST_MEAN_PART = 8


def suggest_partition(graph: DeclaredGraph, targets: Sequence[int]) -> str:
    """Parts of at most `MOST_EDGES` edges each, in words, with their sizes.

    `targets` are where the edges lead, each as often as it is. By what leaves the fewest parts
    among: the namespace, a label that all of them have, the name up to its last `-`. Where none of
    these parts them into groups worth a node: evenly, in order of their names.
    """
    found = [(how, Counter(parts)) for how, parts in _groupings(graph, targets)]
    fitting = [
        (how, sizes)
        for how, sizes in found
        if max(sizes.values()) <= MOST_EDGES and len(sizes) * SMALLEST_MEAN_PART <= len(targets)
    ]
    evenly = "name", _evenly(sorted(graph.names[target] for target in targets))
    how, sizes = min(fitting, key=lambda one: len(one[1]), default=evenly)
    listed = [f"{shown(part)} ({size})" for part, size in sorted(sizes.items())[:PARTS_SHOWN]]
    more = [f"{len(sizes) - PARTS_SHOWN} more"] if len(sizes) > PARTS_SHOWN else []
    return f"{len(sizes)} parts by {how}: {', '.join(listed + more)}"


def _groupings(graph: DeclaredGraph, targets: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
    """Ways to part the targets: what each is called, and the part of each target."""
    yield "namespace", [graph.namespace(target) for target in targets]
    labels = [graph.labels.get(target, {}) for target in targets]
    shared = set(labels[0]).intersection(*labels[1:])
    for key in sorted(shared):
        yield f"label {key}", [of_target[key] for of_target in labels]
    yield "name", [f"{graph.names[target].rpartition('-')[0]}-*" for target in targets]


def _evenly(names: Sequence[str]) -> Counter[str]:
    count = ceil(len(names) / MOST_EDGES)
    bounds = [len(names) * part // count for part in range(count + 1)]
    return Counter(
        {f"{names[low]} to {names[high - 1]}": high - low for low, high in pairwise(bounds)}
    )
