"""Cycles of a directed graph in O(V + E), over integers and without recursion."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle of a strongly connected component of `component_size` nodes.

    `edges` follow each other and end with the one declared last, which closes the cycle. It is a
    shortest cycle through the component's first edge; `crossing` says that this first edge leads
    from one namespace to another.
    """

    edges: tuple[int, ...]
    component_size: int
    crossing: bool


class _Successors:
    """The edges out of every node, in order, in two flat lists."""

    def __init__(
        self, nodes: int, source: Sequence[int], target: Sequence[int], edges: Sequence[int]
    ) -> None:
        self.nodes, self.source, self.target, self.edges = nodes, source, target, edges
        degree = [0] * (nodes + 1)
        for edge in edges:
            degree[source[edge] + 1] += 1
        self.start = list(accumulate(degree))
        free = self.start[:]
        self._out = [0] * len(edges)
        for edge in edges:
            node = source[edge]
            self._out[free[node]] = edge
            free[node] += 1

    def of(self, node: int) -> list[int]:
        """The edges out of a node."""
        return self._out[self.start[node] : self.start[node + 1]]


def find_cycles(
    nodes: int,
    source: Sequence[int],
    target: Sequence[int],
    edges: Sequence[int],
    namespace: Callable[[int], str],
) -> list[Cycle]:
    """One cycle of each tangle among `edges`, by their first edges; none says that it is a DAG.

    Tangles are looked for within the namespaces first, and then in the whole: a component of the
    whole with nodes of several namespaces gives a cycle that no namespace shows alone.
    """
    whole = _Successors(nodes, source, target, edges)
    left = _left_by_kahn(whole)
    if not any(left):
        return []
    core = [edge for edge in edges if left[source[edge]] and left[target[edge]]]
    spaces = {node: namespace(node) for node in range(nodes) if left[node]}
    within = [edge for edge in core if spaces[source[edge]] == spaces[target[edge]]]
    crossing = [edge for edge in core if spaces[source[edge]] != spaces[target[edge]]]
    found = _cycles(_Successors(nodes, source, target, within), within, crossing=False)
    if crossing:
        found += _cycles(_Successors(nodes, source, target, core), crossing, crossing=True)
    return sorted(found, key=lambda cycle: min(cycle.edges))


def _left_by_kahn(graph: _Successors) -> list[int]:
    """How many edges still lead into each node when no node without any can be taken away."""
    target = graph.target
    into = [0] * graph.nodes
    for edge in graph.edges:
        into[target[edge]] += 1
    ready = [node for node, count in enumerate(into) if not count]
    while ready:
        for edge in graph.of(ready.pop()):
            node = target[edge]
            into[node] -= 1
            if not into[node]:
                ready.append(node)
    return into


def _cycles(graph: _Successors, through: Iterable[int], *, crossing: bool) -> list[Cycle]:
    """A cycle through the first of the edges `through` in every component that has one."""
    components = _Components(graph)
    component = components.of
    found = []
    done = set()
    for edge in through:
        source, target = graph.source[edge], graph.target[edge]
        number = component[source]
        if number == component[target] and number not in done:
            done.add(number)
            way = [edge, *_shortest_path(graph, component, target, source)]
            cut = way.index(max(way)) + 1
            found.append(Cycle((*way[cut:], *way[:cut]), components.sizes[number], crossing))
    return found


class _Components:
    """Strongly connected components by Tarjan's algorithm, over a path instead of recursion.

    `of` is the number of each node's component, UNSEEN where no edge touches the node; `sizes`
    are the components' numbers of nodes.
    """

    def __init__(self, graph: _Successors) -> None:
        self.of = [UNSEEN] * graph.nodes
        self.sizes: list[int] = []
        self._graph = graph
        self._order = [0] * graph.nodes  # from 1; 0 is not seen yet
        self._low = [0] * graph.nodes
        self._seen = 0
        self._open: list[int] = []
        self._path: list[tuple[int, Iterator[int]]] = []
        for edge in graph.edges:
            if not self._order[graph.source[edge]]:
                self._explore(graph.source[edge])

    def _explore(self, root: int) -> None:
        self._enter(root)
        while self._path:
            node, rest = self._path[-1]
            fresh = self._next_unseen(node, rest)
            if fresh is None:
                self._leave()
            else:
                self._enter(fresh)

    def _enter(self, node: int) -> None:
        self._seen += 1
        self._order[node] = self._low[node] = self._seen
        self._open.append(node)
        self._path.append((node, iter(self._graph.of(node))))

    def _next_unseen(self, node: int, rest: Iterator[int]) -> int | None:
        for edge in rest:
            successor = self._graph.target[edge]
            if not self._order[successor]:
                return successor
            if self.of[successor] == UNSEEN:
                self._low[node] = min(self._low[node], self._order[successor])
        return None

    def _leave(self) -> None:
        node, _ = self._path.pop()
        if self._path:
            above = self._path[-1][0]
            self._low[above] = min(self._low[above], self._low[node])
        if self._low[node] == self._order[node]:
            self._number(node)

    def _number(self, root: int) -> None:
        before = len(self._open)
        while self.of[root] == UNSEEN:
            self.of[self._open.pop()] = len(self.sizes)
        self.sizes.append(before - len(self._open))


def _shortest_path(
    graph: _Successors, component: Sequence[int], source: int, target: int
) -> list[int]:
    """The edges of a shortest way between two nodes of a component, none if they are one."""
    arrived: dict[int, int] = {}
    ready = deque([source])
    while target not in arrived:
        for edge in graph.of(ready.popleft()):
            node = graph.target[edge]
            if component[node] == component[source] and node not in arrived:
                arrived[node] = edge
                ready.append(node)
    way = []
    node = target
    while node != source:
        way.append(arrived[node])
        node = graph.source[arrived[node]]
    return way[::-1]
