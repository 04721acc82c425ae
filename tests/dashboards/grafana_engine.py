"""Grafana's own data engine, run under Node."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

HARNESS = Path(__file__).parents[1] / "grafana"
NODE_SECONDS = 120


def run_grafana(
    panels: list[dict[str, Any]], probes: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """What each panel shows, how values look, and all unit ids that Grafana knows."""
    done = subprocess.run(
        ["node", "transform.mjs"],
        cwd=HARNESS,
        input=json.dumps({"panels": panels, "probes": probes or []}),
        capture_output=True,
        text=True,
        timeout=NODE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def known_units() -> frozenset[str]:
    """The ids of all units of Grafana."""
    return frozenset(run_grafana([])["units"])
