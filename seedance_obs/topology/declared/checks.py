"""What can be wrong with a whole graph, each in time linear in its nodes and edges."""

from collections.abc import Iterator, Sequence

from seedance_obs.topology.declared.cycles import Cycle, find_cycles
from seedance_obs.topology.declared.findings import Findings, Place, shown
from seedance_obs.topology.declared.graph import AFFINITY, ANTI_AFFINITY, EDGE_TYPES, DeclaredGraph
from seedance_obs.topology.declared.partition import MOST_EDGES, suggest_partition

LONGEST_CHAIN = 8
MOST_NAMES = 100


def check_graph(graph: DeclaredGraph, findings: Findings) -> None:
    """Look for edges to nothing, contradictions, nodes with too many edges, and cycles."""
    _check_targets(graph, findings)
    _check_contradictions(graph, findings)
    _check_out_degrees(graph, findings)
    ordered = [edge for edge, kind in enumerate(graph.type) if kind != ANTI_AFFINITY]
    for cycle in find_cycles(
        len(graph.names), graph.source, graph.target, ordered, graph.namespace
    ):
        if cycle.crossing:
            _report_hidden(graph, findings, cycle)
        else:
            _report_cycle(graph, findings, cycle)


def _check_targets(graph: DeclaredGraph, findings: Findings) -> None:
    nothing = {node for node in range(len(graph.names)) if not graph.declared(node)}
    if not nothing:
        return
    elsewhere = _declared_by_bare_name(graph)
    for edge in (edge for edge, target in enumerate(graph.target) if target in nothing):
        name = graph.names[graph.target[edge]]
        meant = elsewhere.get(name.partition("/")[2])
        findings.add(
            "dangling-edge",
            graph.edge_place(edge),
            f"{_arrow(graph, edge)} leads to nothing: {shown(name)} is not declared"
            + (f", but {shown(meant)} is" if meant else ""),
            names=_ends(graph, edge),
        )


def _declared_by_bare_name(graph: DeclaredGraph) -> dict[str, str]:
    found: dict[str, str] = {}
    for node, name in enumerate(graph.names):
        if graph.declared(node):
            found.setdefault(name.partition("/")[2], name)
    return found


def _check_contradictions(graph: DeclaredGraph, findings: Findings) -> None:
    apart: dict[tuple[int, int], int] = {}
    for edge in _edges_of(graph, ANTI_AFFINITY):
        ends = graph.source[edge], graph.target[edge]
        apart.setdefault((min(ends), max(ends)), edge)
    if not apart:
        return
    for edge in _edges_of(graph, AFFINITY):
        ends = graph.source[edge], graph.target[edge]
        other = apart.get((min(ends), max(ends)))
        if other is not None:
            first, last = sorted((edge, other))
            findings.add(
                "contradiction",
                graph.edge_place(last),
                f"{_arrow(graph, last)} contradicts {_arrow(graph, first)} "
                f"at {_at(graph.edge_place(first))}",
                names=_ends(graph, last),
                related=(graph.edge_place(first),),
            )


def _edges_of(graph: DeclaredGraph, edge_type: int) -> Iterator[int]:
    return (edge for edge, found in enumerate(graph.type) if found == edge_type)


def _check_out_degrees(graph: DeclaredGraph, findings: Findings) -> None:
    degree = [0] * len(graph.names)
    for source in graph.source:
        degree[source] += 1
    targets: dict[int, list[int]] = {n: [] for n, d in enumerate(degree) if d > MOST_EDGES}
    if not targets:
        return
    for source, target in zip(graph.source, graph.target, strict=True):
        if source in targets:
            targets[source].append(target)
    for node, reached in targets.items():
        name = shown(graph.names[node])
        findings.add(
            "out-degree",
            graph.node_place(node),
            f"{name} has {degree[node]} edges, more than {MOST_EDGES}; give each part a node of "
            f"its own, for example {suggest_partition(graph, reached)}",
            names=(name,),
        )


def _report_cycle(graph: DeclaredGraph, findings: Findings, cycle: Cycle) -> None:
    *before, last = cycle.edges
    findings.add(
        "cycle",
        graph.edge_place(last),
        f"{_arrow(graph, last)} closes a cycle: {_chain(graph, cycle.edges)}{_tangle(cycle)}",
        names=_names(graph, cycle.edges)[:MOST_NAMES],
        related=tuple(graph.edge_place(edge) for edge in before[:LONGEST_CHAIN]),
    )


def _report_hidden(graph: DeclaredGraph, findings: Findings, cycle: Cycle) -> None:
    """Name the first and the last edge of the cycle that lead from one namespace to another."""
    across = sorted(edge for edge in cycle.edges if _crosses(graph, edge))
    first, last = across[0], across[-1]
    cut = cycle.edges.index(last) + 1
    edges = (*cycle.edges[cut:], *cycle.edges[:cut])
    there, back = (graph.namespace(end) for end in (graph.source[last], graph.target[last]))
    findings.add(
        "hidden-reverse-edge",
        graph.edge_place(last),
        f"hidden reverse edge: {_arrow(graph, last)} leads from namespace {shown(there)} back to "
        f"{shown(back)}, against {_arrow(graph, first)} at {_at(graph.edge_place(first))}; the "
        f"cycle: {_chain(graph, edges)}{_tangle(cycle)}",
        names=_names(graph, edges)[:MOST_NAMES],
        related=(graph.edge_place(first),),
    )


def _crosses(graph: DeclaredGraph, edge: int) -> bool:
    return graph.namespace(graph.source[edge]) != graph.namespace(graph.target[edge])


def _names(graph: DeclaredGraph, edges: Sequence[int]) -> tuple[str, ...]:
    return tuple(shown(graph.names[graph.target[edge]]) for edge in edges)


def _chain(graph: DeclaredGraph, edges: Sequence[int]) -> str:
    names = [shown(graph.names[graph.source[edges[0]]]), *_names(graph, edges)]
    if len(names) > LONGEST_CHAIN + 1:
        half = LONGEST_CHAIN // 2
        left_out = f"({len(names) - 2 * half} more)"
        names = [*names[:half], left_out, *names[-half:]]
    return " -> ".join(names)


def _tangle(cycle: Cycle) -> str:
    if cycle.component_size == len(cycle.edges):
        return ""
    return f"; {cycle.component_size} nodes lead back to each other here, so others may remain"


def _arrow(graph: DeclaredGraph, edge: int) -> str:
    return f"{' -> '.join(_ends(graph, edge))} ({EDGE_TYPES[graph.type[edge]]})"


def _ends(graph: DeclaredGraph, edge: int) -> tuple[str, str]:
    ends = graph.source[edge], graph.target[edge]
    return shown(graph.names[ends[0]]), shown(graph.names[ends[1]])


def _at(place: Place) -> str:
    return f"{place[0]}:{place[1]}"
