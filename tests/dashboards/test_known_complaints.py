"""What users of other dashboards have reported, by the number of the complaint: ours differ."""

import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seedance_obs.dashboards.build import dashboards
from tests.dashboards.every_panel import Drawn, Key, panels_of
from tests.dashboards.fleets import CLUSTERS
from tests.dashboards.grafana_queries import Window, interval_s, seconds
from tests.dashboards.grafana_variables import ALL, filled, queried, values_of
from tests.dashboards.graph_contract import (
    EDGE_NUMBERS,
    EDGE_TEXTS,
    NODE_NUMBERS,
    NODE_TEXTS,
    graph,
)
from tests.dashboards.history import History
from tests.dashboards.panel_contracts import is_matrix

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
FILES = dashboards()
EVERY = [(file, panel) for file, dashboard in FILES.items() for panel in panels_of(dashboard)]
CONTRACT = "test_every_panel.py::test_a_panel_keeps_its_contract"
SHAPE = "test_shape.py::test_one_generation_of_grafana_is_written"
SCREEN_PIXELS = 1280
WATCHED_FOR_S = (3600, 6 * 3600, 12 * 3600, 24 * 3600, 2 * 86400, 7 * 86400)

HERE_TESTED = "test_known_complaints.py::test_"
COMPLAINTS = {
    1: HERE_TESTED + "a_node_graph_reads_names_that_no_transformation_only_displays",
    2: CONTRACT,
    3: HERE_TESTED + "a_node_with_one_gpu_and_no_edge_is_drawn",
    4: CONTRACT,
    5: CONTRACT,
    6: HERE_TESTED + "a_matrix_is_made_of_one_query",
    7: CONTRACT,
    8: HERE_TESTED + "a_status_history_has_room_for_its_points_on_a_small_screen",
    9: "test_every_panel.py::test_nothing_is_drawn_of_an_exporter_that_has_gone",
    10: SHAPE,
    11: SHAPE,
    12: HERE_TESTED + "every_panel_has_an_id_of_its_own",
    13: HERE_TESTED + "a_dashboard_is_of_the_classic_model",
    14: HERE_TESTED + "the_readme_says_which_grafana_is_needed",
    15: "test_shape.py::test_all_data_comes_from_the_chosen_source",
    16: HERE_TESTED + "points_are_not_closer_than_scrapes",
    17: "test_every_panel.py::test_a_panel_shows_something_of_some_fleet",
    18: CONTRACT,
    19: HERE_TESTED + "nodes_can_be_chosen_in_every_fleet",
    20: HERE_TESTED + "a_board_that_is_cut_into_instances_counts_once",
    21: "test_shape.py::test_a_query_uses_only_names_of_the_contract_or_recorded_ones",
    22: HERE_TESTED + "sixteen_gpus_fit_on_a_page_of_a_timeline",
    23: SHAPE,
    24: HERE_TESTED + "links_use_no_variable_that_grafana_gave_up",
    25: HERE_TESTED + "the_readme_says_which_grafana_is_needed",
}


def test_every_complaint_has_a_test() -> None:
    assert list(COMPLAINTS) == list(range(1, 26))
    assert set(COMPLAINTS.values()) <= set(_tests())


def _tests() -> Iterator[str]:
    for path in HERE.glob("test_*.py"):
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.FunctionDef):
                yield f"{path.name}::{each.name}"


def _panels(*kinds: str) -> list[dict[str, Any]]:
    return [panel for _, panel in EVERY if panel["type"] in kinds]


def _drawn(
    drawn_panels: dict[Key, list[Drawn]], *, kind: str, fleet: str, title: str = ""
) -> list[Drawn]:
    return [
        each
        for file, panel in EVERY
        if panel["type"] == kind and title in panel["title"]
        for each in drawn_panels[file, panel["id"], fleet]
    ]


def test_a_node_graph_reads_names_that_no_transformation_only_displays() -> None:
    read = NODE_TEXTS | NODE_NUMBERS | EDGE_TEXTS | EDGE_NUMBERS
    for panel in _panels("nodeGraph"):
        used = {each["id"] for each in panel["transformations"]}
        assert not used & {"renameByRegex", "groupBy"}
        for options in (each["options"] for each in panel["transformations"]):
            assert not read & set(options.get("renameByName", {}).values())
            assert "mode" not in options or options["mode"] == "columns" or options["alias"]


def test_a_node_with_one_gpu_and_no_edge_is_drawn(
    drawn_panels: dict[Key, list[Drawn]],
) -> None:
    graphs = _drawn(drawn_panels, kind="nodeGraph", fleet="one", title="every GPU")
    assert graphs
    for each in graphs:
        assert each.frames
        nodes = [frame for frame in each.frames if _is_nodes(frame)]
        graph(dataclasses.replace(each, frames=nodes))


def _is_nodes(frame: dict[str, Any]) -> bool:
    return "source" not in [field["name"] for field in frame["fields"]]


def test_a_matrix_is_made_of_one_query() -> None:
    for _, panel in EVERY:
        assert not is_matrix(panel) or len(panel["targets"]) == 1


def test_a_status_history_has_room_for_its_points_on_a_small_screen() -> None:
    """Grafana draws none where a point has less than two pixels."""
    for panel in _panels("status-history"):
        pixels = SCREEN_PIXELS * panel["gridPos"]["w"] / 24
        for long in WATCHED_FOR_S:
            step = interval_s(panel, Window(0, long), seconds(panel["interval"]))
            assert long / step <= pixels / 2, (panel["title"], long)


def test_every_panel_has_an_id_of_its_own() -> None:
    for dashboard in FILES.values():
        rows = [each for each in dashboard["panels"] if each["type"] == "row"]
        ids = [each["id"] for each in [*rows, *panels_of(dashboard)]]
        assert len(ids) == len(set(ids))


def test_a_dashboard_is_of_the_classic_model() -> None:
    for dashboard in FILES.values():
        assert not {"kind", "apiVersion", "spec", "elements", "id"} & set(dashboard)
        assert {"uid", "panels", "schemaVersion", "templating"} <= set(dashboard)


def test_the_readme_says_which_grafana_is_needed() -> None:
    assert re.search(r"Grafana 11 or\s+newer", README.read_text())


def test_points_are_not_closer_than_scrapes() -> None:
    for _, panel in EVERY:
        for target in panel["targets"]:
            assert target["interval"] == "30s", panel["title"]
            assert target["instant"] or panel["interval"] == "30s", panel["title"]


@pytest.mark.parametrize("fleet", CLUSTERS)
def test_nodes_can_be_chosen_in_every_fleet(history: History, fleet: str) -> None:
    for dashboard in FILES.values():
        choice = filled(dashboard, history, cluster=fleet, how_many=ALL)
        for variable in queried(dashboard):
            if variable["name"] == "node":
                nodes = sorted(node.name for node in CLUSTERS[fleet].nodes)
                assert sorted(values_of(variable, history, choice)) == nodes


def test_a_board_that_is_cut_into_instances_counts_once(
    drawn_panels: dict[Key, list[Drawn]], history: History
) -> None:
    boards = {uuid for node in CLUSTERS["mig"].nodes for uuid in node.gpu_uuids}
    for each in _drawn(drawn_panels, kind="stat", fleet="mig", title="GPUs seen"):
        assert {number["numeric"] for number in each.numbers} == {len(boards)}
    draws = history.instant('seedance_gpu_power_watts{cluster="mig"}')
    by_board = {each["metric"]["gpu_uuid"]: float(each["value"][1]) for each in draws}
    assert set(by_board) == boards
    watts = [
        number["numeric"]
        for each in _drawn(drawn_panels, kind="stat", fleet="mig")
        if each.panel["fieldConfig"]["defaults"]["unit"] == "watt"
        for number in each.numbers
    ]
    assert pytest.approx(sum(by_board.values())) in watts
    assert max(watts) < 1.1 * sum(by_board.values())  # some are means over minutes


def test_sixteen_gpus_fit_on_a_page_of_a_timeline(drawn_panels: dict[Key, list[Drawn]]) -> None:
    for each in _drawn(drawn_panels, kind="state-timeline", fleet="sixteen"):
        assert len(each.frames) <= each.panel["options"]["perPage"]


def test_links_use_no_variable_that_grafana_gave_up() -> None:
    text = json.dumps(FILES)
    assert not re.search(r"\$\{?__(series|cell|value\.raw)|\[\[", text)
    assert re.search(r"__data\.fields\.|__field\.labels\.", text)
