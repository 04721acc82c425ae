"""Validates declared topologies: which file says what, and whether the whole is a labelled DAG.

A declared topology is a set of documents, one for each node, in YAML (several to a file, or the
items of a List), JSON or JSON Lines:

    apiVersion: topology.seedance.io/v1
    kind: ResourceNode                 # or JobVertex
    metadata:
      name: gpu-a
      namespace: train                 # "default" where there is none
      labels: {zone: a}
    spec:
      edges:
        - {type: affinity, to: gpu-b}  # a node of the same namespace
        - {type: latency-sla, to: serve/frontend, maxMilliseconds: 5}
        - {type: anti-affinity, to: gpu-c}

Names are as Kubernetes takes them, and unique in their namespace across both kinds, since an edge
names no kind. `affinity` and `latency-sla` are directed: the target is placed first, so these two
together must form no cycle. `anti-affinity` holds both ways whoever declares it, takes no part in
cycles, and contradicts an `affinity` between the same two nodes in either direction; it does not
contradict a `latency-sla`, which may hold between separate places. Bounds of `latency-sla` are
per edge and are not added up along a path.

A cycle that needs several namespaces is told as a *hidden reverse edge*, since no namespace shows
it alone. Each tangle of cycles is told once: the shortest cycle through its first edge in file
order; of that cycle, the edge declared last *closes* it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seedance_obs.topology.declared.checks import check_graph
from seedance_obs.topology.declared.documents import DocumentReader
from seedance_obs.topology.declared.findings import Finding, Findings
from seedance_obs.topology.declared.graph import DeclaredGraph


@dataclass(frozen=True, slots=True)
class Report:
    """What a validation found.

    `findings` are in the order of files and lines; `omitted` counts by rule those beyond the
    limit, which `errors` and `warnings` count too. `edges` are those that could be read, each
    once.
    """

    nodes: int
    edges: int
    errors: int
    warnings: int
    findings: tuple[Finding, ...]
    omitted: Mapping[str, int]

    @property
    def valid(self) -> bool:
        """Whether there are no errors."""
        return not self.errors


def validate(files: Iterable[tuple[str, bytes]], *, limit: int = 0) -> Report:
    """What is wrong with the topology that all the files, by name and content, declare together.

    At most `limit` findings of each rule are kept (0: all of them).

    Raises:
        UsageError: a file is neither YAML nor JSON.
    """
    graph, findings = DeclaredGraph(), Findings(limit)
    reader = DocumentReader(graph, findings)
    for file, data in files:
        reader.read(file, data)
    check_graph(graph, findings)
    nodes = sum(1 for kind in graph.kinds if kind)
    if graph.files and not nodes and not findings.total(warnings=False):
        findings.add("empty", (graph.files[0], 1), "no node is declared")
    return Report(
        nodes=nodes,
        edges=len(graph.source),
        errors=findings.total(warnings=False),
        warnings=findings.total(warnings=True),
        findings=findings.in_order(graph.files),
        omitted=findings.omitted,
    )
