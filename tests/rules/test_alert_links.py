"""Links that a webhook passes on as they are, from addresses that are said once."""

import subprocess
from pathlib import Path

import yaml
from click.testing import CliRunner

from seedance_obs.cli import main
from tests.rules.running_alertmanager import ALERTS
from tests.rules.test_notification import NOTIFICATION, rendered

GRAFANA, RUNBOOKS = "https://grafana.example", "https://git.example:8443/ops/seedance/blob/main"


def copied(folder: Path, *options: str) -> Path:
    done = CliRunner().invoke(main, ["assets", "copy", str(folder), *options])
    assert done.exit_code == 0, done.output
    return folder / "alerts"


def links(folder: Path, name: str) -> list[str]:
    read = [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.rules.yml"))]
    rules = [rule for each in read for group in each["groups"] for rule in group["rules"]]
    return [rule["annotations"][name] for rule in rules if "alert" in rule]


def test_every_link_is_an_address_once_that_is_said(tmp_path: Path) -> None:
    alerts = copied(tmp_path, "--grafana-url", f"{GRAFANA}/", "--runbooks-url", RUNBOOKS)
    for name, before in (("dashboard", GRAFANA), ("runbook_url", f"{RUNBOOKS}/")):
        assert links(ALERTS, name)
        assert links(alerts, name) == [before + path for path in links(ALERTS, name)]
    check = ["promtool", "check", "rules", *map(str, sorted(alerts.glob("*.rules.yml")))]
    subprocess.run(check, check=True, capture_output=True, timeout=30)


def test_mail_and_chat_lead_there_as_well(tmp_path: Path) -> None:
    alerts = copied(tmp_path, "--grafana-url", GRAFANA, "--runbooks-url", RUNBOOKS)
    text = rendered(tmp_path, "text", NOTIFICATION, template=alerts / "seedance.tmpl")
    assert f"Runbook: {RUNBOOKS}/alerts/runbook.md#" in text
    assert f"Dashboard: {GRAFANA}/d/" in text


def test_links_stay_paths_where_nothing_is_said(tmp_path: Path) -> None:
    alerts = copied(tmp_path)
    for file in (*ALERTS.glob("*.rules.yml"), ALERTS / "seedance.tmpl"):
        assert (alerts / file.name).read_bytes() == file.read_bytes()


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    command = ["assets", "copy", str(tmp_path), "--grafana-url", "grafana {{ . }}"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert "found grafana {{ . }}" in done.output
