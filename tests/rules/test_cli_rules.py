"""`seedance-obs rules check` as an operator and a CI job see it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from seedance_obs.cli import main
from seedance_obs.rules.check import Folders, check_rules

ROOT = Path(__file__).parents[2]


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["rules", "check", *map(str, arguments)])


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    (tmp_path / "a.rules.yml").write_text(
        "groups:\n  - name: a\n    rules:\n      - record: one\n        expr: nobody\n"
        "      - record: t-w-o\n        expr: one\n"
    )
    return tmp_path


def test_it_says_nothing_of_the_rules_that_come_with_the_package() -> None:
    result = check()
    assert (result.exit_code, result.output) == (0, "")


def test_every_alert_that_comes_with_the_package_is_tested_both_ways() -> None:
    # Not by --tests, which runs them: tests/test_rules.py does so.
    folders = Folders(*(ROOT / each for each in ("alerts", "exporters", "dashboards")))
    assert check_rules(replace(folders, tests=ROOT / "tests" / "alerts")) == []


def test_json_of_rules_that_are_fine_is_an_empty_list() -> None:
    result = check(ROOT / "alerts", "--json")
    assert (result.exit_code, json.loads(result.output)) == (0, [])


def test_it_prints_what_promtool_says_and_what_we_do(wrong: Path) -> None:
    result = check(wrong)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"{wrong}/a.rules.yml:6: t-w-o: promtool: invalid recording rule name: t-w-o",
        f"{wrong}/a.rules.yml:5: one: nobody is in no scrape of exporters/*.prom, and no rule "
        "here records it",
    ]
    rows = json.loads(check(wrong, "--json").output)
    assert [(row["line"], row["rule"]) for row in rows] == [(6, "t-w-o"), (5, "one")]


def test_each_complaint_of_promtool_is_a_finding_with_its_place(tmp_path: Path) -> None:
    rule = "    - {alert: B, expr: up, labels: {severity: '{{ $nothing }}'}}\n"
    same = "    - {record: c, expr: up}\n"
    (tmp_path / "a.rules.yml").write_text(f"groups:\n- name: x\n  rules:\n{rule}- name: x\n")
    (tmp_path / "b.rules.yml").write_text(f"groups:\n- name: x\n  rules:\n{same}{same}")
    (tmp_path / "c.rules.yml").write_text("groups: [\n")
    said = [
        line.removeprefix(f"{tmp_path}/")
        for line in check(tmp_path).output.splitlines()
        if ": promtool: " in line
    ]
    assert [line.partition(" promtool: ")[0] for line in said] == [
        "a.rules.yml:1: B:",
        "a.rules.yml:5:",
        "b.rules.yml:1:",
        "c.rules.yml:1:",
    ]


def test_promtool_runs_the_tests(tmp_path: Path) -> None:
    (tmp_path / "a.rules.yml").write_text(
        "groups:\n- name: x\n  rules:\n    - {record: two, expr: 2 * up}\n"
    )
    (tmp_path / "fine.test.yml").write_text(
        "rule_files: [a.rules.yml]\n"
        "tests:\n"
        "  - name: twice as much\n"
        "    input_series: [{series: up, values: 1x5}]\n"
        "    promql_expr_test:\n"
        "      - {expr: two, eval_time: 1m, exp_samples: [{labels: two, value: 2}]}\n"
    )
    assert check(tmp_path, "--tests", tmp_path).output == ""
    wrong = (tmp_path / "fine.test.yml").read_text().replace("value: 2", "value: 3")
    alert = "      - {alertname: Other, eval_time: 2m, exp_alerts: [{}]}\n"
    (tmp_path / "wrong.test.yml").write_text(f"{wrong}    alert_rule_test:\n{alert}")
    (tmp_path / "x.test.yml").write_text("tests: [{input_series: [{series: up, values: 1 z}]}]")
    result = check(tmp_path, "--tests", tmp_path)
    assert result.exit_code == 1
    *unmet, unread = (line.removeprefix(f"{tmp_path}/") for line in result.output.splitlines())
    assert unmet == [
        "wrong.test.yml:3: Other: promtool: at 2m it is not what the test expects",
        "wrong.test.yml:1: two: promtool: at 1m it is not what the test expects",
    ]
    assert unread.startswith("x.test.yml:1: promtool: ")


def test_series_of_others_are_named_by_an_option(wrong: Path) -> None:
    said = check(wrong, "--known", "no*", "--known", "other").output
    assert said == f"{wrong}/a.rules.yml:6: t-w-o: promtool: invalid recording rule name: t-w-o\n"


def test_without_promtool_the_rest_is_checked_and_a_sentence_says_so(
    wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    fine = check()
    assert fine.exit_code == 3
    assert fine.output == (
        "seedance-obs: promtool is not installed, and what it checks was left out: on Debian or "
        "Ubuntu, `sudo apt-get install prometheus`\n"
    )
    result = check(wrong)
    assert result.exit_code == 1
    assert "nobody is in no scrape" in result.output
    assert "promtool is not installed" in result.output


def test_a_folder_without_rules_is_a_usage_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = check(folder)
        assert result.exit_code == 2
        assert str(folder) in result.output
    assert check("--tests", tmp_path / "nowhere").exit_code == 2
