"""What must hold for a node graph: what Grafana's panel reads, and what makes it fail."""

import math
from typing import Any

from tests.dashboards.every_panel import Drawn, Frame

# Grafana hides further ones behind markers.
MOST_NODES = 200
NODE_TEXTS = {"id", "title", "subtitle", "color", "icon"}
NODE_NUMBERS = {"mainstat", "secondarystat", "noderadius", "fixedx", "fixedy"}
EDGE_TEXTS = {"id", "source", "target", "color", "strokedasharray"}
EDGE_NUMBERS = {"mainstat", "secondarystat", "thickness"}
Rows = list[dict[str, Any]]


def graph(drawn: Drawn) -> None:
    """Ids are unique, edges have both ends, arcs make a whole ring, numbers are numbers."""
    assert {target["refId"] for target in drawn.panel["targets"]} <= {"nodes", "edges"}
    nodes, edges = _told_apart(drawn.frames)
    _has_types(nodes, NODE_TEXTS, NODE_NUMBERS | set(_arc_colors(drawn)))
    _has_types(edges, EDGE_TEXTS, EDGE_NUMBERS)
    ids = _ids(rows(nodes))
    assert len(ids) <= MOST_NODES
    for edge in rows(edges):
        assert {edge["source"], edge["target"]} <= ids, edge["id"]
    _ids(rows(edges))
    for node in rows(nodes):
        _has_a_whole_ring(node, _arc_colors(drawn))


def _told_apart(frames: list[Frame]) -> tuple[Frame, Frame]:
    """Nodes and edges as the panel tells them apart; it takes the first of each, and no other."""
    nothing: Frame = {"fields": []}
    edges = [frame for frame in frames if "source" in _names(frame)]
    nodes = [frame for frame in frames if "source" not in _names(frame)]
    assert len(edges) <= 1
    assert len(nodes) <= 1, "a frame that is neither would be taken for nodes"
    for frame in frames:
        assert "id" in _names(frame), "the panel cannot do without ids"
        assert "Value" not in _names(frame)
    return (nodes or [nothing])[0], (edges or [nothing])[0]


def _names(frame: Frame) -> list[str]:
    return [field["name"] for field in frame["fields"]]


def _has_types(frame: Frame, texts: set[str], numbers: set[str]) -> None:
    for field in frame["fields"]:
        if field["name"].lower() in texts:
            assert field["type"] == "string", field["name"]
        if field["name"].lower() in numbers or field["name"].startswith("arc__"):
            assert field["name"] in numbers, f"no colour is declared for {field['name']}"
            assert field["type"] == "number", field["name"]


def rows(frame: Frame) -> Rows:
    columns = [field["values"] for field in frame["fields"]]
    return [dict(zip(_names(frame), row, strict=True)) for row in zip(*columns, strict=True)]


def _ids(found: Rows) -> set[str]:
    ids = [row["id"] for row in found]
    assert all(isinstance(each, str) and each for each in ids)
    assert len(ids) == len(set(ids))
    return set(ids)


def _arc_colors(drawn: Drawn) -> dict[str, str]:
    return {arc["field"]: arc["color"] for arc in drawn.panel["options"]["nodes"]["arcs"]}


def _has_a_whole_ring(node: dict[str, Any], arcs: dict[str, str]) -> None:
    parts = [node[name] for name in arcs if node.get(name) is not None]
    assert all(part >= 0 for part in parts), node["id"]
    assert not parts or math.isclose(sum(parts), 1, abs_tol=1e-6), (node["id"], parts)
