"""Each check over a small rule that it catches and one that it lets pass."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from seedance_obs.errors import UsageError
from seedance_obs.rules.check import Folders, check_rules
from seedance_obs.rules.finding import Finding
from seedance_obs.rules.series import BORN_BY_AN_EVENT, read_contract
from seedance_obs.rules.ways_on import SECTIONS

ROOT = Path(__file__).parents[2]
XID = 'seedance_gpu_xid_errors_total{job="gpu"}'
HEAT = 'seedance_gpu_temperature_celsius{job="gpu"}'
SEEN = 'seedance_gpus_seen{job="gpu"}'
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
RUNBOOK = "# Runbook\n\n## SeedanceTry\n\n" + "\n".join(f"### {name}\n\nx\n" for name in SECTIONS)


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lines of the contract that tests need: to read all of it takes a tenth of a second."""
    names = "gpu_xid_errors|gpus_seen|gpu_energy_joules|gpu_temperature|segment_capacity"
    text = (ROOT / "exporters" / "node.prom").read_text()
    kept = re.findall(rf"^(?:# \w+ )?seedance_(?:{names}).*\n", text, flags=re.MULTILINE)
    folder = tmp_path_factory.mktemp("exporters")
    (folder / "node.prom").write_text("".join(kept))
    return folder


@pytest.fixture
def folder(tmp_path: Path, contract: Path) -> Path:
    (tmp_path / "runbook.md").write_text(RUNBOOK)
    (tmp_path / "exporters").symlink_to(contract)
    return tmp_path


def check(folder: Path, *rules: dict[str, Any], tests: Path | None = None) -> list[Finding]:
    group = {"name": "try", "rules": list(rules)}
    (folder / "try.rules.yml").write_text(yaml.safe_dump({"groups": [group]}, sort_keys=False))
    return check_rules(folders(folder, tests))


def folders(folder: Path, tests: Path | None = None) -> Folders:
    return Folders(folder, folder / "exporters", ROOT / "dashboards", tests)


def sentences(folder: Path, *rules: dict[str, Any], tests: Path | None = None) -> list[str]:
    return [finding.sentence for finding in check(folder, *rules, tests=tests)]


def of_query(folder: Path, expr: str) -> list[str]:
    return sentences(folder, *THRESHOLDS, SUM, {"record": "try", "expr": expr})


def alert(**changes: Any) -> dict[str, Any]:
    notes = {**ALERT["annotations"], **changes.pop("annotations", {})}
    notes = {name: text for name, text in notes.items() if text is not None}
    return {**ALERT, **changes, "annotations": notes}


def test_an_alert_that_is_right_passes_every_check(folder: Path) -> None:
    assert check(folder, alert()) == []


BIRTH = f"or ({XID} unless {XID} offset 10m) > 0"

# A query that is wrong, a word of what is said about it, and the same put right.
QUERIES: dict[str, tuple[str, str, str]] = {
    "a name that nobody shows": ("seedance_gpu_heat", "in no scrape", HEAT),
    "a name deep inside": (
        f"sum by (job) (rate(nobody_total[5m])) / on () ({SEEN} > 0)",
        "nobody_total is in no scrape",
        "cluster:seedance_gpus_seen:sum",
    ),
    "a selector without a name": (
        '{job="gpu"}',
        "names no metric",
        '{__name__="seedance_gpus_seen",job="gpu"}',
    ),
    "a selector without a job": ("seedance_gpus_seen", "without a job", SEEN),
    "up is nobody's in particular": (f"up2 and {SEEN}", "up2 is in no scrape", "up"),
    "a threshold that nobody sets": (
        f'{SEEN} > scalar(seedance:threshold{{of="shore"}})',
        "the threshold 'shore' is set by no rule",
        f'{SEEN} > scalar(seedance:threshold{{of="share"}})',
    ),
    "one of several thresholds": (
        'seedance:threshold{of=~"share|shore|other"}',
        "the threshold 'shore'",
        'seedance:threshold{of=~"share|other"}',
    ),
    "a pattern of thresholds": (
        'seedance:threshold{of=~"x.+"}',
        "matches 'x.+'",
        'seedance:threshold{of=~"sh.+"}',
    ),
    "rate of a gauge": (f"rate({HEAT}[5m])", "which is a gauge", f"rate({ENERGY}[5m])"),
    "increase of a gauge in a subquery": (
        f"increase(({HEAT})[5m:1m])",
        "which is a gauge",
        f"max_over_time(({HEAT})[5m:1m])",
    ),
    "deriv of a counter": (
        f"deriv({ENERGY}[5m])",
        "deriv() of seedance_gpu_energy_joules_total, which is a counter",
        f"deriv({HEAT}[5m])",
    ),
    "delta of a counter": (f"delta({ENERGY}[5m])", "which is a counter", f"delta({HEAT}[5m])"),
    "rate of a sum": (
        f"rate(sum({ENERGY})[5m:1m])",
        "sum of rate()",
        f"sum(rate({ENERGY}[5m]))",
    ),
    "rate of what a rule records": (
        "increase(cluster:seedance_gpus_seen:sum[5m])",
        "which a rule computes",
        "max_over_time(cluster:seedance_gpus_seen:sum[5m])",
    ),
    "the first event of a counter": (
        f"increase({XID}[10m]) > 0",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 {BIRTH}",
    ),
    "the birth of other series": (
        f'increase({XID[:-1]},class="bus"}}[10m]) > 0 {BIRTH}',
        "is born by its first event",
        f"sum by (instance) (increase({XID}[10m]) {BIRTH}) > 0",
    ),
    "a birth beside older series of one sum": (
        f"increase({XID}[10m]) > 0 or (sum({XID}) unless sum({XID} offset 10m))",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or (-{XID} unless -({XID} offset 10m))",
    ),
    "a birth that is subtracted to nothing": (
        f"increase({XID}[10m]) > 0 or {XID} - {XID} offset 10m > 0",
        "is born by its first event",
        f"increase({XID}[10m]) > 0 or {XID} - ({XID} offset 10m or 0 * {XID}) > 0",
    ),
    "a rate above zero": (
        f"rate({XID}[10m]) > 0",
        "which rate() does not see",
        f"rate({XID}[10m]) > 0.5",
    ),
    "absence on every cluster without GPUs": (
        'absent(up{job="gpu"})',
        "absent() holds on every cluster",
        f'absent(up{{job="gpu"}}) and on () count({SEEN} offset 1h) > 0',
    ),
    "absence joined to another absence": (
        f"absent({SEEN}) and absent_over_time({SEEN}[1h])",
        "holds on every cluster",
        f"{SEEN} unless on () absent({HEAT})",
    ),
    "absence unless something is there": (
        f"absent({SEEN}) unless on () up",
        "holds on every cluster",
        f"(absent({SEEN}) or absent({HEAT})) * on () group_left () count(up)",
    ),
    "absence beside a constant": (
        f"absent({SEEN}) and on () vector(1)",
        "holds on every cluster",
        f"up and on () absent({SEEN})",
    ),
    "a division by zero": (
        f"{HEAT} / {HEAT}",
        "divides by what can be 0",
        f"{HEAT} / ({HEAT} > 0)",
    ),
    "a guard that binds to the quotient": (
        f"sum({SEEN}) / sum({SEEN}) > 0",
        "divides by what can be 0",
        f"sum({SEEN}) / (sum({SEEN}) > 0)",
    ),
    "a guard that is an answer and no filter": (
        f"{SEEN} / ({SEEN} > bool 0)",
        "divides by what can be 0",
        f"{SEEN} / 3600 + {SEEN} / clamp_min({SEEN}, 1)",
    ),
    "a divisor of which one addend can be zero": (
        f"{SEEN} / (({SEEN} > 0) + {SEEN})",
        "divides by what can be 0",
        f"{SEEN} / ({SEEN} + 1 > 0)",
    ),
    "a recorded divisor": (
        f"{SEEN} / on () group_left () cluster:seedance_gpus_seen:sum",
        "divides by what can be 0",
        f'{SEEN} / on () group_left () count({SEEN}) / scalar(seedance:threshold{{of="share"}})',
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_is_wrong_is_found_and_one_that_is_right_passes(
    folder: Path, name: str
) -> None:
    wrong, said, right = QUERIES[name]
    assert any(said in each for each in of_query(folder, wrong))
    assert of_query(folder, right) == []


def test_a_recorded_divisor_passes_if_it_is_guarded_where_it_is_recorded(folder: Path) -> None:
    guarded = {"record": "a", "expr": f"sum({SEEN}) > 0"}
    divided = {"record": "b", "expr": f"{SEEN} / on () group_left () a"}
    assert sentences(folder, guarded, divided) == []


def test_the_max_of_a_counter_by_what_names_it_is_a_counter_that_is_born_as_it_is(
    folder: Path,
) -> None:
    most = {"record": "xid:max", "expr": f"max by (instance, gpu_uuid, xid) ({XID})"}
    blind = {"record": "b", "expr": "increase(xid:max[10m])"}
    sees = {"record": "b", "expr": "increase(xid:max[10m]) or xid:max unless xid:max offset 10m"}
    assert sentences(folder, most, sees) == []
    (said,) = sentences(folder, most, blind)
    assert said.startswith("xid:max is born by its first event")
    (said,) = sentences(folder, most, {"record": "b", "expr": "deriv(xid:max[10m])"})
    assert "which is a counter" in said


# What is changed of the alert that is right, and what is said about it.
ALERTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a value in a label": (
        {"labels": {"severity": "warning", "level": "{{ $value }}"}},
        ["the label level is a template"],
    ),
    "another template in a label": (
        {"labels": {"severity": "warning", "level": "{{ $labels.gpu }}"}},
        ["the label level is a template"],
    ),
    "no severity": ({"labels": {}}, ["it has no severity: critical, warning or info is wanted"]),
    "a severity of one's own": ({"labels": {"severity": "page"}}, ["it has the severity 'page'"]),
    "no summary": ({"annotations": {"summary": None}}, ["it has no summary"]),
    "an empty description": ({"annotations": {"description": " "}}, ["it has no description"]),
    "no value": (
        {"annotations": {"description": "Hot on {{ $labels.instance }}."}},
        ["the description does not say the value"],
    ),
    "no node": (
        {"annotations": {"summary": "Hot", "description": "{{ $value }}"}},
        ["the summary does not say where", "the description does not say where"],
    ),
    "a label that is misspelt": (
        {"annotations": {"summary": "{{ $labels.instance }} {{ $labels.gpuid }}"}},
        ["summary names the label gpuid, which the query does not leave"],
    ),
    "a label that was summed away": (
        {"expr": f"max by (instance) ({HEAT}) > 90"},
        ["summary names the label gpu, which the query does not leave: instance"],
    ),
    "no runbook": (
        {"annotations": {"runbook_url": None}},
        ["it has no runbook_url that ends in #seedancetry"],
    ),
    "another alert's entry": (
        {"annotations": {"runbook_url": "alerts/runbook.md#seedanceother"}},
        ["it has no runbook_url that ends in #seedancetry"],
    ),
    "an entry that is not there": (
        {"alert": "SeedanceOther", "annotations": {"runbook_url": "runbook.md#seedanceother"}},
        ["runbook.md has no entry ## SeedanceOther"],
    ),
    "no dashboard": ({"annotations": {"dashboard": None}}, ["it has no dashboard"]),
    "a dashboard that is not there": (
        {"annotations": {"dashboard": "/d/nowhere?var-node={{ $labels.instance }}"}},
        ["no dashboard has the uid nowhere"],
    ),
    "a query that cannot be read": ({"expr": "sum("}, ["it cannot be read: "]),
}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_that_is_not_fit_for_a_person_is_found(folder: Path, name: str) -> None:
    changes, said = ALERTS[name]
    found = sentences(folder, alert(**changes))
    assert len(found) == len(said)
    assert all(any(start in each for each in found) for start in said)


def test_an_alert_of_the_whole_fleet_names_no_device(folder: Path) -> None:
    notes = {
        "summary": "The fleet is hot",
        "description": "{{ $value }} degrees.",
        "dashboard": "/d/seedance-gpu-topology",
    }
    for query in ("max", "max by (cluster, job)"):
        assert check(folder, alert(expr=f"{query} ({HEAT}) > 90", annotations=notes)) == []


def test_an_alert_of_part_of_the_fleet_names_the_part(folder: Path) -> None:
    expr = 'sum by (segment) (seedance_segment_capacity_bytes_per_second{job="gpu"}) > 0'
    notes = {"summary": "Full", "description": "{{ $value }} at {{ $labels.segment }}"}
    said = sentences(
        folder, alert(expr=expr, annotations={**notes, "dashboard": "/d/seedance-gpu-topology"})
    )
    assert said == ["the summary names no device: of segment it has none"]


def test_a_runbook_entry_has_all_four_sections(folder: Path) -> None:
    (folder / "runbook.md").write_text(
        RUNBOOK.replace("### Impact\n", "").replace("### Mi", "## Mi")
    )
    assert sentences(folder, alert()) == ["its runbook entry has no ### Impact, ### Mitigation"]


def test_a_folder_without_a_runbook_has_no_entries(folder: Path) -> None:
    (folder / "runbook.md").unlink()
    assert sentences(folder, alert()) == ["runbook.md has no entry ## SeedanceTry"]


def test_an_alert_is_tested_in_both_directions(folder: Path) -> None:
    tests = folder / "tests"
    tests.mkdir()
    case: dict[str, Any] = {"alertname": "SeedanceTry", "eval_time": "5m"}

    def said(*cases: dict[str, Any]) -> list[str]:
        text = yaml.safe_dump({"tests": [{"alert_rule_test": list(cases)}, {"interval": "1m"}]})
        (tests / "try.test.yml").write_text(text)
        return sentences(folder, alert(), tests=tests)

    silent, fires = {**case, "exp_alerts": []}, {**case, "exp_alerts": [{"exp_labels": {}}]}
    assert said(silent, fires) == []
    assert said(silent) == ["no test has it fire"]
    assert said(fires) == ["no test has it stay silent"]
    assert said({**fires, "alertname": "Other"}) == [
        "no test has it fire",
        "no test has it stay silent",
    ]


def test_a_finding_is_on_the_line_of_what_is_wrong(folder: Path) -> None:
    (folder / "try.rules.yml").write_text(
        "groups:\n"
        "  - name: try\n"
        "    rules:\n"
        "      - record: a\n"
        "        expr: |\n"
        '          seedance_gpus_seen{job="gpu"}\n'
        "            > on ()\n"
        "          nobody\n"
        "      - record: b\n"
        "        expr: a\n"
        '        labels: {x: "{{ $value }}"}\n'
        "      - alert: C\n"
    )
    found = check_rules(folders(folder))
    assert [str(each).removeprefix(f"{folder}/").partition(": ")[0] for each in found] == [
        "try.rules.yml:8",
        "try.rules.yml:11",
        "try.rules.yml:12",
    ]


def test_a_file_that_is_no_yaml_is_a_finding(folder: Path) -> None:
    (folder / "try.rules.yml").write_text("groups: [\n")
    (found,) = check_rules(folders(folder))
    assert found.sentence.startswith("this is not YAML: ")


@pytest.mark.parametrize("text", ["", "x: 1", "groups: 3", "groups: [{rules: [1, {}]}]"])
def test_a_file_without_rules_is_no_crash(folder: Path, text: str) -> None:
    (folder / "try.rules.yml").write_text(text)
    found = check_rules(folders(folder))
    assert all("it cannot be read" in each.sentence for each in found)


def test_a_folder_that_holds_nothing_of_what_is_wanted_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \*\.rules\.yml"):
        check_rules(Folders(tmp_path, ROOT / "exporters", ROOT / "dashboards"))
    with pytest.raises(UsageError, match="this is none"):
        check_rules(Folders(tmp_path / "x", ROOT / "exporters", ROOT / "dashboards"))
    (tmp_path / "try.rules.yml").write_text("groups: []")
    with pytest.raises(UsageError, match=r"no \*\.prom"):
        check_rules(Folders(tmp_path, tmp_path, ROOT / "dashboards"))
    with pytest.raises(UsageError, match=r"no \*\.test\.yml"):
        check_rules(Folders(tmp_path, ROOT / "exporters", ROOT / "dashboards", tmp_path))


def test_counters_that_are_born_by_an_event_are_counters_of_the_contract() -> None:
    known = read_contract(ROOT / "exporters")
    assert {known.type_of(name) for name in BORN_BY_AN_EVENT} == {"counter"}
