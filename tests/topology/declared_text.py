"""Declared topologies for tests: as YAML or JSON Lines from plain edges, one node a line."""

import json
from collections.abc import Iterable, Sequence

from seedance_obs.topology.declared.findings import Finding
from seedance_obs.topology.declared.validate import Report, validate

API = "topology.seedance.io/v1"
HEAD = f"apiVersion: {API}\nkind: ResourceNode\n"


def document(name: str, *edges: tuple[str, str], namespace: str = "train", **metadata: object):
    """A node as data; edges are (type, to), and a latency-sla allows 5 ms."""
    bound = {"latency-sla": {"maxMilliseconds": 5}}
    return {
        "apiVersion": API,
        "kind": "ResourceNode",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"edges": [{"type": kind, "to": to, **bound.get(kind, {})} for kind, to in edges]},
    }


def json_lines(documents: Iterable[object]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in documents)


def graph_lines(nodes: int, edges: Sequence[tuple[int, int]]) -> str:
    """Node i is `n<i>` on line i + 1, in namespace `s<i % 3>`; edges alternate the two types."""
    listed: list[list[tuple[str, str]]] = [[] for _ in range(nodes)]
    for source, target in edges:
        kind = "latency-sla" if (source + target) % 2 else "affinity"
        listed[source].append((kind, f"s{target % 3}/n{target}"))
    return json_lines(
        document(f"n{node}", *out, namespace=f"s{node % 3}") for node, out in enumerate(listed)
    )


def check(*texts: str, limit: int = 0) -> Report:
    """The report on files named f0, f1, ..."""
    files = [(f"f{index}", text.encode()) for index, text in enumerate(texts)]
    return validate(files, limit=limit)


def rules(report: Report) -> list[tuple[str, str, int]]:
    return [(found.rule, found.file, found.line) for found in report.findings]


def only(report: Report) -> Finding:
    (found,) = report.findings
    return found
