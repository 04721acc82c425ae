"""The topology view on real data: every query asked, every transformation run."""

import math
import re
from typing import Any

import pytest
from drawn_panels import answers, draw_all, rows, substitute
from loopback_prometheus import Prometheus
from synthetic_hosts import HOSTS

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.build import dashboards

DASHBOARD = dashboards()["gpu-utilization-topology-view.json"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
WITH_GPUS = [host.name for host in HOSTS if host.gpus]
LINKED = {"hgx-a": (8 * 4, 32), "pair-b": (0, 0), "mesh-c": (6, 12), "guest-d": (2, 36)}

Row = dict[str, Any]
Frames = list[dict[str, Any]]


class Drawn:
    """Every panel once for all nodes, and the graph for each node by itself."""

    def __init__(self, prometheus: Prometheus) -> None:
        asked = [(each, ".*") for each in PANELS]
        asked += [(panel("nodeGraph"), node) for node in WITH_GPUS]
        self._frames = draw_all(prometheus, asked)

    def frames(self, kind: str, title: str = "", *, node: str = ".*") -> Frames:
        return self._frames[panel(kind, title)["id"], node]


@pytest.fixture(scope="module")
def drawn(prometheus: Prometheus) -> Drawn:
    return Drawn(prometheus)


def panel(kind: str, title: str = "") -> dict[str, Any]:
    (found,) = [each for each in PANELS if each["type"] == kind and title in each["title"]]
    return found


def graph(drawn: Drawn, node: str) -> tuple[list[Row], list[Row]]:
    """Nodes and edges as Grafana tells them apart: by a field named `source`."""
    frames = drawn.frames("nodeGraph", node=node)
    kinds = {"source" in {field["name"] for field in frame["fields"]}: frame for frame in frames}
    assert len(frames) == len(kinds) == 2
    return rows(kinds[False]), rows(kinds[True])


@pytest.mark.parametrize("asked", PANELS, ids=lambda each: each["title"])
def test_every_query_has_an_answer(prometheus: Prometheus, asked: dict[str, Any]) -> None:
    for answer in answers(prometheus, asked, node=".*"):
        assert answer["result"], answer["refId"]


@pytest.mark.parametrize("name", ["cluster", "node"])
def test_variables_are_filled(prometheus: Prometheus, name: str) -> None:
    (variable,) = [each for each in DASHBOARD["templating"]["list"] if each["name"] == name]
    selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
    found = prometheus.label_values(substitute(selector), label)
    assert found == ([] if name == "cluster" else sorted(host.name for host in HOSTS))


def test_a_firing_alert_is_marked_and_counted(prometheus: Prometheus, drawn: Drawn) -> None:
    (annotation,) = DASHBOARD["annotations"]["list"]
    (mark,) = prometheus.range(substitute(annotation["expr"]))
    assert mark["metric"]["instance"] == "mesh-c"
    (count,) = drawn.frames("stat", "Firing alerts")
    assert rows(count)[0]["Value"] == 1


@pytest.mark.parametrize("node", [*WITH_GPUS, ".*"])
def test_no_edge_of_the_graph_lacks_its_end(drawn: Drawn, node: str) -> None:
    nodes, edges = graph(drawn, node)
    ids = [each["id"] for each in nodes]
    assert len(ids) == len(set(ids))
    edge_ids = [each["id"] for each in edges]
    assert len(edge_ids) == len(set(edge_ids))
    assert {end for each in edges for end in (each["source"], each["target"])} <= set(ids)


@pytest.mark.parametrize("node", WITH_GPUS)
def test_the_graph_hangs_together(drawn: Drawn, node: str) -> None:
    """Every device is reached from the host, whichever labels are unknown."""
    nodes, edges = graph(drawn, node)
    reached, before = {f"{node}/"}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {each["target"] for each in edges if each["source"] in reached}
    assert reached == {each["id"] for each in nodes}


@pytest.mark.parametrize("node", WITH_GPUS)
def test_columns_have_the_types_that_the_graph_reads(drawn: Drawn, node: str) -> None:
    frames = drawn.frames("nodeGraph", node=node)
    types = {f["name"]: f["type"] for frame in frames for f in frame["fields"]}
    numbers = {"mainstat", "secondarystat", "fixedx", "fixedy", "thickness"}
    numbers |= {name for name in types if name.startswith("arc__")}
    texts = {"id", "title", "subtitle", "source", "target", "color", "strokedasharray", "icon"}
    assert {types[name] for name in numbers} == {"number"}
    assert {types[name] for name in texts} == {"string"}


@pytest.mark.parametrize("node", WITH_GPUS)
def test_arcs_add_up_to_a_ring_in_declared_colours(drawn: Drawn, node: str) -> None:
    nodes, _ = graph(drawn, node)
    declared = [arc["field"] for arc in panel("nodeGraph")["options"]["nodes"]["arcs"]]
    assert declared == [name for name in nodes[0] if name.startswith("arc__")]
    for each in nodes:
        assert math.isclose(sum(each[name] for name in declared), 1), each["id"]


@pytest.mark.parametrize("node", WITH_GPUS)
def test_every_device_has_a_place_of_its_own(drawn: Drawn, node: str) -> None:
    nodes, _ = graph(drawn, node)
    places = {(each["fixedx"], each["fixedy"]) for each in nodes}
    assert len(places) == len(nodes)
    assert all(math.isfinite(x) and math.isfinite(y) for x, y in places)


@pytest.mark.parametrize("host", [h for h in HOSTS if h.gpus], ids=lambda h: h.name)
def test_gpus_show_their_utilisation_or_nothing(drawn: Drawn, host: Any) -> None:
    nodes, _ = graph(drawn, host.name)
    drawn = {each["title"]: each for each in nodes if each["kind"] == "gpu"}
    assert len(drawn) == len(host.gpus)
    for gpu in host.gpus:
        row = drawn[f"GPU {gpu.index}"]
        known = gpu.utilization is not None
        assert row["mainstat"] == (100 * gpu.utilization if known else None)
        assert row["arc__unknown"] == (0 if known else 1)
        assert row["secondarystat"] == 100 + gpu.index


@pytest.mark.parametrize("node", WITH_GPUS)
def test_nvlinks_are_drawn_once_and_by_their_number(drawn: Drawn, node: str) -> None:
    """Edges and links as built into the host: a link between two GPUs is reported by both."""
    _, edges = graph(drawn, node)
    nvlinks = [each for each in edges if each["color"] == theme.NVLINK]
    count, links = LINKED[node]
    assert len(nvlinks) == count
    if node == "hgx-a":
        links = 8 * (5 + 5 + 4 + 4)
    assert sum(each["mainstat"] for each in nvlinks) == links
    assert all(each["thickness"] == 1 + each["mainstat"] / 2 for each in nvlinks)


@pytest.mark.parametrize("node", WITH_GPUS)
def test_the_pcie_tree_is_thin_and_dashed(drawn: Drawn, node: str) -> None:
    _, edges = graph(drawn, node)
    pcie = [each for each in edges if each["color"] == theme.PCIE]
    assert pcie
    assert {each["thickness"] for each in pcie} == {1}
    assert all(each["strokedasharray"] for each in pcie)
    assert {each.get("mainstat") for each in pcie} == {None}


def test_a_gpu_hangs_on_the_nearest_known_thing(drawn: Drawn) -> None:
    _, edges = graph(drawn, ".*")
    parents = {each["target"]: each["source"] for each in edges if each["color"] == theme.PCIE}
    assert parents["hgx-a/0000:1b:00.0"] == "hgx-a/0000:11:00.0"
    assert parents["hgx-a/0000:11:00.0"] == "hgx-a/pci0000:10"
    assert parents["hgx-a/pci0000:10"] == "hgx-a/"
    assert parents["pair-b/0000:3b:00.0"] == "pair-b/pci0000:3a"
    assert parents["guest-d/0000:00:05.0"] == "guest-d/"
    assert parents["guest-d/GPU-guest-d-0001"] == "guest-d/"


def test_the_timeline_has_a_band_for_each_gpu_that_reports_in_order(drawn: Drawn) -> None:
    frames = drawn.frames("state-timeline")
    bands = [
        field["display"] for frame in frames for field in frame["fields"] if "display" in field
    ]
    reporting = [(h.name, g.index) for h in HOSTS for g in h.gpus if g.utilization is not None]
    assert bands == sorted(f"{name} GPU {index}" for name, index in reporting)
    assert panel("state-timeline")["options"]["perPage"] == 16


def test_the_fleet_panel_is_the_one_that_people_know(drawn: Drawn) -> None:
    (target,) = panel("timeseries", "How busy")["targets"]
    expr = 'avg by (instance, gpu_uuid) (dcgm_gpu_utilization{job="gpu"})'
    assert target["expr"] == expr
    assert target["legendFormat"] == "{{instance}}-{{gpu_uuid}}"
    frames = drawn.frames("timeseries", "How busy")
    names = {field.get("display") for frame in frames for field in frame["fields"]}
    assert "hgx-a-GPU-hgx-a-0004" in names


def test_the_node_table_has_one_row_a_node(drawn: Drawn) -> None:
    (frame,) = drawn.frames("table", "Which node")
    by_node = {row["instance"]: row for row in rows(frame)}
    assert set(by_node) == {host.name for host in HOSTS}
    assert [name for name, row in by_node.items() if row["alerts"] > 0] == ["mesh-c"]
    assert by_node["pair-b"]["missing"] == 1
    assert by_node["hgx-a"]["missing"] == 0
    assert by_node["hgx-a"]["power"] == sum(range(100, 108))
    assert by_node["cpu-e"]["utilization"] is None


def test_the_gpu_table_shows_model_and_place(drawn: Drawn) -> None:
    (frame,) = drawn.frames("table", "What is every GPU")
    names = [field["name"] for field in frame["fields"]]
    assert names[:4] == ["instance", "gpu", "state", "gpu_model"]
    assert {"pci_bus_id", "numa_node", "pcie_root", "pcie_switch", "nvlink_domain"} <= set(names)
    found = rows(frame)
    assert len(found) == sum(len(host.gpus) for host in HOSTS)
    (row,) = [each for each in found if each["gpu_uuid"] == "GPU-hgx-a-0004"]
    assert row["gpu_model"] == "NVIDIA H100 80GB HBM3"
    assert (row["pcie_switch"], row["numa_node"]) == ("0000:91:00.0", "1")
    assert (row["utilization"], row["memory"], row["power"]) == (0.5, 0.25, 104)


def test_overrides_name_columns_that_exist(drawn: Drawn) -> None:
    for table in [each for each in PANELS if each["type"] == "table"]:
        (frame,) = drawn.frames("table", table["title"])
        names = {field["name"] for field in frame["fields"]}
        assert {each["matcher"]["options"] for each in table["fieldConfig"]["overrides"]} <= names
        assert table["options"]["sortBy"][0]["displayName"] in names
