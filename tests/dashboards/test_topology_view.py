"""The topology view on exporter pages: every query asked, every transformation run."""

import math
import re
from typing import Any

import pytest
from drawn_panels import answers, draw_all, rows, substitute
from loopback_prometheus import Prometheus
from prometheus_client.samples import Sample
from scraped_hosts import count, pages, samples

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.build import dashboards

DASHBOARD = dashboards()["gpu-utilization-topology-view.json"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
NODES = sorted(pages())
WITH_GPUS = [node for node in NODES if any(samples(node, "seedance_topology_device_info"))]

Row = dict[str, Any]
Frames = list[dict[str, Any]]


class Drawn:
    """Every panel once for all nodes, and the graph for each node by itself."""

    def __init__(self, prometheus: Prometheus) -> None:
        asked = [(each, ".*") for each in PANELS]
        asked += [(panel("nodeGraph"), node) for node in NODES]
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


def titled(drawn: Drawn, node: str, title: str) -> Row:
    nodes, _ = graph(drawn, node)
    (found,) = [each for each in nodes if each["title"] == title]
    return found


@pytest.mark.parametrize("asked", PANELS, ids=lambda each: each["title"])
def test_every_query_has_an_answer(prometheus: Prometheus, asked: dict[str, Any]) -> None:
    for answer in answers(prometheus, asked, node=".*"):
        assert answer["result"], answer["refId"]


@pytest.mark.parametrize("name", ["cluster", "node"])
def test_variables_are_filled(prometheus: Prometheus, name: str) -> None:
    (variable,) = [each for each in DASHBOARD["templating"]["list"] if each["name"] == name]
    selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
    found = prometheus.label_values(substitute(selector), label)
    assert found == ([] if name == "cluster" else NODES)


def test_a_firing_alert_is_marked_and_counted(prometheus: Prometheus, drawn: Drawn) -> None:
    (annotation,) = DASHBOARD["annotations"]["list"]
    (mark,) = prometheus.range(substitute(annotation["expr"]))
    assert mark["metric"]["instance"] == "mesh"
    (number,) = drawn.frames("stat", "Firing alerts")
    assert rows(number)[0]["Value"] == 1


@pytest.mark.parametrize("node", [*WITH_GPUS, ".*"])
def test_the_graph_is_the_one_that_the_nodes_export(drawn: Drawn, node: str) -> None:
    nodes, edges = graph(drawn, node)
    of = WITH_GPUS if node == ".*" else [node]
    devices = [f"{each}/{s.labels['device']}" for each in of for s in _devices(each)]
    links = [
        f"{each}/{s.labels['source']}~{each}/{s.labels['target']}"
        for each in of
        for s in _links(each)
    ]
    assert [each["id"] for each in nodes] == sorted(set(devices))
    assert [each["id"] for each in edges] == sorted(set(links))
    assert (len(nodes), len(edges)) == (len(devices), len(links))


def _links(node: str) -> list[Sample]:
    found = samples(node, "seedance_topology_edge_links")
    return [each for each in found if each.labels["target_kind"] != "nvme"]


def _devices(node: str) -> list[Sample]:
    found = samples(node, "seedance_topology_device_info")
    return [each for each in found if each.labels["kind"] != "nvme"]


@pytest.mark.parametrize("node", [*WITH_GPUS, ".*"])
def test_no_edge_of_the_graph_lacks_its_end(drawn: Drawn, node: str) -> None:
    nodes, edges = graph(drawn, node)
    ends = {end for each in edges for end in (each["source"], each["target"])}
    assert ends <= {each["id"] for each in nodes}


def test_a_node_without_gpus_draws_nothing(drawn: Drawn) -> None:
    assert drawn.frames("nodeGraph", node="no-gpu") == []


@pytest.mark.parametrize("node", WITH_GPUS)
def test_numbers_are_numbers_and_texts_are_texts(drawn: Drawn, node: str) -> None:
    frames = drawn.frames("nodeGraph", node=node)
    types = {f["name"]: f["type"] for frame in frames for f in frame["fields"]}
    arcs = {arc["field"] for arc in panel("nodeGraph")["options"]["nodes"]["arcs"]}
    numbers = {"mainstat", "secondarystat", "thickness", *arcs} & set(types)
    texts = {"id", "title", "subtitle", "source", "target", "color", "strokedasharray"}
    assert {name for name in types if name.startswith("arc__")} <= arcs
    assert {types[name] for name in numbers} == {"number"}
    assert {types[name] for name in texts} == {"string"}


@pytest.mark.parametrize("node", WITH_GPUS)
def test_arcs_add_up_to_a_ring(drawn: Drawn, node: str) -> None:
    nodes, _ = graph(drawn, node)
    for each in nodes:
        arcs = [each[name] or 0 for name in each if name.startswith("arc__")]
        assert math.isclose(sum(arcs), 1), each["id"]


@pytest.mark.parametrize("node", WITH_GPUS)
def test_gpus_show_their_readings_or_nothing(drawn: Drawn, node: str) -> None:
    nodes, _ = graph(drawn, node)
    gpus = [each for each in nodes if each["kind"] == "gpu"]
    assert gpus
    for gpu in gpus:
        busy = _reading(node, "seedance_gpu_utilization_ratio", gpu)
        assert gpu["arc__busy"] == busy
        assert gpu["mainstat"] == (None if busy is None else pytest.approx(100 * busy))
        assert gpu["secondarystat"] == _reading(node, "seedance_gpu_power_watts", gpu)


def _reading(node: str, name: str, gpu: Row) -> float | None:
    return next((s.value for s in samples(node, name, gpu_uuid=gpu["gpu_uuid"])), None)


def test_devices_are_called_what_people_call_them(drawn: Drawn) -> None:
    node = "8x-h100-nvswitch-mig"
    nodes, _ = graph(drawn, node)
    called = {(each["title"], each["subtitle"]) for each in nodes}
    assert {
        ("GPU 3", "0000:3b:00.0"),
        ("NVSwitch", "0000:05:00.0"),
        ("PCIe switch", "0000:16:00.0"),
        ("pci0000:15", "NUMA 0"),
        (node, None),
    } <= called
    fabric = titled(drawn, "4x-gb200", "NVLink fabric")
    assert fabric["id"] == "4x-gb200/hidden"


def test_a_lost_gpu_keeps_its_place_and_cannot_be_overlooked(drawn: Drawn) -> None:
    gpu = titled(drawn, "one-lost", "GPU 5")
    assert (gpu["arc__missing"], gpu["icon"], gpu["subtitle"]) == (
        1,
        "exclamation-triangle",
        "missing",
    )
    assert (gpu["mainstat"], gpu["arc__busy"], gpu["arc__unknown"]) == (None, None, None)
    colors = {a["field"]: a["color"] for a in panel("nodeGraph")["options"]["nodes"]["arcs"]}
    assert colors["arc__missing"] == theme.FIRING
    nodes, edges = graph(drawn, "one-lost")
    assert [each["icon"] for each in nodes if each["icon"]] == ["exclamation-triangle"]
    assert [each["color"] for each in edges if each["target"] == gpu["id"]] == [theme.PCIE]


@pytest.mark.parametrize("node", WITH_GPUS)
def test_nvlinks_are_coloured_and_as_thick_as_many(drawn: Drawn, node: str) -> None:
    _, edges = graph(drawn, node)
    links = [link for link in _links(node) if link.labels["kind"] in ("nvlink", "c2c")]
    nvlinks = [each for each in edges if each["color"] == theme.NVLINK]
    assert len(nvlinks) == len(links)
    assert sum(each["mainstat"] for each in nvlinks) == sum(link.value for link in links)
    assert all(each["thickness"] == 1 + each["mainstat"] / 2 for each in nvlinks)
    assert all(not each["strokedasharray"] for each in nvlinks)


@pytest.mark.parametrize("node", WITH_GPUS)
def test_the_pcie_tree_is_thin_and_dashed(drawn: Drawn, node: str) -> None:
    _, edges = graph(drawn, node)
    pcie = [each for each in edges if each["color"] == theme.PCIE]
    assert len(pcie) == len([link for link in _links(node) if link.labels["kind"] == "pcie"])
    assert {each["thickness"] for each in pcie} == {1}
    assert all(each["strokedasharray"] for each in pcie)
    assert {each.get("mainstat") for each in pcie} == {None}


def test_the_timeline_has_a_band_for_each_gpu_that_reports_in_order(drawn: Drawn) -> None:
    frames = drawn.frames("state-timeline")
    bands = [
        field["display"] for frame in frames for field in frame["fields"] if "display" in field
    ]
    reporting = [
        f"{node} GPU {sample.labels['gpu']}"
        for node in NODES
        for sample in samples(node, "seedance_gpu_utilization_ratio")
    ]
    assert bands == sorted(reporting)
    assert panel("state-timeline")["options"]["perPage"] == 16


def test_the_fleet_panel_is_the_one_that_people_know(drawn: Drawn) -> None:
    (target,) = panel("timeseries", "How busy")["targets"]
    expr = 'avg by (instance, gpu_uuid) (dcgm_gpu_utilization{job="gpu"})'
    assert target["expr"] == expr
    assert target["legendFormat"] == "{{instance}}-{{gpu_uuid}}"
    frames = drawn.frames("timeseries", "How busy")
    names = {field.get("display") for frame in frames for field in frame["fields"]}
    assert "4x-gb200-GPU-00000000-0000-0000-0000-000000000004" in names


def test_the_node_table_has_one_row_a_node(drawn: Drawn) -> None:
    (frame,) = drawn.frames("table", "Which node")
    by_node = {row["instance"]: row for row in rows(frame)}
    assert sorted(by_node) == NODES
    assert [name for name, row in by_node.items() if row["alerts"] > 0] == ["mesh"]
    assert [name for name, row in by_node.items() if row["missing"] > 0] == ["one-lost"]
    watts = sum(sample.value for sample in samples("mesh", "seedance_gpu_power_watts"))
    assert by_node["mesh"]["power"] == pytest.approx(watts)
    assert by_node["no-gpu"]["utilization"] is None


def test_the_gpu_table_has_one_row_a_gpu_and_shows_model_and_place(drawn: Drawn) -> None:
    (frame,) = drawn.frames("table", "What is every GPU")
    names = [field["name"] for field in frame["fields"]]
    assert names[:4] == ["instance", "gpu", "state", "gpu_model"]
    assert {"device", "numa_node", "pcie_root", "pcie_switch", "nvlink_domain"} <= set(names)
    found = {(row["instance"], row["gpu"]): row for row in rows(frame)}
    assert len(found) == len(rows(frame)) == count("seedance_topology_device_info", kind="gpu")
    gpu = found["8x-h100-nvswitch-mig", "4"]
    assert (gpu["gpu_model"], gpu["device"]) == ("NVIDIA H100 80GB HBM3", "0000:8c:00.0")
    assert (gpu["pcie_switch"], gpu["numa_node"], gpu["state"]) == ("0000:8a:00.0", "1", "present")
    busy = found["mesh", "3"]
    assert busy["utilization"] == _reading("mesh", "seedance_gpu_utilization_ratio", busy) > 0
    assert busy["power"] == _reading("mesh", "seedance_gpu_power_watts", busy) > 0
    assert 0 < busy["memory"] < 1
    lost = found["one-lost", "5"]
    assert (lost["state"], lost["gpu_model"], lost["power"]) == ("missing", None, None)


def test_overrides_name_columns_that_exist(drawn: Drawn) -> None:
    for table in [each for each in PANELS if each["type"] == "table"]:
        (frame,) = drawn.frames("table", table["title"])
        names = {field["name"] for field in frame["fields"]}
        assert {each["matcher"]["options"] for each in table["fieldConfig"]["overrides"]} <= names
        assert table["options"]["sortBy"][0]["displayName"] in names


def test_a_table_shows_no_column_by_accident(drawn: Drawn) -> None:
    for table in [each for each in PANELS if each["type"] == "table"]:
        (organize,) = [t["options"] for t in table["transformations"] if t["id"] == "organize"]
        (frame,) = drawn.frames("table", table["title"])
        assert {field["name"] for field in frame["fields"]} <= set(organize["indexByName"])
