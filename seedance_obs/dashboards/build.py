"""The dashboard files: which there are, and their text."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any  # Grafana's JSON, as `grafana` gives it

from seedance_obs.dashboards.exporter_health import exporter_health
from seedance_obs.dashboards.fleet import fleet
from seedance_obs.dashboards.grafana import Dashboard, grafana_json
from seedance_obs.dashboards.health import health
from seedance_obs.dashboards.leaks import leaks
from seedance_obs.dashboards.options import Options
from seedance_obs.dashboards.sensitivity import sensitivity
from seedance_obs.dashboards.tenants import tenants
from seedance_obs.dashboards.topology_view import topology_view
from seedance_obs.dashboards.workload import workload

SHIPPED: Mapping[str, Callable[[], Dashboard]] = {
    "exporter-health.json": exporter_health,
    "fleet-overview.json": fleet,
    "gpu-health.json": health,
    "gpu-utilization-topology-view.json": topology_view,
    "leaks-and-idle.json": leaks,
    "tenants-and-workloads.json": tenants,
    "topology-sensitivity.json": sensitivity,
    "workload.json": workload,
}


def dashboards(options: Options | None = None) -> dict[str, dict[str, Any]]:
    """Every dashboard in Grafana's JSON model, by the name of its file."""
    chosen = options or Options()
    return {name: grafana_json(make(), chosen) for name, make in SHIPPED.items()}


def write_dashboards(folder: Path, options: Options) -> list[Path]:
    """Write every dashboard into a folder, and say which files these are.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, dashboard in dashboards(options).items():
        (folder / name).write_text(render(dashboard))
        written.append(folder / name)
    return written


def render(dashboard: Mapping[str, Any]) -> str:
    """The text of a dashboard file: sorted and indented, so that its diff is its review."""
    return json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
