"""A panel as Grafana would draw it: its queries asked and its transformations run for real."""

import re
from typing import Any

from loopback_prometheus import Prometheus

from tests.dashboards.grafana_engine import run_grafana


def substitute(expr: str, *, node: str = ".*") -> str:
    for name, value in {
        "$cluster": ".*",
        "$node": node,
        "$its_node": ".*",
        "$workload": "w",
        "$tenant": ".*",
        "$domain": ".*",
        "$__rate_interval": "4s",
        "$__range": "60s",
    }.items():
        expr = expr.replace(name, value)
    # A dollar with a digit is a group of label_replace, which Grafana passes on.
    assert not re.search(r"\$\D", expr), f"a variable that the dashboard does not declare: {expr}"
    return expr


def answers(prometheus: Prometheus, panel: dict[str, Any], *, node: str) -> list[dict[str, Any]]:
    return [
        {
            "refId": target["refId"],
            "legend": target["legendFormat"],
            "expr": target["expr"],
            "result": _ask(prometheus, target, node),
        }
        for target in panel["targets"]
    ]


def _ask(prometheus: Prometheus, target: dict[str, Any], node: str) -> list[dict[str, Any]]:
    expr = substitute(target["expr"], node=node)
    return prometheus.instant(expr) if target["instant"] else prometheus.range(expr)


def draw_all(
    prometheus: Prometheus, asked: list[tuple[dict[str, Any], str]]
) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """The transformed frames by panel id and node, all in one start of Node."""
    requests = [
        {
            "transformations": panel["transformations"],
            "answers": answers(prometheus, panel, node=node),
        }
        for panel, node in asked
    ]
    keys = [(panel["id"], node) for panel, node in asked]
    shown = run_grafana(requests)["panels"]
    return {
        key: [frame for frame in each["frames"] if frame["fields"]]
        for key, each in zip(keys, shown, strict=True)
    }


def rows(frame: dict[str, Any]) -> list[dict[str, Any]]:
    names = [field["name"] for field in frame["fields"]]
    assert len(names) == len(set(names)), names
    columns = [field["values"] for field in frame["fields"]]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
