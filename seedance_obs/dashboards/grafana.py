"""Our dashboards as the JSON that Grafana 11 and newer load: the one place that knows grafanalib.

grafanalib writes shapes of many Grafana generations at once; `normalise` leaves those of one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # grafanalib carries no annotations; what leaves this module does

from grafanalib import _gen, core

from seedance_obs.dashboards import queries, theme
from seedance_obs.dashboards.panels import Panel, Query, Row

SCHEMA_VERSION = 39
PLUGIN_VERSION = "11.1.0"
GRID_COLUMNS = 24
REFRESH_ON_TIME_RANGE_CHANGE = 2
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
CHOOSE_DATASOURCE = {
    "current": {},
    "label": "Data source",
    "name": "datasource",
    "query": "prometheus",
    "type": "datasource",
}
FIRING_ALERTS = {
    "datasource": DATASOURCE,
    "enable": True,
    "expr": queries.FIRING,
    "iconColor": theme.FIRING,
    "name": "Firing alerts",
    "step": "60s",
    "textFormat": "{{instance}}",
    "titleFormat": "{{alertname}}",
}
LEGACY = re.compile(
    "__inputs|cacheTimeout|editable|error|gnetId|height|hideControls|hideTimeOverride|minSpan|rows"
    "|sharedCrosshair|span|style"
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of a dashboard, filled by a `label_values(...)` query."""

    name: str
    label: str
    query: str
    multi: bool = False
    include_all: bool = False


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard as a value: panels flow from left to right in the order given."""

    uid: str
    title: str
    description: str
    tags: Sequence[str]
    variables: Sequence[Variable]
    panels: Sequence[Panel | Row]


def grafana_json(dashboard: Dashboard) -> dict[str, Any]:
    """The dashboard as Grafana's classic JSON model, normalised."""
    made = core.Dashboard(
        uid=dashboard.uid,
        title=dashboard.title,
        description=dashboard.description,
        tags=sorted(dashboard.tags),
        timezone="browser",
        refresh="30s",
        time=core.Time("now-1h", "now"),
        graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        schemaVersion=SCHEMA_VERSION,
        templating=core.Templating([CHOOSE_DATASOURCE, *map(_variable, dashboard.variables)]),
        annotations=core.Annotations([FIRING_ALERTS]),
        panels=_placed(dashboard.panels),
    )
    plain = json.loads(json.dumps(made, cls=_gen.DashboardEncoder))
    return {**normalise(plain), "editable": False, "timepicker": {}}


def _placed(items: Sequence[Panel | Row]) -> list[Any]:
    placed, x, y, shelf = [], 0, 0, 0
    for number, item in enumerate(items, start=1):
        width, height = item.size
        if x + width > GRID_COLUMNS:
            x, y, shelf = 0, y + shelf, 0
        position = {"h": height, "w": width, "x": x, "y": y}
        made = _row(item) if isinstance(item, Row) else _panel(item)
        placed.append({**made, "gridPos": position, "id": number})
        x, shelf = x + width, max(shelf, height)
    return placed


def _row(row: Row) -> dict[str, Any]:
    return {"collapsed": False, "panels": [], "title": row.title, "type": "row"}


def _panel(panel: Panel) -> dict[str, Any]:
    base = core.Panel(
        title=panel.title,
        description=panel.description,
        dataSource=DATASOURCE,
        targets=[_target(query, panel) for query in panel.queries],
        transformations=list(panel.transformations),
        repeat=core.Repeat("v" if panel.repeat else None, panel.repeat),
        maxDataPoints=None,
    )
    made = base.panel_json(
        {
            "type": panel.display.kind,
            "pluginVersion": PLUGIN_VERSION,
            "options": panel.display.options,
            "fieldConfig": {"defaults": panel.defaults(), "overrides": panel.overrides},
        }
    )
    return dict(made)


def _target(query: Query, panel: Panel) -> dict[str, Any]:
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "format": "time_series",
        "instant": not panel.display.over_time,
        "legendFormat": query.legend,
        "range": panel.display.over_time,
        "refId": query.ref_id,
    }


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "allValue": ".*" if variable.include_all else None,
        "current": {},
        "datasource": DATASOURCE,
        "definition": variable.query,
        "includeAll": variable.include_all,
        "label": variable.label,
        "multi": variable.multi,
        "name": variable.name,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": REFRESH_ON_TIME_RANGE_CHANGE,
        "sort": 1,
        "type": "query",
    }


def normalise(value: Any) -> Any:
    """The JSON without nulls and without the keys that Grafana has given up.

    Nulls mean something only in a colour step, whose first value they are; there they stay.
    """
    if isinstance(value, list):
        return [normalise(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    nulls = "color" in value and "value" in value
    return {
        key: normalise(item)
        for key, item in value.items()
        if not LEGACY.fullmatch(key) and (item is not None or nulls)
    }
