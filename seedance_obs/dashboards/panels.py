"""Panels as plain values: what a panel asks and how it shows the answer, before it is Grafana JSON.

Only what our dashboards use, and of that only what differs from Grafana's own defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from seedance_obs.dashboards.theme import Json, JsonObject, Look, steps

TWO_MINUTES_MS = 120_000
# A table would repeat the panel's `no_value` in each cell without a value.
EMPTY_CELL: JsonObject = {
    "options": {"match": "null", "result": {"index": 0, "text": " "}},
    "type": "special",
}


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
    """A kind of panel; one that is not `over_time` asks for the end of the time range only.

    `points` limits what a panel over time asks for, where more would not fit its cells.
    """

    kind: str
    options: JsonObject
    custom: JsonObject = field(default_factory=dict)
    color_mode: str = "thresholds"
    over_time: bool = False
    points: int | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel, of `size` columns (of 24) by rows, repeated for each value of a variable.

    `no_value` is what a reader sees where there is no answer; `links` lead on from what is clicked.
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
    links: Sequence[JsonObject] = ()
    mappings: Sequence[JsonObject] = ()
    repeat: str | None = None
    no_value: str = "no data"

    def defaults(self) -> JsonObject:
        """Grafana's `fieldConfig.defaults` of the panel."""
        return {
            "color": {"mode": self.display.color_mode},
            "custom": self.display.custom,
            "decimals": self.look.decimals,
            "links": self.links or None,
            "mappings": self._mappings() or None,
            "max": self.look.high,
            "min": self.look.low,
            "noValue": self.no_value,
            "thresholds": self.thresholds or steps(self.look.color),
            "unit": self.look.unit,
        }

    def _mappings(self) -> Sequence[JsonObject]:
        empty = (EMPTY_CELL,) if self.display.kind == "table" else ()
        return (*self.mappings, *empty)


LAST: JsonObject = {"calcs": ["lastNotNull"], "fields": "", "values": False}
LEGEND: JsonObject = {
    "calcs": ["mean", "max", "lastNotNull"],
    "displayMode": "table",
    "placement": "right",
    "showLegend": True,
    "sortBy": "Mean",
    "sortDesc": True,
}
NUMBER = Display("stat", {"graphMode": "none", "reduceOptions": LAST})
# Thresholds of a number color its background: for states that somebody has to see from afar.
ALARM = Display("stat", {"colorMode": "background", "graphMode": "none", "reduceOptions": LAST})
BARS = Display(
    "bargauge",
    {"displayMode": "basic", "orientation": "horizontal", "reduceOptions": LAST},
)
LINES = Display(
    "timeseries",
    {"legend": LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    {"fillOpacity": 0, "lineWidth": 1, "spanNulls": False},
    color_mode="palette-classic",
    over_time=True,
)
# For parts of a whole that add up to it.
STACKED = Display(
    "timeseries",
    {"legend": LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    {
        "fillOpacity": 80,
        "lineWidth": 0,
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal"},
    },
    color_mode="palette-classic",
    over_time=True,
)
BANDS = Display(
    "state-timeline",
    {"mergeValues": True, "perPage": 16, "showValue": "never"},
    {"fillOpacity": 90, "insertNulls": TWO_MINUTES_MS, "lineWidth": 0, "spanNulls": False},
    over_time=True,
)
# A cell for each moment. Wider than 200 cells, Grafana refuses to draw a narrow panel.
CELLS = Display(
    "status-history",
    {"colWidth": 0.95, "perPage": 16, "rowHeight": 0.9, "showValue": "never"},
    {"fillOpacity": 90, "lineWidth": 0},
    over_time=True,
    points=200,
)


def heat(unit: str, scheme: str = "Cividis") -> Display:
    """A heatmap whose rows are the series as they come, coloured by value; `unit` is the rows'."""
    return Display(
        "heatmap",
        {
            "calculate": False,
            "cellGap": 1,
            "color": {"mode": "scheme", "scheme": scheme, "steps": 64},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "showColorScale": True, "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "unit": unit},
        },
        over_time=True,
        points=200,
    )


def table(sort_by: str, *, descending: bool = False) -> Display:
    """Rows of values, sorted by one column."""
    return Display(
        "table",
        {"cellHeight": "sm", "sortBy": [{"desc": descending, "displayName": sort_by}]},
        {"filterable": True},
    )


# For what `transformations.matrix` gives: one cell for each pair, coloured by its value.
MATRIX = Display(
    "table",
    {"cellHeight": "sm", "showHeader": True},
    {"align": "center", "cellOptions": {"mode": "basic", "type": "color-background"}},
)


def node_graph(
    *, unit: str, second_unit: str, edge_unit: str, second_edge_unit: str, arcs: Mapping[str, str]
) -> Display:
    """A graph from a frame of nodes and one of edges, from left to right; `arcs` have colours.

    Grafana applies no field settings here; units are printed behind the numbers as they stand.
    """
    colors: Sequence[Json] = [{"color": color, "field": name} for name, color in arcs.items()]
    nodes: JsonObject = {"arcs": colors, "mainStatUnit": unit, "secondaryStatUnit": second_unit}
    edges: JsonObject = {"mainStatUnit": edge_unit, "secondaryStatUnit": second_edge_unit}
    return Display("nodeGraph", {"edges": edges, "layoutAlgorithm": "layered", "nodes": nodes})


def worst_first(column: str) -> Display:
    """A matrix whose rows are sorted by one of its columns, the largest value first."""
    order: Sequence[Json] = [{"desc": True, "displayName": column}]
    return replace(MATRIX, options={**MATRIX.options, "sortBy": order})


def number(
    title: str,
    description: str,
    query: Query,
    look: Look,
    *,
    no_value: str,
    thresholds: JsonObject | None = None,
) -> Panel:
    """A number, or one for each series, on a sixth of the width."""
    return Panel(NUMBER, title, description, (query,), look, (4, 4), thresholds, no_value=no_value)


# For a number whose unit is its series' name, such as a currency.
NAMED_NUMBER = replace(NUMBER, options={**NUMBER.options, "textMode": "value_and_name"})
