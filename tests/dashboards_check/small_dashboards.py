"""A small dashboard without fault, and one as Grafana 6 wrote them."""

import copy
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
HEAT = 'max by (instance, gpu) (some_heat_celsius{job=~"$job",instance=~"$instance"})'


def choice(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": SOURCE,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "refresh": 2,
        "query": {"query": f"label_values(up, {name})", "refId": name},
    }


def panel(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": "How hot are GPUs?",
        "description": "Degrees, GPU by GPU.",
        "datasource": SOURCE,
        "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
        "fieldConfig": {
            "defaults": {
                "unit": "celsius",
                "noValue": "no GPU answers",
                "thresholds": {
                    "steps": [{"color": "green", "value": None}, {"color": "red", "value": 80}]
                },
                "links": [{"title": "node", "url": "/d/fine?var-instance=x&${job:queryparam}"}],
            },
            "overrides": [],
        },
        "targets": [{"refId": "A", "expr": HEAT, "legendFormat": "{{instance}} GPU {{gpu}}"}],
        "transformations": [],
        **changes,
    }


def fine() -> dict[str, Any]:
    datasource = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }
    return copy.deepcopy(
        {
            "uid": "fine",
            "title": "Fine",
            "editable": False,
            "schemaVersion": 39,
            "annotations": {"list": [{"expr": 'ALERTS{alertstate="firing"}'}]},
            "templating": {"list": [datasource, choice("job"), choice("instance")]},
            "panels": [panel(1)],
        }
    )


def old() -> dict[str, Any]:
    """Rows of AngularJS panels, a data source of the import dialog, no uid."""
    graph = {
        "type": "graph",
        "title": "Requests",
        "datasource": "${DS_PROMETHEUS}",
        "span": 6,
        "yaxes": [{"format": "reqs/s"}, {"format": "short"}],
        "targets": [
            {
                "refId": "A",
                "expr": 'sum(rate(http_requests_total{job="[[job]]"}[$interval])) by (code)',
                "legendFormat": "{{code}}",
                "intervalFactor": 2,
                "step": 10,
            },
            {"refId": "B", "expr": "http_requests_total{"},
        ],
        "nullPointMode": "null as zero",
    }
    table = {"type": "table", "id": 7, "styles": [], "targets": None, "datasource": None}
    return {
        "__inputs": [
            {"name": "DS_PROMETHEUS", "type": "datasource", "pluginId": "prometheus"},
        ],
        "id": None,
        "uid": None,
        "title": "Requests",
        "schemaVersion": 22,
        "rows": [{"title": "All", "panels": [graph, {"type": "singlestat", "id": 7}]}],
        "panels": [{"type": "row", "collapsed": True, "id": 1, "panels": [table]}],
        "templating": {
            "list": [
                {"name": "job", "type": "query", "query": "job_names()", "datasource": None},
                {"name": "interval", "type": "interval", "query": "1m,5m"},
            ]
        },
        "annotations": {"list": None},
        "time": {"from": "now-6h", "to": "now"},
    }
