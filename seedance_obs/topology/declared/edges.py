"""The edges of a node as its document lists them.

`affinity` and `latency-sla` say what the other end is placed by, so they carry an order and must
not run in a circle. `anti-affinity` holds both ways and carries none.
"""

from math import inf

from seedance_obs.topology.declared.findings import Findings, shown
from seedance_obs.topology.declared.graph import EDGE_TYPES, LATENCY_SLA, DeclaredGraph
from seedance_obs.topology.declared.located import Mapped, described

_NUMBERS = {name: number for number, name in enumerate(EDGE_TYPES)}
_BOUND = "maxMilliseconds"
_FIELDS = {"type", "to", _BOUND}


class EdgeReader:
    """Adds to a graph what a node's `spec.edges` lists."""

    def __init__(self, graph: DeclaredGraph, findings: Findings) -> None:
        self._graph = graph
        self._findings = findings
        self._node = 0

    def read(self, node: int, document: Mapped) -> None:
        """Add the edges of a node, whose document is `document`."""
        self._node = node
        spec = document.get("spec")
        if spec is None:
            return
        if not isinstance(spec, Mapped):
            self._add("document", document.line, f"spec: a mapping is wanted, {_found(spec)}")
            return
        edges = spec.get("edges")
        if isinstance(edges, list):
            self._read_all(edges, spec.line)
        elif edges is not None:
            self._add("document", spec.line, f"spec.edges: a list is wanted, {_found(edges)}")

    def _read_all(self, edges: list[object], line: int) -> None:
        lines: dict[tuple[int, int], int] = {}
        node = self._node
        namespace = self._graph.namespace(node)
        for edge in edges:
            if not isinstance(edge, Mapped):
                self._add("edge", line, f"an edge is a mapping with type and to, {_found(edge)}")
                continue
            target = self._target(edge, namespace)
            number = self._type(edge)
            if number is None or target is None:
                continue
            if len(edge) > 2 or number == LATENCY_SLA:
                self._check_fields(edge, number)
            if target == node:
                self._add("self-edge", edge.line, f"{EDGE_TYPES[number]} leads to the node itself")
            elif (number, target) in lines:
                self._report_repeated(number, target, edge.line, lines[number, target])
            else:
                lines[number, target] = edge.line
                self._graph.connect(node, target, number, edge.line)

    def _target(self, edge: Mapped, namespace: str) -> int | None:
        to = edge.get("to")
        if isinstance(to, str):
            before, slash, name = to.partition("/")
            if not slash and to:
                return self._graph.node(f"{namespace}/{to}")
            if before and name and "/" not in name:
                return self._graph.node(to)
        self._add("edge", edge.line, f"to: NAME or NAMESPACE/NAME is wanted, {_found(to)}")
        return None

    def _type(self, edge: Mapped) -> int | None:
        name = edge.get("type")
        number = _NUMBERS.get(name) if isinstance(name, str) else None
        if number is None:
            wanted = f"type: one of {', '.join(EDGE_TYPES)} is wanted, {_found(name)}"
            self._add("edge-type", edge.line, wanted)
        return number

    def _check_fields(self, edge: Mapped, number: int) -> None:
        bound = edge.get(_BOUND)
        if number != LATENCY_SLA and _BOUND in edge:
            self._add("unknown-field", edge.line, f"{_BOUND} is for {EDGE_TYPES[LATENCY_SLA]} only")
        elif number == LATENCY_SLA and not _is_bound(bound):
            wanted = f"{_BOUND}: a number above 0 is wanted, {_found(bound)}"
            self._add("latency", edge.line, wanted)
        for key in sorted(edge.keys() - _FIELDS):
            self._add("unknown-field", edge.line, f"an edge has no field {shown(key)}")

    def _report_repeated(self, number: int, target: int, line: int, first: int) -> None:
        names = tuple(shown(self._graph.names[end]) for end in (self._node, target))
        file = self._graph.files[-1]
        self._findings.add(
            "duplicate-edge",
            (file, line),
            f"{' -> '.join(names)} ({EDGE_TYPES[number]}) is already at {file}:{first}",
            names=names,
            related=((file, first),),
        )

    def _add(self, rule: str, line: int, message: str) -> None:
        name = shown(self._graph.names[self._node])
        self._findings.add(rule, (self._graph.files[-1], line), f"{name}: {message}", names=(name,))


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def _found(value: object) -> str:
    return f"found {described(value)}"
