"""What the checks of panels are made of: variables as Grafana fills them, and rules that fail."""

from typing import Any

import pytest

from tests.dashboards.every_panel import Drawn, Frame
from tests.dashboards.gone_exporters import Gone, shown_after
from tests.dashboards.grafana_queries import Asked, Window, asked
from tests.dashboards.grafana_variables import ALL, Choice, interpolated
from tests.dashboards.links_filled import unfilled
from tests.dashboards.panel_contracts import holds
from tests.dashboards.thresholds import probes_of, wrong

CHOICE = Choice("calm", ALL, {}, {"cluster": "calm"})
EXPR = 'x{cluster=~"$cluster"}'
GRAPH_ANSWER = [{"metric": {"id": "n1/gpu"}, "value": [0, "1"]}]
STEPS = {
    "mode": "absolute",
    "steps": [{"color": "#009E73", "value": None}, {"color": "#D55E00", "value": 0.8}],
}


def _field(name: str, *values: Any, kind: str = "number", **more: Any) -> dict[str, Any]:
    field = {"name": name, "type": kind, "values": list(values), "display": name, "texts": []}
    return {**field, "settings": {}, **more}


def _text(name: str, *values: str) -> dict[str, Any]:
    return _field(name, *values, kind="string")


def _drawn(kind: str, *frames: list[dict[str, Any]], **panel: Any) -> Drawn:
    settings = {"defaults": {"noValue": "nothing", "unit": "none"}, "overrides": []}
    whole = {"type": kind, "title": "A panel", "options": {}, "fieldConfig": settings, **panel}
    whole.setdefault("targets", [{"refId": "A", "expr": EXPR, "format": "time_series"}])
    queries = (Asked("x", instant=False, start=0, end=60, step_s=30),)
    made: list[Frame] = [{"refId": "A", "fields": fields} for fields in frames]
    return Drawn("a.json", whole, CHOICE, Window(0, 60), queries, (GRAPH_ANSWER,), made)


def _graph(nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None = None) -> Drawn:
    arcs = [{"field": "arc__busy", "color": "red"}, {"field": "arc__idle", "color": "blue"}]
    targets = [{"refId": "nodes", "expr": EXPR}, {"refId": "edges", "expr": EXPR}]
    frames = [nodes] if edges is None else [nodes, edges]
    return _drawn("nodeGraph", *frames, options={"nodes": {"arcs": arcs}}, targets=targets)


RING = (_field("arc__busy", 0.25, 1), _field("arc__idle", 0.75, 0))
NODES = [_text("id", "a", "b"), *RING]
EDGES = [_text("id", "a~b"), _text("source", "a"), _text("target", "b")]


def test_a_whole_graph_holds() -> None:
    holds(_graph(NODES, EDGES))
    holds(_graph(NODES))


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ([_text("id", "a", "a"), *RING], None),
        ([_text("id", "a", "b"), _field("arc__busy", 0.25, 1)], None),
        ([_text("id", "a", "b"), *RING, _field("arc__new", 0, 0)], None),
        ([_text("id", "a", "b"), _text("mainstat", "1", "2")], None),
        ([_field("Value", 1, 2), _text("name", "a", "b")], None),
        ([], None),
        (NODES, [_text("id", "a~c"), _text("source", "a"), _text("target", "c")]),
    ],
    ids=["same id", "part of a ring", "arc without colour", "text", "no id", "empty", "dangling"],
)
def test_a_broken_graph_is_found(
    nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None
) -> None:
    with pytest.raises(AssertionError):
        holds(_graph(nodes, edges))


def _cells(*columns: dict[str, Any], **panel: Any) -> Drawn:
    order = {"id": "organize", "options": {"indexByName": {"instance": 0, "power": 1}}}
    return _drawn("table", list(columns), **{"transformations": [order], **panel})


def test_a_table_of_chosen_columns_holds() -> None:
    holds(_cells(_text("instance", "n1"), _field("power", 1)))


@pytest.mark.parametrize("extra", ["Value", "Time", "gpu_uuid"])
def test_a_column_by_accident_is_found(extra: str) -> None:
    with pytest.raises(AssertionError):
        holds(_cells(_text("instance", "n1"), _field(extra, 1)))


PAIRS = {"transformations": [{"id": "groupingToMatrix", "options": {}}]}


def test_a_square_matrix_holds() -> None:
    corner = _text("src\\dst", "GPU 00", "GPU 01")
    holds(_cells(corner, _field("GPU 00", None, 1), _field("GPU 01", 1, None), **PAIRS))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (("GPU 00", "GPU 01"), ("GPU 01", "GPU 00")),
        (("GPU 01", "GPU 00"), ("GPU 00", "GPU 01")),
        (("GPU 00", "GPU 01"), ("GPU 00", "GPU 02")),
    ],
)
def test_a_matrix_out_of_order_or_not_square_is_found(
    rows: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    cells = [_field(name, 1, 1) for name in columns]
    with pytest.raises(AssertionError):
        holds(_cells(_text("src\\dst", *rows), *cells, **PAIRS))


def _line(display: str, **labels: str) -> list[dict[str, Any]]:
    value = _field("Value", 1, 1, labels=labels, display=display)
    return [_field("Time", 0, 30000, kind="time"), value]


def test_a_legend_names_host_and_gpu_and_none_twice() -> None:
    gpu = {"instance": "n1", "gpu": "3"}
    holds(_drawn("timeseries", _line("n1 GPU 3", **gpu)))
    for lines in ([_line("GPU 3", **gpu)], [_line("x", **gpu)], [_line("n1 GPU 3", **gpu)] * 2):
        with pytest.raises(AssertionError):
            holds(_drawn("timeseries", *lines))


def test_what_is_drawn_after_an_exporter_has_gone_is_found() -> None:
    drawn = _drawn("timeseries", _line("n1", cluster="calm", instance="n1"))
    assert len(list(shown_after(drawn, Gone("calm", "n1", since=15)))) == 1
    assert list(shown_after(drawn, Gone("calm", "n1", since=30))) == []
    assert list(shown_after(drawn, Gone("calm", "n2", since=15))) == []


def test_a_threshold_at_the_wrong_place_is_found() -> None:
    defaults = {"color": {"mode": "thresholds"}, "thresholds": STEPS, "unit": "percentunit"}
    (probe,) = probes_of({"title": "x", "fieldConfig": {"defaults": defaults, "overrides": []}})
    assert wrong([probe]) == []
    probe.expected[0.5] = (None, "#D55E00")  # type: ignore[index]  # it is a dict underneath
    assert [value for _, value, _, _ in wrong([probe])] == [0.5]


def test_a_link_that_finds_nothing_is_found() -> None:
    url = "/d/x?var-node=${__data.fields.instance}&from=${__data.fields.start.numeric}"
    linked = _field("power", 1, settings={"links": [{"title": "Open", "url": url}]})
    node, start = _text("instance", "n1"), _field("start", 1.7e12)
    assert unfilled(linked, {"fields": [linked, node, start]}) == []
    assert unfilled(linked, {"fields": [linked, start]}) == ["instance"]
    in_seconds = {"fields": [linked, node, _field("start", 1.7e9)]}
    assert unfilled(linked, in_seconds) == ["start is not in milliseconds"]


def test_values_are_escaped_twice_in_a_string_of_a_regular_expression() -> None:
    one = Choice("calm", ALL, {}, {}).with_one("node", "n1.a")
    assert interpolated('x{instance=~"$node"}', one.texts) == r'x{instance=~"n1\\.a"}'
    assert interpolated('label_replace(x, "a", "$1", "b", "(.+)")', {}).count("$1") == 1
    with pytest.raises(AssertionError, match="no such variable"):
        interpolated("$nowhere", one.texts)


@pytest.mark.parametrize(
    ("target", "points", "expected"),
    [({}, 1000, "60s"), ({}, 20, "135s"), ({"interval": "30s"}, 1000, "120s")],
)
def test_rates_look_back_over_four_scrapes_or_a_step_and_a_scrape(
    target: dict[str, str], points: int, expected: str
) -> None:
    panel = {"interval": "30s", "maxDataPoints": points}
    query = {"expr": "rate(x[$__rate_interval])", "instant": False, **target}
    assert expected in asked(panel, query, CHOICE, Window(0, 3600)).expr
