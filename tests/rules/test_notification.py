"""What a person reads: the template, rendered by amtool, is what the golden texts show."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TEMPLATE = HERE.parents[1] / "alerts" / "seedance.tmpl"
NOTIFICATION = json.loads((HERE / "notification.json").read_text())


def rendered(
    folder: Path,
    name: str,
    notification: dict[str, Any],
    *,
    kind: str = "text",
    template: Path = TEMPLATE,
) -> str:
    data = folder / "notification.json"
    data.write_text(json.dumps(notification))
    return subprocess.run(
        [
            "amtool",
            "template",
            "render",
            f"--template.glob={template}",
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


def foreign_alert(*, labels: dict[str, str]) -> dict[str, Any]:
    alert = {**NOTIFICATION["alerts"][0], "labels": labels, "annotations": {}}
    return {**NOTIFICATION, "alerts": [alert], "commonLabels": labels, "commonAnnotations": {}}


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
            {**NOTIFICATION, "commonLabels": {"severity": "critical", "cluster": "north 1"}},
            foreign_alert(labels={"alertname": "PodCrashes", "namespace": "a"}),
            foreign_alert(labels={"namespace": "a"}),
        )
    ] == [
        "[CRITICAL] north 1: XID 79 on GPU 5 of n1:9101",
        "[RESOLVED] north 1: XID 79 on GPU 5 of n1:9101",
        "[CRITICAL] north 1: SeedanceGpuXidCritical on n1:9101: 2 firing",
        "[CRITICAL] north 1: XID 79 on GPU 5 of n1:9101 (2 firing)",
        "[FIRING] PodCrashes",
        "[FIRING] An alert without a name",
    ]


def test_alerts_that_share_no_way_on_have_one_each(tmp_path):
    alerts = [
        {**alert, "annotations": {**alert["annotations"], "runbook_url": f"https://wiki/{number}"}}
        for number, alert in enumerate(NOTIFICATION["alerts"])
    ]
    shared = {"dashboard": "/d/x"}
    message = {**NOTIFICATION, "alerts": alerts, "commonAnnotations": shared}
    text = rendered(tmp_path, "text", message)
    assert re.findall("Runbook: (.*)", text) == ["https://wiki/0", "https://wiki/1"]
    assert re.findall("Dashboard: (.*)", text) == ["http://127.0.0.1:3000/d/x"]
    mail = rendered(tmp_path, "mail", message, kind="html")
    assert re.findall('"([^"]*)">What to do', mail) == ["https://wiki/0", "https://wiki/1"]
    assert mail.count(">Dashboard<") == 1


def test_other_peoples_alerts_are_told_by_what_they_have(tmp_path):
    alert = foreign_alert(labels={"alertname": "PodCrashes", "namespace": "a", "pod": "b"})
    assert rendered(tmp_path, "text", alert).startswith(
        "PodCrashes\n  Where: namespace a, pod b\n  Since: "
    )
    assert "Where: everywhere\n" in rendered(tmp_path, "text", foreign_alert(labels={}))


def test_a_silence_is_of_what_the_alerts_have_in_common(tmp_path):
    common = {"alertname": "X", "tenant": 'team "A" \\ B+C'}
    said = "filter=%7Balertname%3D%22X%22%2Ctenant%3D%22team%20%5C%22A%5C%22%20%5C%5C%20B%2BC%22%7D"
    text, mail = (
        rendered(tmp_path, name, {**NOTIFICATION, "commonLabels": common}, kind=kind)
        for name, kind in (("text", "text"), ("mail", "html"))
    )
    assert said in text
    assert said.lower() in mail.lower()
    assert "Silence" not in rendered(tmp_path, "text", foreign_alert(labels={}))


def test_a_message_about_many_devices_stays_short(tmp_path):
    many = [NOTIFICATION["alerts"][0]] * 64
    text = rendered(tmp_path, "text", {**NOTIFICATION, "alerts": many})
    assert text.count("Where: ") == 10
    assert "... and more, 64 in all\n" in text


def test_an_alert_without_a_node_says_whom_it_is_about(tmp_path):
    labels = {"severity": "warning", "cluster": "north 1", "tenant": "vision"}
    alert = {**NOTIFICATION["alerts"][0], "labels": labels}
    text = rendered(tmp_path, "text", one_alert(alerts=[alert]))
    assert "Where: cluster north 1, tenant vision\n" in text


def test_addresses_that_are_whole_stay_as_they_are(tmp_path):
    notes = {"runbook_url": "https://wiki.example/x", "dashboard": "https://grafana.example/d/x"}
    for name, kind in (("text", "text"), ("mail", "html")):
        text = rendered(tmp_path, name, one_alert(commonAnnotations=notes), kind=kind)
        assert "127.0.0.1" not in text
        assert all(re.search(rf'[ "]{re.escape(address)}["\n]', text) for address in notes.values())
