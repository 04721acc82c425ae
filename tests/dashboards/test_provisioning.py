"""What Grafana is told to load is what is built, unchanged."""

import json
from pathlib import Path

import yaml

from seedance_obs.dashboards.build import dashboards

ROOT = Path(__file__).parents[2]
PROVISIONING = ROOT / "deploy/grafana/provisioning"


def _only(kind: str, key: str) -> dict:
    told = yaml.safe_load((PROVISIONING / kind / "seedance.yaml").read_text())
    assert told["apiVersion"] == 1
    (entry,) = told[key]
    return entry


def test_dashboards_come_from_files_and_are_not_edited_in_the_browser() -> None:
    provider = _only("dashboards", "providers")
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert Path(provider["options"]["path"]).is_absolute()


def test_a_dashboard_finds_its_data_source_by_kind_without_any_input() -> None:
    source = _only("datasources", "datasources")
    for dashboard in dashboards().values():
        (choice,) = (
            each for each in dashboard["templating"]["list"] if each["type"] == "datasource"
        )
        assert choice["query"] == source["type"]
        assert not {"__inputs", "__requires", "id"} & dashboard.keys()
        assert "${DS_" not in json.dumps(dashboard)


def test_the_committed_files_are_those_that_are_built_and_no_others() -> None:
    committed = {
        path.name: json.loads(path.read_text()) for path in (ROOT / "dashboards").glob("*.json")
    }
    assert committed == dashboards()
    assert len({each["uid"] for each in committed.values()}) == len(committed)
    assert len({each["title"] for each in committed.values()}) == len(committed)
