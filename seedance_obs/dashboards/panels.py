"""Panels as plain values: what a panel asks and how it shows the answer, before it is Grafana JSON.

Only what our dashboards use; `grafana` turns these into the file that Grafana loads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from seedance_obs.dashboards.theme import Json, JsonObject, Look, flat

FULL_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query; `instant` ones are answered for the end of the time range only."""

    expr: str
    legend: str = ""
    instant: bool = False
    ref_id: str = "A"


@dataclass(frozen=True, slots=True)
class Row:
    """A heading above the panels that follow it."""

    title: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What all panels have. `no_value` is what a reader sees where there is no answer.

    Sizes are in Grafana's grid: 24 columns, rows of about 38 pixels.
    """

    kind: ClassVar[str]

    title: str
    description: str
    queries: Sequence[Query]
    look: Look
    no_value: str
    width: int
    height: int
    thresholds: JsonObject | None = None
    transformations: Sequence[JsonObject] = ()
    overrides: Sequence[JsonObject] = ()
    links: Sequence[JsonObject] = ()
    repeat: str | None = None

    def options(self) -> JsonObject:
        """The options of this kind of panel."""
        return {}

    def custom(self) -> JsonObject:
        """The field settings that only this kind of panel has."""
        return {}

    def color(self) -> JsonObject:
        """How values get their colour."""
        return {"mode": "thresholds"}

    def defaults(self) -> JsonObject:
        """Grafana's `fieldConfig.defaults` of the panel."""
        return {
            "color": self.color(),
            "custom": self.custom(),
            "links": self.links,
            "max": self.look.high,
            "min": self.look.low,
            "noValue": self.no_value,
            "thresholds": self.thresholds or flat(self.look),
            "unit": self.look.unit,
        }


@dataclass(frozen=True, kw_only=True)
class Stat(Panel):
    """Big numbers, the last value of each query."""

    kind = "stat"

    def options(self) -> JsonObject:
        """Value, name and a background in the colour of the threshold."""
        return {
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "auto",
        }


@dataclass(frozen=True, kw_only=True)
class TimeSeries(Panel):
    """Lines over time, one per series, with a sortable legend."""

    kind = "timeseries"

    def color(self) -> JsonObject:
        """Lines must differ from each other, so the palette and not the threshold decides."""
        return {"mode": "palette-classic"}

    def custom(self) -> JsonObject:
        """Thin unfilled lines that break where there was no reading."""
        return {"drawStyle": "line", "fillOpacity": 0, "lineWidth": 1, "spanNulls": False}

    def options(self) -> JsonObject:
        """A table of mean and maximum beneath, and all lines in one tooltip, highest first."""
        return {
            "legend": {
                "calcs": ["mean", "max", "lastNotNull"],
                "displayMode": "table",
                "placement": "right",
                "showLegend": True,
                "sortBy": "Mean",
                "sortDesc": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }


@dataclass(frozen=True, kw_only=True)
class StateTimeline(Panel):
    """One coloured band per series over time, a page of bands at a time."""

    kind = "state-timeline"
    per_page: int = 16

    def custom(self) -> JsonObject:
        """Bands end two minutes after their last reading instead of lasting until the next."""
        return {"fillOpacity": 90, "insertNulls": 120_000, "lineWidth": 0, "spanNulls": False}

    def options(self) -> JsonObject:
        """Neighbouring values of the same threshold become one band; no text on the bands."""
        return {
            "alignValue": "left",
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "mergeValues": True,
            "perPage": self.per_page,
            "rowHeight": 0.9,
            "showValue": "never",
            "tooltip": {"mode": "single", "sort": "none"},
        }


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """Rows of values, sorted by one column."""

    kind = "table"
    sort_by: str
    descending: bool = False

    def custom(self) -> JsonObject:
        """Plain cells; overrides colour the ones that matter."""
        return {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}

    def options(self) -> JsonObject:
        """Small rows, sorted."""
        return {
            "cellHeight": "sm",
            "footer": {"show": False},
            "showHeader": True,
            "sortBy": [{"desc": self.descending, "displayName": self.sort_by}],
        }


@dataclass(frozen=True, kw_only=True)
class NodeGraph(Panel):
    """A graph from one frame of nodes and one of edges.

    Grafana applies no field settings here but units, and those only from the options, where they
    are printed behind the number as they stand.
    """

    kind = "nodeGraph"
    main_unit: str
    secondary_unit: str
    edge_unit: str
    arcs: Sequence[tuple[str, str]] = field(default=())

    def options(self) -> JsonObject:
        """Arcs in their colours; the layout is only used where positions are not known."""
        arcs: Sequence[Json] = [{"color": color, "field": name} for name, color in self.arcs]
        return {
            "edges": {"mainStatUnit": self.edge_unit},
            "layoutAlgorithm": "layered",
            "nodes": {
                "arcs": arcs,
                "mainStatUnit": self.main_unit,
                "secondaryStatUnit": self.secondary_unit,
            },
            "zoomMode": "cooperative",
        }


def column(name: str, **properties: Json) -> JsonObject:
    """An override of the field that is called `name`."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [
            {"id": key.replace("__", "."), "value": value} for key, value in properties.items()
        ],
    }
