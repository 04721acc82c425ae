"""The dashboard files: which there are, and how they are written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any  # Grafana's JSON, as `grafana` gives it

from seedance_obs.dashboards.grafana import grafana_json
from seedance_obs.dashboards.topology_view import topology_view

DASHBOARDS = {"gpu-utilization-topology-view.json": topology_view}


def dashboards() -> dict[str, dict[str, Any]]:
    """Every dashboard in Grafana's JSON model, by the name of its file."""
    return {name: grafana_json(make()) for name, make in DASHBOARDS.items()}


def render(dashboard: Mapping[str, Any]) -> str:
    """The text of a dashboard file: sorted and indented, so that its diff is its review."""
    return json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_dashboards(folder: Path) -> list[Path]:
    """Writes every dashboard into the folder and returns the files, replacing what was there."""
    written = []
    for name, dashboard in dashboards().items():
        path = folder / name
        path.write_text(render(dashboard), encoding="utf-8")
        written.append(path)
    return written
