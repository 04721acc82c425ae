"""Times the validator of declared topologies on 10^4, 10^5 and 10^6 edges.

Beside it, in the same run and on the same graph, networkx: building its graph, asking whether that
is a DAG, and `find_cycle`. The graph is a DAG, so that everybody has to look at every edge.

    python -m tests.bench.validator [--largest 1000000] [--find-cycle-up-to 100000]
"""

import argparse
import random
import time
from collections.abc import Callable

import networkx
import yaml

from seedance_obs.topology.declared.cycles import find_cycles
from seedance_obs.topology.declared.validate import validate
from tests.topology.declared_text import HEAD, document, json_lines

OUT_DEGREE = 10
TYPES = ("affinity", "latency-sla")


def dag(edges: int) -> list[list[int]]:
    """The targets of each node: `OUT_DEGREE` distinct ones among the next thousand nodes."""
    chance = random.Random(edges)
    nodes = edges // OUT_DEGREE
    return [
        [source + step for step in chance.sample(range(1, 1000), OUT_DEGREE)]
        for source in range(nodes)
    ]


def documents(targets: list[list[int]]) -> list[dict[str, object]]:
    nodes = len(targets) + 1000
    padded = targets + [[]] * 1000
    return [
        document(f"n{node}", *[(TYPES[target % 2], f"n{target}") for target in padded[node]])
        for node in range(nodes)
    ]


def as_yaml(nodes: list[dict[str, object]]) -> str:
    """As people write it: one edge a line, in braces."""
    parts = []
    for node in nodes:
        edges = "".join(
            f"    - {{{', '.join(f'{key}: {value}' for key, value in edge.items())}}}\n"
            for edge in node["spec"]["edges"]
        )
        name = node["metadata"]["name"]
        spec = f"spec:\n  edges:\n{edges}" if edges else ""
        parts.append(f"{HEAD}metadata: {{name: {name}, namespace: train}}\n{spec}")
    return "---\n".join(parts)


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def judged(text: str, edges: int) -> float:
    """Seconds from the text to a report that finds nothing."""
    begun = time.perf_counter()
    report = validate([("bench", text.encode())])
    took = time.perf_counter() - begun
    assert (report.valid, report.edges) == (True, edges), report.findings[:3]
    return took


def no_cycle_of_ours(nodes: int, pairs: list[tuple[int, int]]) -> None:
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert find_cycles(nodes, sources, targets, range(len(pairs)), str) == []


def no_cycle_of_theirs(graph: networkx.DiGraph) -> None:
    try:
        networkx.find_cycle(graph)
    except networkx.NetworkXNoCycle:
        return
    raise AssertionError("the graph is a DAG")


def measure(edges: int, *, with_yaml: bool, with_find_cycle: bool) -> dict[str, float]:
    targets = dag(edges)
    pairs = [(source, target) for source, out in enumerate(targets) for target in out]
    took = {"cycles alone": seconds(lambda: no_cycle_of_ours(len(targets) + 1000, pairs))}
    written = documents(targets)
    took["JSON Lines"] = judged(json_lines(written), edges)
    if with_yaml:
        took["YAML"] = judged(as_yaml(written), edges)
    graph = networkx.DiGraph()
    took["networkx: build"] = seconds(lambda: graph.add_edges_from(pairs))
    took["networkx: is DAG"] = seconds(lambda: networkx.is_directed_acyclic_graph(graph))
    if with_find_cycle:
        took["networkx: cycle"] = seconds(lambda: no_cycle_of_theirs(graph))
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--yaml-up-to", type=int, default=1_000_000)
    parser.add_argument("--find-cycle-up-to", type=int, default=100_000, help="slow: minutes above")
    options = parser.parse_args()
    kind = "C" if hasattr(yaml, "CSafeLoader") else "Python"
    print(f"YAML by PyYAML's {kind} parser; the ratio is to a tenth of the edges")
    before: dict[str, float] = {}
    for edges in (size for size in (10_000, 100_000, 1_000_000) if size <= options.largest):
        took = measure(
            edges,
            with_yaml=edges <= options.yaml_up_to,
            with_find_cycle=edges <= options.find_cycle_up_to,
        )
        print(f"{edges:,} edges")
        for name, value in took.items():
            ratio = f"{value / before[name]:6.1f} x" if name in before else ""
            print(f"  {name:17} {value:9.3f} s {ratio}")
        before = took


if __name__ == "__main__":
    main()
