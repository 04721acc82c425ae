"""`seedance-obs rules check` as an operator and a CI job see it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from seedance_obs.cli import main

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
    result = check("--tests", ROOT / "tests" / "alerts")
    assert (result.exit_code, result.output) == (0, "")


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
