"""The dashboard files: which there are, and their text."""

import json
from collections.abc import Mapping
from typing import Any  # Grafana's JSON, as `grafana` gives it

from seedance_obs.dashboards.grafana import grafana_json
from seedance_obs.dashboards.topology_view import topology_view


def dashboards() -> dict[str, dict[str, Any]]:
    """Every dashboard in Grafana's JSON model, by the name of its file."""
    return {"gpu-utilization-topology-view.json": grafana_json(topology_view())}


def render(dashboard: Mapping[str, Any]) -> str:
    """The text of a dashboard file: sorted and indented, so that its diff is its review."""
    return json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
