"""What can be said of a dashboard's JSON without data: what Grafana would reject or misread."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from drawn_panels import substitute

from seedance_obs.dashboards.build import dashboards, render
from seedance_obs.dashboards.grafana import normalise
from seedance_obs.rules.expression import parse, selectors
from tests.dashboards.grafana_engine import known_units

ROOT = Path(__file__).parents[2]
# What Prometheus makes of every target and of every alert.
BUILT_IN = {
    "ALERTS",
    "ALERTS_FOR_STATE",
    "up",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
}
DASHBOARD_FILES = sorted(dashboards().items())


@pytest.fixture(params=DASHBOARD_FILES, ids=lambda pair: pair[0])
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param[1]


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries(dashboard: dict[str, Any]) -> list[str]:
    targets = [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]
    variables = [v["definition"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    selectors = [re.fullmatch(r"label_values\((.+), \w+\)", each)[1] for each in variables]
    annotations = [each["expr"] for each in dashboard["annotations"]["list"]]
    return [substitute(expr) for expr in [*targets, *selectors, *annotations]]


def names_in(expr: str) -> set[str]:
    return {selector.name for selector in selectors(parse(expr))}


def contract() -> set[str]:
    text = (ROOT / "exporters" / "node.prom").read_text()
    return set(re.findall(r"^(?:# TYPE )?([a-z_]\w*)", text, flags=re.MULTILINE))


def rules() -> list[dict[str, Any]]:
    files = (ROOT / "alerts").glob("*.rules.yml")
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def test_a_query_uses_only_names_of_the_contract_or_recorded_ones(dashboard: dict) -> None:
    used = set().union(*(names_in(expr) for expr in queries(dashboard)))
    assert used & contract()
    assert used - contract() - recorded() <= BUILT_IN


def test_every_panel_says_what_it_shows(dashboard: dict) -> None:
    for panel in panels(dashboard):
        assert len(panel["title"]) > 4
        assert len(panel["description"]) > 40, panel["title"]
        assert panel["fieldConfig"]["defaults"]["noValue"], panel["title"]
        assert panel["targets"], panel["title"]


def test_every_unit_is_one_that_grafana_knows(dashboard: dict) -> None:
    fields = [panel["fieldConfig"] for panel in panels(dashboard)]
    used = {field["defaults"]["unit"] for field in fields}
    used |= {
        each["value"]
        for field in fields
        for override in field["overrides"]
        for each in override["properties"]
        if each["id"] == "unit"
    }
    assert used <= known_units()


def test_panels_fit_the_grid_and_do_not_overlap(dashboard: dict) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] >= 0
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_panels_are_numbered_once(dashboard: dict) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert sorted(ids) == list(range(1, len(ids) + 1))


def test_variables_follow_the_time_range_and_a_cluster_label_is_not_needed(dashboard: dict) -> None:
    by_name = {each["name"]: each for each in dashboard["templating"]["list"]}
    assert by_name["datasource"]["label"] == "Data source"
    assert by_name["cluster"]["allValue"] == ".*"
    queried = [each for each in by_name.values() if each["type"] == "query"]
    assert {each["refresh"] for each in queried} == {2}


def test_all_data_comes_from_the_chosen_source(dashboard: dict) -> None:
    text = json.dumps(dashboard)
    assert "${DS_" not in text
    sources = re.findall(r'"datasource": (\{[^{]*\{datasource\}"\}|[^,]*)', text)
    assert set(sources) == {'{"type": "prometheus", "uid": "${datasource}"}'}


def test_links_lead_to_dashboards_and_variables_that_exist(dashboard: dict) -> None:
    declared = {each["uid"]: _variables(each) for each in dashboards().values()}
    urls = re.findall(r'"url": "([^"]+)"', json.dumps(dashboard))
    assert urls
    for url in urls:
        assert url.isascii()
        target = declared[url.split("/d/")[1].split("?")[0]]
        assert set(re.findall(r"(?<=var-)\w+", url)) <= target, url
        passed = set(re.findall(r"(?<=\{)\w+(?=:queryparam)", url))
        assert passed <= target & _variables(dashboard), url


def _variables(dashboard: dict[str, Any]) -> set[str]:
    return {each["name"] for each in dashboard["templating"]["list"]}


def test_firing_alerts_are_marked_on_the_time_axis(dashboard: dict) -> None:
    (annotation,) = dashboard["annotations"]["list"]
    assert "ALERTS" in annotation["expr"]
    assert annotation["enable"]


def test_one_generation_of_grafana_is_written(dashboard: dict) -> None:
    assert 39 <= dashboard["schemaVersion"] <= 41
    kinds = {"row", "stat", "table", "timeseries", "state-timeline", "nodeGraph"}
    kinds |= {"bargauge", "heatmap", "status-history"}
    assert {panel["type"] for panel in dashboard["panels"]} <= kinds
    for panel in panels(dashboard):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None
        values = [step["value"] for step in steps[1:]]
        assert values == sorted(values)
    # Without quotes; texts of Grafana's own are called so as well.
    assert " null" not in re.sub(r'"value": null', "", json.dumps(dashboard))


def test_normalising_drops_nulls_and_old_keys_but_not_a_first_threshold() -> None:
    steps = [{"color": "red", "value": None}]
    old = {"rows": [], "uid": None, "panels": [{"span": 4, "type": "stat", "steps": steps}]}
    assert normalise(old) == {"panels": [{"type": "stat", "steps": steps}]}


def test_rendering_is_sorted_so_that_its_diff_can_be_read() -> None:
    for dashboard in dashboards().values():
        text = render(dashboard)
        assert (
            text
            == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        )
