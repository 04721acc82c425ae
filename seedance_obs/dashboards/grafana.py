"""Our dashboards as the JSON that Grafana 11 and newer load: the one place that knows grafanalib.

grafanalib writes shapes of many Grafana generations at once; `normalise` leaves those of one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # grafanalib carries no annotations; what leaves this module does

from grafanalib import _gen, core

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.panels import FULL_WIDTH, Panel, Query, Row

SCHEMA_VERSION = 39
PLUGIN_VERSION = "11.1.0"
REFRESH_ON_TIME_RANGE_CHANGE = 2
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

_LEGACY = {
    "dashboard": ("__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style"),
    "panel": ("cacheTimeout", "editable", "error", "height", "hideTimeOverride", "minSpan", "span"),
    "row": (
        "datasource",
        "fieldConfig",
        "links",
        "maxDataPoints",
        "transformations",
        "transparent",
    ),
    "target": ("hide", "interval", "intervalFactor", "metric", "query", "step", "target"),
    "variable": ("auto", "auto_count", "auto_min", "tagValuesQuery", "tagsQuery", "useTags"),
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of a dashboard, filled by a `label_values(...)` query."""

    name: str
    label: str
    query: str
    multi: bool = False
    include_all: bool = False


@dataclass(frozen=True, slots=True)
class Annotation:
    """Marks on every time axis wherever the query has samples."""

    name: str
    expr: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard as a value: panels flow from left to right in the order given."""

    uid: str
    title: str
    description: str
    tags: Sequence[str]
    variables: Sequence[Variable]
    annotations: Sequence[Annotation]
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
        editable=False,
        graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        schemaVersion=SCHEMA_VERSION,
        templating=core.Templating([_datasource(), *map(_template, dashboard.variables)]),
        annotations=core.Annotations([_annotation(a) for a in dashboard.annotations]),
        panels=[
            _row(item, position) if isinstance(item, Row) else _panel(item, position)
            for item, position in _placed(dashboard.panels)
        ],
    )
    plain = json.loads(json.dumps(made, cls=_gen.DashboardEncoder))
    return normalise(plain)


def _placed(items: Sequence[Panel | Row]) -> list[tuple[Panel | Row, Any]]:
    placed, x, y, shelf = [], 0, 0, 0
    for item in items:
        width, height = (FULL_WIDTH, 1) if isinstance(item, Row) else (item.width, item.height)
        if x + width > FULL_WIDTH:
            x, y, shelf = 0, y + shelf, 0
        placed.append((item, core.GridPos(h=height, w=width, x=x, y=y)))
        x, shelf = x + width, max(shelf, height)
    return placed


def _row(row: Row, position: Any) -> Any:
    return core.RowPanel(title=row.title, gridPos=position)


def _panel(panel: Panel, position: Any) -> Any:
    base = core.Panel(
        title=panel.title,
        description=panel.description,
        dataSource=DATASOURCE,
        targets=[_target(query) for query in panel.queries],
        transformations=list(panel.transformations),
        repeat=core.Repeat("v" if panel.repeat else None, panel.repeat),
        maxDataPoints=None,
        gridPos=position,
    )
    return base.panel_json(
        {
            "type": panel.kind,
            "options": panel.options(),
            "fieldConfig": {"defaults": panel.defaults(), "overrides": panel.overrides},
        }
    )


def _target(query: Query) -> Mapping[str, Any]:
    made = core.Target(
        expr=query.expr,
        legendFormat=query.legend or "__auto",
        instant=query.instant,
        refId=query.ref_id,
        datasource=DATASOURCE,
    )
    return {**made.to_json_data(), "range": not query.instant, "editorMode": "code"}


def _datasource() -> Any:
    return core.Template(
        name="datasource", label="Data source", type="datasource", query="prometheus", refresh=1
    )


def _template(variable: Variable) -> Mapping[str, Any]:
    made = core.Template(
        name=variable.name,
        label=variable.label,
        query={"query": variable.query, "refId": variable.name},
        dataSource=DATASOURCE,
        multi=variable.multi,
        includeAll=variable.include_all,
        allValue=".*" if variable.include_all else None,
        refresh=REFRESH_ON_TIME_RANGE_CHANGE,
    )
    return {**made.to_json_data(), "definition": variable.query}


def _annotation(annotation: Annotation) -> Mapping[str, Any]:
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": annotation.expr,
        "hide": False,
        "iconColor": theme.FIRING,
        "name": annotation.name,
        "step": "60s",
        "textFormat": annotation.text,
        "titleFormat": annotation.title,
    }


def normalise(dashboard: Mapping[str, Any]) -> dict[str, Any]:
    """One generation's shape of a dashboard: no nulls, no legacy keys, numbered panels.

    Nulls mean something only in a colour step, whose first value they are; there they stay.
    """
    result = _without(_no_nulls(dashboard), "dashboard")
    result["panels"] = [
        _normal_panel(panel, number) for number, panel in enumerate(result["panels"], start=1)
    ]
    variables = [_without(v, "variable") for v in result["templating"]["list"]]
    result["templating"] = {"list": [{**v, "current": {}} for v in variables]}
    result["timepicker"] = {}
    return result


def _normal_panel(panel: Mapping[str, Any], number: int) -> dict[str, Any]:
    result = {**_without(panel, "panel"), "id": number}
    if result["type"] == "row":
        return _without(result, "row")
    result["pluginVersion"] = PLUGIN_VERSION
    result["targets"] = [_without(target, "target") for target in result["targets"]]
    result["fieldConfig"].setdefault("overrides", [])
    return result


def _without(value: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in _LEGACY[kind]}


def _no_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_no_nulls(item) for item in value]
    if isinstance(value, Mapping):
        keep_nulls = "color" in value and "value" in value
        return {k: _no_nulls(v) for k, v in value.items() if v is not None or keep_nulls}
    return value
