"""Small rules to check, each in a folder of its own beside part of the contract."""

from pathlib import Path
from typing import Any

import yaml

from seedance_obs.rules.check import Folders, check_rules
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.runbook import SECTIONS

ROOT = Path(__file__).parents[2]
XID = 'seedance_gpu_xid_errors_total{job="gpu"}'
HEAT = 'seedance_gpu_temperature_celsius{job="gpu"}'
SEEN = 'seedance_gpus_seen{job="gpu"}'
POWER = 'seedance_gpu_power_watts{job="gpu"}'
ENERGY = 'seedance_gpu_energy_joules_total{job="gpu"}'
THRESHOLDS = [
    {"record": "seedance:threshold", "labels": {"of": name}, "expr": "vector(0.5)"}
    for name in ("share", "other")
]
SUM = {"record": "cluster:seedance_gpus_seen:sum", "expr": f"sum({SEEN})"}
ALERT: dict[str, Any] = {
    "alert": "SeedanceTry",
    "expr": f"{HEAT} > 90",
    "labels": {"severity": "warning"},
    "annotations": {
        "summary": "GPU {{ $labels.gpu }} of {{ $labels.instance }} is hot",
        "description": "{{ $value }} degrees on {{ $labels.instance }}.",
        "runbook_url": "alerts/runbook.md#seedancetry",
        "dashboard": "/d/seedance-gpu-topology?var-node={{ $labels.instance }}",
    },
}
RUNBOOK = "# Runbook\n\n## SeedanceTry\n\n" + "\n".join(
    f"### {name}\n\n`nvidia-smi`\n" for name in SECTIONS
)


def check(folder: Path, *rules: dict[str, Any], **options: Any) -> list[Finding]:
    if not any("alert" in rule for rule in rules):
        (folder / "runbook.md").unlink(missing_ok=True)
    group = {"name": "try", "rules": list(rules)}
    (folder / "try.rules.yml").write_text(yaml.safe_dump({"groups": [group]}, sort_keys=False))
    return check_rules(folders(folder, options.pop("tests", None)), **options)


def folders(folder: Path, tests: Path | None = None) -> Folders:
    return Folders(folder, folder / "exporters", ROOT / "dashboards", tests)


def sentences(folder: Path, *rules: dict[str, Any], **options: Any) -> list[str]:
    return [finding.sentence for finding in check(folder, *rules, **options)]


def of_query(folder: Path, expr: str) -> list[str]:
    return sentences(folder, *THRESHOLDS, SUM, {"record": "try", "expr": expr})


def alert(**changes: Any) -> dict[str, Any]:
    notes = {**ALERT["annotations"], **changes.pop("annotations", {})}
    notes = {name: text for name, text in notes.items() if text is not None}
    return {**ALERT, **changes, "annotations": notes}
