"""Every rule over a dashboard that breaks it and over one that does not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seedance_obs.dashboards.check.check import WANTED, check, known_series
from seedance_obs.dashboards.check.exclusions import UNUSED
from seedance_obs.dashboards.check.files import read_dashboards
from seedance_obs.dashboards.check.panel_rules import IDS
from seedance_obs.dashboards.check.rule import Finding
from tests.dashboards.grafana_engine import HARNESS, run_grafana
from tests.dashboards_check.small_dashboards import fine, old, panel

ROOT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any]], object]
CONTRACT = '# TYPE some_heat_celsius gauge\nsome_heat_celsius{gpu="0"} 40\n'


def found(folder: Path, *dashboards: Any, contract: str = "") -> list[Finding]:
    for number, each in enumerate(dashboards):
        (folder / f"{number}.json").write_text(json.dumps(each))
    known = None
    if contract:
        (folder / "try.prom").write_text(contract)
        known = known_series([folder / "try.prom"], None)
    return check(read_dashboards([str(folder)], known=known, all_names=True))


def target(**values: Any) -> Change:
    return lambda made: made["panels"][0]["targets"][0].update(values)


def expr(text: str) -> Change:
    return target(expr=text)


def on_panel(**values: Any) -> Change:
    return lambda made: made["panels"][0].update(values)


def looks(**values: Any) -> Change:
    return lambda made: made["panels"][0]["fieldConfig"]["defaults"].update(values)


def whole(**values: Any) -> Change:
    return lambda made: made.update(values)


def variable(number: int, **values: Any) -> Change:
    return lambda made: made["templating"]["list"][number].update(values)


def loki(text: str) -> Change:
    return target(expr=text, datasource={"type": "loki", "uid": "x"})


def link(url: str) -> Change:
    return looks(links=[{"url": url}])


def moved(identity: str, **options: Any) -> Change:
    return on_panel(transformations=[{"id": identity, "options": options}])


def without_variable(made: dict[str, Any]) -> None:
    made["templating"]["list"] = made["templating"]["list"][:1]


BOTH = '{job=~"$job",instance=~"$instance"}'
BAD: list[tuple[str, Change]] = [
    ("template-datasource-rule", variable(0, name="ds")),
    ("template-datasource-rule", variable(0, label="DS")),
    ("template-job-rule", without_variable),
    ("template-job-rule", variable(1, allValue=".*")),
    ("template-instance-rule", without_variable),
    ("template-instance-rule", variable(2, multi=False)),
    ("template-label-promql-rule", variable(1, query="label_values(up{, job)")),
    ("template-label-promql-rule", variable(1, query="values(up, job)")),
    ("template-on-time-change-reload-rule", variable(1, refresh=1)),
    ("panel-datasource-rule", on_panel(datasource="Prometheus")),
    ("panel-title-description-rule", on_panel(title="")),
    ("panel-title-description-rule", on_panel(description=" ")),
    ("panel-units-rule", looks(unit="")),
    ("panel-no-targets-rule", on_panel(targets=[])),
    ("target-logql-rule", loki('sum(rate({app="x"[$__auto]))')),
    ("target-logql-rule", loki("rate(app[$__auto])")),
    ("target-logql-auto-rule", loki('sum(rate({app="x"} |= "[5m]" [1m]))')),
    ("target-promql-rule", expr("sum(up{")),
    ("target-promql-rule", target(panelId=99)),
    ("target-rate-interval-rule", expr(f"rate(x_total{BOTH}[5m])")),
    ("target-rate-interval-rule", expr(f"sum(irate(x_total{BOTH}[$__interval]))")),
    ("target-job-rule", expr('x{instance=~"$instance"}')),
    ("target-job-rule", expr('x{instance=~"$instance",job="$job"}')),
    ("target-instance-rule", expr('x{job=~"$job"} + y{job=~"$job",instance=~"$instance"}')),
    ("target-counter-agg-rule", expr(f"sum(x_total{BOTH})")),
    ("target-counter-agg-rule", expr(f"avg_over_time(x_total{BOTH}[5m])")),
    ("uneditable-dashboard", whole(editable=True)),
    ("unit-known-rule", looks(unit="degrees")),
    ("panel-no-value-rule", looks(noValue="")),
    ("thresholds-rule", looks(thresholds={"steps": [{"value": 0}, {"value": 1}]})),
    ("thresholds-rule", looks(thresholds={"steps": [{}, {"value": 2}, {"value": 1}]})),
    ("metric-known-rule", expr(f"unheard_of{BOTH}")),
    ("variable-declared-rule", expr(f"topk($most, x{BOTH})")),
    ("legend-host-rule", target(legendFormat="GPU {{gpu}}")),
    ("alerts-annotation-rule", whole(annotations={})),
    ("transformer-known-rule", moved("groupByMatrix")),
    (
        "matrix-rule",
        on_panel(targets=[{}, {}], transformations=[{"id": "groupingToMatrix"}]),
    ),
    ("node-graph-rule", on_panel(type="nodeGraph")),
    (
        "node-graph-rule",
        on_panel(type="nodeGraph", targets=[], transformations=[{"id": "renameByRegex"}]),
    ),
    ("schema-version-rule", whole(schemaVersion=22)),
    ("uid-rule", whole(uid=None)),
    ("uid-rule", whole(uid="a b")),
    ("uid-rule", whole(uid="x" * 41)),
    ("panel-id-rule", whole(panels=[panel(1), {"type": "row", "panels": [panel(1)]}])),
    ("grid-rule", on_panel(gridPos={"x": 13, "y": 0, "w": 12, "h": 8})),
    ("grid-rule", whole(panels=[panel(1), {**panel(1), "id": 2}])),
    ("no-inputs-rule", on_panel(datasource="${DS_PROMETHEUS}")),
    ("panel-type-rule", on_panel(type="graph")),
    ("panel-type-rule", on_panel(type="table", styles=[])),
    ("max-data-points-rule", on_panel(type="status-history")),
    ("link-target-rule", link("/d/gone?x=1")),
    ("link-target-rule", link("/d/fine?var-tenant=x")),
    ("link-target-rule", link("/d/fine?${tenant:queryparam}")),
    ("link-characters-rule", link("/d/fine?var-job=\ufeffx")),
]
GOOD: list[Change] = [
    lambda _: None,
    lambda made: (whole(uid="x" * 40)(made), link(f"/d/{'x' * 40}")(made)),
    variable(0, label="Prometheus data source"),
    variable(1, query="label_values(job)"),
    variable(1, query='label_values(up{job=~"$job"}, job)'),
    looks(unit="suffix:/h"),
    looks(unit="", mappings=[{"type": "value"}]),
    expr(f"sum(rate(x_total{BOTH}[$__rate_interval]))"),
    expr(f"sum(increase(x_total{BOTH}[5m]))"),
    expr('x{job=~"${job:regex}",instance=~"[[instance]]"} offset $__interval'),
    expr(f"avg_over_time(x{BOTH}[$__range:$__interval]) * $__range_s"),
    target(expr=f'label_join(x{BOTH}, "at", "", "instance")', legendFormat="{{at}}"),
    target(expr=f"sum by (gpu) (x{BOTH})", legendFormat="{{gpu}}"),
    loki('sum(rate({app="x"} |= "it {is" [$__auto]))'),
    on_panel(type="status-history", maxDataPoints=200),
    link("https://example.org/d/gone"),
    link("/d/${board}?var-x=y"),
    moved("labelsToFields", mode="columns"),
    on_panel(
        targets=[{}, {}],
        transformations=[{"id": "merge"}, {"id": "groupingToMatrix"}],
    ),
]


@pytest.mark.parametrize(("rule", "change"), BAD, ids=[rule for rule, _ in BAD])
def test_a_rule_finds_what_breaks_it(tmp_path: Path, rule: str, change: Change) -> None:
    made = fine()
    change(made)
    assert rule in {each.rule for each in found(tmp_path, made, contract=CONTRACT)}


@pytest.mark.parametrize("change", GOOD)
def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path, change: Change) -> None:
    made = fine()
    change(made)
    assert found(tmp_path, made) == []


def test_every_rule_is_tried() -> None:
    assert {rule for rule, _ in BAD} == set(WANTED) - {UNUSED}


def test_two_dashboards_of_one_uid_replace_each_other(tmp_path: Path) -> None:
    assert [each.rule for each in found(tmp_path, fine(), fine())] == ["uid-rule"] * 2


def test_an_old_foreign_dashboard_is_read_and_found_wanting(tmp_path: Path) -> None:
    rules = {each.rule for each in found(tmp_path, old())}
    assert rules >= {
        "no-inputs-rule",
        "panel-id-rule",
        "panel-type-rule",
        "schema-version-rule",
        "target-promql-rule",
        "target-rate-interval-rule",
        "template-datasource-rule",
        "template-label-promql-rule",
        "uid-rule",
        "unit-known-rule",
    }
    assert not rules & {"variable-declared-rule", "link-target-rule", "grid-rule"}


def test_a_finding_says_where_it_is(tmp_path: Path) -> None:
    made = fine()
    expr("sum(up{")(made)
    (one,) = found(tmp_path, made)
    assert (one.dashboard, one.panel, one.panel_id, one.target) == (
        "Fine",
        "How hot are GPUs?",
        1,
        "A",
    )
    assert f"{one}".startswith(f"{tmp_path}/0.json: target-promql-rule: panel 'How hot are GPUs?'")


def test_our_dashboards_are_clean_but_for_what_is_meant() -> None:
    ours = read_dashboards(
        [str(ROOT / "dashboards")],
        known=known_series([ROOT / "exporters" / "node.prom"], ROOT / "alerts"),
    )
    assert [str(each) for each in check(ours, ROOT / "dashboards" / "lint.toml")] == []


def test_units_and_transformations_are_those_of_grafana(request: pytest.FixtureRequest) -> None:
    said = run_grafana([])
    version = json.loads((HARNESS / "package.json").read_text())["dependencies"]["@grafana/data"]
    ids = {
        "source": f"npm @grafana/data {version}",
        "transformers": sorted(said["transformers"]),
        "units": sorted(said["units"]),
    }
    text = json.dumps(ids, indent=2, ensure_ascii=False) + "\n"
    if request.config.getoption("--update-golden"):
        IDS.write_text(text, encoding="utf-8")
    assert IDS.read_text(encoding="utf-8") == text
