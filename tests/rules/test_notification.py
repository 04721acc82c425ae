"""What a person reads: the template, rendered by amtool, is what the golden texts show."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "alerts"
NOTIFICATION = json.loads((HERE / "notification.json").read_text())


def rendered(folder: Path, name: str, notification: dict[str, Any], *, kind: str = "text") -> str:
    data = folder / "notification.json"
    data.write_text(json.dumps(notification))
    return subprocess.run(
        [
            "amtool",
            "template",
            "render",
            f"--template.glob={ALERTS / 'seedance.tmpl'}",
            f"--template.type={kind}",
            f"--template.data={data}",
            f'--template.text={{{{ template "seedance.{name}" . }}}}',
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout


def one_alert(**changes: Any) -> dict[str, Any]:
    first = NOTIFICATION["alerts"][0]
    common = NOTIFICATION["commonAnnotations"] | first["annotations"]
    return {**NOTIFICATION, "alerts": [first], "commonAnnotations": common, **changes}


@pytest.mark.parametrize(("name", "kind"), [("text", "text"), ("mail", "html")])
def test_a_message_reads_as_its_golden_text(tmp_path, request, name, kind):
    golden = HERE / "golden" / f"{name}.{'html' if kind == 'html' else 'txt'}"
    text = rendered(tmp_path, name, NOTIFICATION, kind=kind)
    if request.config.getoption("--update-golden"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_the_title_is_the_summary_of_one_alert_and_counts_several(tmp_path):
    over = {**NOTIFICATION["alerts"][0], "status": "resolved", "endsAt": "2026-03-01T11:00:00Z"}
    assert [
        rendered(tmp_path, "title", notification)
        for notification in (
            one_alert(),
            one_alert(status="resolved", alerts=[over]),
            NOTIFICATION,
            one_alert(commonLabels={}, commonAnnotations={}),
        )
    ] == [
        "[CRITICAL] XID 79 on GPU 5 of n1:9101",
        "[RESOLVED] XID 79 on GPU 5 of n1:9101",
        "[CRITICAL] SeedanceGpuXidCritical on n1:9101: 2 firing",
        "[FIRING] Several alerts: 1 firing",
    ]


def test_a_message_about_many_devices_stays_short(tmp_path):
    many = [NOTIFICATION["alerts"][0]] * 64
    text = rendered(tmp_path, "text", {**NOTIFICATION, "alerts": many})
    assert text.count("Where: ") == 10
    assert "... and more, 64 in all\n" in text


def test_an_alert_of_the_whole_fleet_names_no_node(tmp_path):
    alert = {**NOTIFICATION["alerts"][0], "labels": {"severity": "warning"}}
    text = rendered(tmp_path, "text", one_alert(alerts=[alert]))
    assert "Where: the whole fleet\n" in text


def test_addresses_that_are_whole_stay_as_they_are(tmp_path):
    notes = {"runbook_url": "https://wiki.example/x", "dashboard": "https://grafana.example/d/x"}
    for name, kind in (("text", "text"), ("mail", "html")):
        text = rendered(tmp_path, name, one_alert(commonAnnotations=notes), kind=kind)
        assert "127.0.0.1" not in text
        assert all(re.search(rf'[ "]{re.escape(address)}["\n]', text) for address in notes.values())
