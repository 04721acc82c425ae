"""Our dashboards as the JSON that Grafana 11 and newer load: the one place that knows grafanalib.

grafanalib writes shapes of many Grafana generations at once; `normalise` leaves those of one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # grafanalib carries no annotations; what leaves this module does

from grafanalib import _gen, core

from seedance_obs.dashboards import links, theme
from seedance_obs.dashboards.options import Options
from seedance_obs.dashboards.panels import Panel, Query, Row
from seedance_obs.dashboards.queries import scope
from seedance_obs.dashboards.variables import Variable

SCHEMA_VERSION = 39
PLUGIN_VERSION = "11.1.0"
GRID_COLUMNS = 24
REFRESH_ON_TIME_RANGE_CHANGE = 2
NATURAL = 7  # the order of sorting: node2 before node10, whatever the case
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
OTHER_DASHBOARDS = {
    "asDropdown": True,
    "icon": "external link",
    "includeVars": True,
    "keepTime": True,
    "tags": [links.TAG],
    "targetBlank": False,
    "title": "Seedance",
    "type": "dashboards",
}
LEGACY = re.compile(
    "__inputs|cacheTimeout|editable|error|gnetId|height|hideControls|hideTimeOverride|minSpan|rows"
    "|sharedCrosshair|span|style"
)


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard as a value: panels flow from left to right in the order given."""

    uid: str
    title: str
    description: str
    variables: Sequence[Variable]
    panels: Sequence[Panel | Row]
    tags: Sequence[str] = ()
    since: str = "now-1h"


def grafana_json(dashboard: Dashboard, options: Options) -> dict[str, Any]:
    """The dashboard as Grafana's classic JSON model, normalised."""
    made = core.Dashboard(
        uid=dashboard.uid,
        title=dashboard.title,
        description=dashboard.description,
        tags=sorted({"gpu", links.TAG, *dashboard.tags}),
        timezone="browser",
        refresh="30s",
        time=core.Time(dashboard.since, "now"),
        graphTooltip=core.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        schemaVersion=SCHEMA_VERSION,
        links=[OTHER_DASHBOARDS],
        templating=core.Templating(
            [_datasource(options), *(_variable(each, options) for each in dashboard.variables)]
        ),
        annotations=core.Annotations([_firing(options)]),
        panels=_placed(dashboard.panels, options),
    )
    plain = json.loads(json.dumps(made, cls=_gen.DashboardEncoder))
    return {**normalise(plain), "editable": False, "timepicker": {}}


def _placed(items: Sequence[Panel | Row], options: Options) -> list[Any]:
    placed, x, y, shelf = [], 0, 0, 0
    for number, item in enumerate(items, start=1):
        width, height = item.size
        if x + width > GRID_COLUMNS:
            x, y, shelf = 0, y + shelf, 0
        position = {"h": height, "w": width, "x": x, "y": y}
        made = _row(item) if isinstance(item, Row) else _panel(item, options)
        placed.append({**made, "gridPos": position, "id": number})
        x, shelf = x + width, max(shelf, height)
    return placed


def _row(row: Row) -> dict[str, Any]:
    return {"collapsed": False, "panels": [], "title": row.title, "type": "row"}


def _panel(panel: Panel, options: Options) -> dict[str, Any]:
    display = panel.display
    base = core.Panel(
        title=panel.title,
        description=panel.description,
        dataSource=DATASOURCE,
        targets=[_target(query, panel, options) for query in panel.queries],
        transformations=options.renamed(panel.transformations),
        interval=options.scrape_interval if display.over_time else None,
        repeat=core.Repeat("v" if panel.repeat else None, panel.repeat),
        maxDataPoints=display.points,
    )
    made = base.panel_json(
        {
            "type": display.kind,
            "pluginVersion": PLUGIN_VERSION,
            "options": options.renamed(display.options),
            "fieldConfig": {
                "defaults": options.renamed(panel.defaults()),
                "overrides": options.renamed(panel.overrides),
            },
        }
    )
    return dict(made)


def _target(query: Query, panel: Panel, options: Options) -> dict[str, Any]:
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": options.expr(query.expr),
        "format": "time_series",
        "instant": not panel.display.over_time,
        # Of it, not of the panel's, Grafana makes the rate interval: four scrapes at least.
        "interval": options.scrape_interval,
        "legendFormat": options.legend(query.legend),
        "range": panel.display.over_time,
        "refId": query.ref_id,
    }


def _datasource(options: Options) -> dict[str, Any]:
    chosen = {"text": options.datasource, "value": options.datasource}
    return {
        "current": chosen if options.datasource else {},
        "label": "Data source",
        "name": "datasource",
        "query": "prometheus",
        "type": "datasource",
    }


def _variable(variable: Variable, options: Options) -> dict[str, Any]:
    query = options.expr(variable.query)
    return {
        "allValue": variable.all_value if variable.include_all else None,
        "current": {"text": "All", "value": "$__all"} if variable.include_all else {},
        "datasource": DATASOURCE,
        "definition": query,
        "includeAll": variable.include_all,
        "label": variable.label,
        "multi": variable.multi,
        "name": variable.name,
        "query": {"query": query, "refId": variable.name},
        "refresh": REFRESH_ON_TIME_RANGE_CHANGE,
        "sort": NATURAL,
        "type": "query",
    }


def _firing(options: Options) -> dict[str, Any]:
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": options.expr(scope.FIRING),
        "iconColor": theme.FIRING,
        "name": "Firing alerts",
        "step": "60s",
        "textFormat": "{{instance}}",
        "titleFormat": "{{alertname}}",
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
