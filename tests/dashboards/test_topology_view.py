"""The topology view's numbers, tables and lines; its graphs are in test_wiring_view."""

import re
from typing import Any

import pytest
from drawn_panels import answers, draw_all, rows, substitute
from loopback_prometheus import Prometheus
from scraped_hosts import count, pages, samples

from seedance_obs.dashboards.build import dashboards

DASHBOARD = dashboards()["gpu-utilization-topology-view.json"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
NODES = sorted(pages())
TABLES = [each for each in PANELS if "indexByName" in str(each["transformations"])]
OF_RACKS = "of $domain"  # no two pages are of one

Row = dict[str, Any]
Frames = list[dict[str, Any]]


class Drawn:
    """Every panel once for all nodes."""

    def __init__(self, prometheus: Prometheus) -> None:
        self._frames = draw_all(prometheus, [(each, ".*") for each in PANELS])

    def frames(self, kind: str, title: str = "") -> Frames:
        return self._frames[panel(kind, title)["id"], ".*"]


@pytest.fixture(scope="module")
def drawn(prometheus: Prometheus) -> Drawn:
    return Drawn(prometheus)


def panel(kind: str, title: str = "") -> dict[str, Any]:
    (found,) = [each for each in PANELS if each["type"] == kind and title in each["title"]]
    return found


@pytest.mark.parametrize("asked", PANELS, ids=lambda each: each["title"])
def test_every_query_has_an_answer(prometheus: Prometheus, asked: dict[str, Any]) -> None:
    for answer in answers(prometheus, asked, node=".*"):
        assert bool(answer["result"]) != (OF_RACKS in asked["title"]), answer["refId"]


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


def test_the_timeline_has_a_band_for_each_gpu_that_reports_in_order(drawn: Drawn) -> None:
    frames = drawn.frames("state-timeline")
    bands = [
        field["display"] for frame in frames for field in frame["fields"] if "display" in field
    ]
    reporting = {
        f"{node} GPU {sample.labels['gpu']:0>2}"
        for node in NODES
        for sample in [
            *samples(node, "seedance_gpu_utilization_ratio"),
            *(s for s in samples(node, "seedance_gpu_mig_enabled") if s.value and _counted(node)),
        ]
    }
    assert bands == sorted(reporting)
    assert panel("state-timeline")["options"]["perPage"] == 16


def _counted(node: str) -> bool:
    return any(samples(node, "seedance_tenant_gpu_seconds_total"))


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
    assert names[:4] == ["node_name", "gpu", "gpu_model", "state"]
    assert {"device", "numa_node", "pcie_root", "pcie_switch", "nvlink_domain"} <= set(names)
    found = {(row["node_name"], row["gpu"]): row for row in rows(frame)}
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
    for table in TABLES:
        (frame,) = drawn.frames("table", table["title"])
        names = {field["name"] for field in frame["fields"]}
        assert {each["matcher"]["options"] for each in table["fieldConfig"]["overrides"]} <= names
        assert table["options"]["sortBy"][0]["displayName"] in names


def test_a_table_shows_no_column_by_accident(drawn: Drawn) -> None:
    for table in TABLES:
        (organize,) = [t["options"] for t in table["transformations"] if t["id"] == "organize"]
        (frame,) = drawn.frames("table", table["title"])
        assert {field["name"] for field in frame["fields"]} <= set(organize["indexByName"])


def _reading(node: str, name: str, gpu: Row) -> float | None:
    return next((s.value for s in samples(node, name, gpu_uuid=gpu["gpu_uuid"])), None)
