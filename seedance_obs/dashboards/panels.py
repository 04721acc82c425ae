"""Panels as plain values: what a panel asks and how it shows the answer, before it is Grafana JSON.

Only what our dashboards use, and of that only what differs from Grafana's own defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seedance_obs.dashboards.theme import Json, JsonObject, Look, steps

TWO_MINUTES_MS = 120_000


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query; what its series are called, where the series alone do not say."""

    expr: str
    legend: str = "__auto"
    ref_id: str = "A"


@dataclass(frozen=True, slots=True)
class Row:
    """A heading above the panels that follow it."""

    title: str
    size: tuple[int, int] = (24, 1)


@dataclass(frozen=True, slots=True)
class Display:
    """A kind of panel; one that is not `over_time` asks for the end of the time range only."""

    kind: str
    options: JsonObject
    custom: JsonObject = field(default_factory=dict)
    color_mode: str = "thresholds"
    over_time: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel, of `size` columns (of 24) by rows, repeated for each value of a variable.

    `no_value` is what a reader sees where there is no answer.
    """

    display: Display
    title: str
    description: str
    queries: Sequence[Query]
    look: Look
    size: tuple[int, int]
    thresholds: JsonObject | None = None
    transformations: Sequence[JsonObject] = ()
    overrides: Sequence[JsonObject] = ()
    repeat: str | None = None
    no_value: str = "no data"

    def defaults(self) -> JsonObject:
        """Grafana's `fieldConfig.defaults` of the panel."""
        return {
            "color": {"mode": self.display.color_mode},
            "custom": self.display.custom,
            "max": self.look.high,
            "min": self.look.low,
            "noValue": self.no_value,
            "thresholds": self.thresholds or steps(self.look.color),
            "unit": self.look.unit,
        }


NUMBER = Display("stat", {"graphMode": "none"})
LINES = Display(
    "timeseries",
    {
        "legend": {
            "calcs": ["mean", "max", "lastNotNull"],
            "displayMode": "table",
            "placement": "right",
            "showLegend": True,
            "sortBy": "Mean",
            "sortDesc": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    {"fillOpacity": 0, "lineWidth": 1, "spanNulls": False},
    color_mode="palette-classic",
    over_time=True,
)
BANDS = Display(
    "state-timeline",
    {"mergeValues": True, "perPage": 16, "showValue": "never"},
    {"fillOpacity": 90, "insertNulls": TWO_MINUTES_MS, "lineWidth": 0, "spanNulls": False},
    over_time=True,
)


def table(sort_by: str, *, descending: bool = False) -> Display:
    """Rows of values, sorted by one column."""
    return Display(
        "table", {"sortBy": [{"desc": descending, "displayName": sort_by}]}, {"filterable": True}
    )


def node_graph(*, unit: str, second_unit: str, edge_unit: str, arcs: Mapping[str, str]) -> Display:
    """A graph from a frame of nodes and one of edges, from left to right; `arcs` have colours.

    Grafana applies no field settings here; units are printed behind the numbers as they stand.
    """
    colors: Sequence[Json] = [{"color": color, "field": name} for name, color in arcs.items()]
    nodes: JsonObject = {"arcs": colors, "mainStatUnit": unit, "secondaryStatUnit": second_unit}
    edges: JsonObject = {"mainStatUnit": edge_unit}
    return Display("nodeGraph", {"edges": edges, "layoutAlgorithm": "layered", "nodes": nodes})


def rows(ref_id: str) -> tuple[JsonObject, JsonObject]:
    """Transformations of a query made by `queries.columns` into one frame with real field names.

    Only transformations that npm's `@grafana/data` can run are used, so that tests can run all.
    """
    only: JsonObject = {"id": "byRefId", "options": ref_id}
    cells: JsonObject = {"mode": "columns", "valueLabel": "stat"}
    return (
        {"id": "labelsToFields", "filter": only, "options": cells},
        {"id": "merge", "filter": only, "options": {}},
    )


def sorted_by(name: str) -> JsonObject:
    """A transformation that sorts the rows of every frame by a column."""
    return {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": name}]}}


def in_order(shown: str, *, hidden: str) -> JsonObject:
    """A transformation that puts columns in this order and hides others; names by spaces."""
    order: JsonObject = {name: place for place, name in enumerate(shown.split())}
    without: JsonObject = dict.fromkeys(hidden.split(), True)
    return {"id": "organize", "options": {"excludeByName": without, "indexByName": order}}


def column(name: str, **properties: Json) -> JsonObject:
    """An override of the field that is called `name`."""
    values: Sequence[Json] = [{"id": key, "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": values}


def cells(name: str, look: Look, kind: str, thresholds: JsonObject | None = None) -> JsonObject:
    """An override that shows a column as cells of a kind: `gauge`, `color-text`."""
    return column(
        name,
        unit=look.unit,
        min=look.low,
        max=look.high,
        thresholds=thresholds or steps(look.color),
        **{"custom.cellOptions": {"type": kind}},
    )
