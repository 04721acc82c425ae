"""Every panel of every dashboard, drawn for every fleet and choice, keeps the contract of its kind.

A fleet is a cluster of the simulated history, or all of them together.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from seedance_obs.dashboards.build import dashboards
from tests.dashboards.every_panel import Drawn, Key, panels_of
from tests.dashboards.expectations import (
    A_ROW_FOR_EACH_GPU,
    EMPTY_IN_CALM,
    SHOWN_WITHOUT_GPUS,
    WITHOUT_A_FAULT,
    WITHOUT_A_FLEET,
)
from tests.dashboards.gone_exporters import gone_exporters, shown_after
from tests.dashboards.grafana_variables import ALL, EVERY_CLUSTER
from tests.dashboards.history import CLUSTERS, History
from tests.dashboards.links_filled import unfilled
from tests.dashboards.panel_contracts import holds
from tests.dashboards.thresholds import probes_of, wrong

FILES = dashboards()
FLEETS = [*CLUSTERS, EVERY_CLUSTER]
PANELS = [(file, panel) for file, dashboard in FILES.items() for panel in panels_of(dashboard)]


def _id(value: object) -> str:
    return value["title"] if isinstance(value, dict) else str(value)


every = pytest.mark.parametrize(("file", "panel"), PANELS, ids=_id)
every_fleet = pytest.mark.parametrize("fleet", FLEETS)


@every_fleet
@every
def test_a_panel_keeps_its_contract(
    drawn_panels: dict[Key, list[Drawn]],
    file: str,
    panel: dict[str, Any],
    fleet: str,
    record_property: Any,
) -> None:
    record_property("drawn", (file, panel["title"], fleet))
    for each in drawn_panels[file, panel["id"], fleet]:
        holds(each)


@every
def test_a_panel_shows_something_of_some_fleet(
    drawn_panels: dict[Key, list[Drawn]], file: str, panel: dict[str, Any]
) -> None:
    filled = {
        fleet for fleet in FLEETS if any(map(_filled, drawn_panels[file, panel["id"], fleet]))
    }
    assert bool(filled) != ((file, panel["title"]) in WITHOUT_A_FLEET)
    assert ("calm" in filled) != ((file, panel["title"]) in WITHOUT_A_FLEET | EMPTY_IN_CALM)


def _filled(drawn: Drawn) -> bool:
    return not drawn.empty


@every
def test_a_panel_of_a_fleet_without_gpus_shows_nothing_or_zero(
    drawn_panels: dict[Key, list[Drawn]], file: str, panel: dict[str, Any]
) -> None:
    shown = [
        (field["display"], value)
        for each in drawn_panels[file, panel["id"], "none"]
        for field in each.fields("number")
        for value in field["values"]
        if value
    ]
    assert bool(shown) == ((file, panel["title"]) in SHOWN_WITHOUT_GPUS), shown[:3]


@every
def test_nothing_is_drawn_of_an_exporter_that_has_gone(
    drawn_panels: dict[Key, list[Drawn]], history: History, file: str, panel: dict[str, Any]
) -> None:
    for gone in gone_exporters(history):
        for fleet in (gone.cluster, EVERY_CLUSTER):
            for each in drawn_panels[file, panel["id"], fleet]:
                late = [field["display"] for field, _ in shown_after(each, gone)]
                assert not each.over_time or not late, late[:3]


@pytest.mark.parametrize("fleet", CLUSTERS)
def test_a_timeline_of_gpus_has_a_row_for_each(
    drawn_panels: dict[Key, list[Drawn]], fleet: str
) -> None:
    gpus = [
        (node.name, str(gpu.index)) for node in CLUSTERS[fleet].nodes for gpu in node.machine.gpus
    ]
    for file, panel in PANELS:
        if (file, panel["title"]) in A_ROW_FOR_EACH_GPU:
            drawn = drawn_panels[file, panel["id"], fleet]
            (whole,) = [each for each in drawn if each.choice.how_many == ALL]
            labels = [field["labels"] for field in whole.fields("number")]
            assert sorted((each["instance"], each["gpu"]) for each in labels) == sorted(gpus)


@every
def test_an_override_names_a_field_that_some_fleet_has(
    drawn_panels: dict[Key, list[Drawn]], file: str, panel: dict[str, Any]
) -> None:
    fields = [field for each in _of(drawn_panels, file, panel) for field in each.fields()]
    names = {field["name"] for field in fields} | {field.get("display") for field in fields}
    named = _named(panel)
    sorted_by = {each["displayName"] for each in panel["options"].get("sortBy", ())}
    assert (named | sorted_by) - names == WITHOUT_A_FAULT.get((file, panel["title"]), set())


@every
def test_links_are_filled_from_what_was_clicked(
    drawn_panels: dict[Key, list[Drawn]], file: str, panel: dict[str, Any]
) -> None:
    for each in _of(drawn_panels, file, panel):
        for frame in each.frames:
            for field in frame["fields"]:
                assert unfilled(field, frame) == [], field["name"]


def _of(
    drawn_panels: Mapping[Key, list[Drawn]], file: str, panel: Mapping[str, Any]
) -> Iterator[Drawn]:
    for fleet in FLEETS:
        yield from drawn_panels[file, panel["id"], fleet]


def _named(panel: Mapping[str, Any]) -> set[str]:
    matchers = [each["matcher"] for each in panel["fieldConfig"]["overrides"]]
    return {each["options"] for each in matchers if each["id"] == "byName"}


def test_texts_and_colours_are_right_at_every_threshold() -> None:
    assert wrong([probe for _, panel in PANELS for probe in probes_of(panel)]) == []
