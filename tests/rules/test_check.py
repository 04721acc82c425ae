"""Files and folders: what cannot be read, what is there twice, and where a finding stands."""

from pathlib import Path

import pytest

from seedance_obs.errors import UsageError
from seedance_obs.rules.check import Folders, check_rules
from tests.rules.small_rules import ROOT, SEEN, SUM, THRESHOLDS, alert, check, folders, sentences


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


@pytest.mark.parametrize("text", ["", "x: 1", "groups: 3", "groups: []", "groups: [{rules: [1]}]"])
def test_a_file_without_rules_is_a_finding(folder: Path, text: str) -> None:
    (folder / "try.rules.yml").write_text(text)
    assert said_of(folder, "try.rules.yml") == ["it holds no rules"]


def test_a_resource_of_kubernetes_is_no_rule_file(folder: Path) -> None:
    (folder / "try.rules.yml").write_text("kind: PrometheusRule\nspec: {groups: []}\n")
    (said,) = said_of(folder, "try.rules.yml")
    assert said == "it holds no rules: rules are in groups, not in a spec"


def test_a_rule_that_is_none_is_a_finding(folder: Path) -> None:
    (folder / "try.rules.yml").write_text("groups: [{rules: [1, {}]}]")
    assert said_of(folder, "try.rules.yml") == [
        "it cannot be read: a rule has an expr and is called alert or record"
    ]


def test_a_file_that_cannot_be_read_does_not_hide_the_others(folder: Path) -> None:
    (folder / "other.rules.yml").write_bytes(b"groups: \xff\n")
    (folder / "more.rules.yml").write_text("[" * 600)
    check(folder, {"record": "a", "expr": "nobody"})
    assert len(said_of(folder, "try.rules.yml")) == 1
    for name in ("other.rules.yml", "more.rules.yml"):
        (said,) = said_of(folder, name)
        assert said.startswith("it cannot be read: ")


@pytest.mark.parametrize(
    "expr",
    [" or ".join(["up"] * 1000), "(" * 2000 + SEEN + ")" * 2000, "-" * 900 + SEEN, "a" * 8001],
    ids=["or", "brackets", "signs", "length"],
)
def test_a_query_that_is_too_large_is_a_finding(folder: Path, expr: str) -> None:
    (said,) = sentences(folder, {"record": "a", "expr": expr})
    assert "nested too deeply" in said or "longer than 8000 characters" in said


def test_groups_in_a_file_of_another_name_are_not_passed_over(folder: Path) -> None:
    check(folder, SUM)
    (folder / "alertmanager.yml").write_text("route: {}\n")
    (folder / "more.yml").write_text("groups: []\n")
    assert said_of(folder, "alertmanager.yml") == []
    (said,) = said_of(folder, "more.yml")
    assert said.endswith("name it *.rules.yml")


def test_a_rule_of_one_name_with_the_same_labels_is_there_once(folder: Path) -> None:
    page = alert(labels={"severity": "critical"})
    assert sentences(folder, alert(), page) == []
    (said,) = sentences(folder, alert(), page, alert(**{"for": "5m"}))
    assert said == "it is there already: try.rules.yml:4"
    (folder / "more.rules.yml").write_text(
        f"groups: [{{name: x, rules: [{{record: {SUM['record']}, expr: up}}]}}]"
    )
    assert sentences(folder, SUM) == ["it is there already: more.rules.yml:1"]


def test_a_threshold_is_recorded_once_whatever_its_other_labels(folder: Path) -> None:
    again = {**THRESHOLDS[0], "labels": {"of": "share", "team": "x"}}
    (said,) = sentences(folder, *THRESHOLDS, again)
    assert said.startswith("it is there already: ")


@pytest.mark.parametrize(
    "expr", ["vector(-1)", "vector(0)", "abs(vector(1))", "time()", "up", "vector(60 * 60)"]
)
def test_a_threshold_is_one_number_above_zero(folder: Path, expr: str) -> None:
    assert sentences(folder, {**THRESHOLDS[0], "expr": expr}) == [
        "a threshold is vector(NUMBER), and the number is above 0"
    ]


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


def said_of(folder: Path, name: str) -> list[str]:
    found = check_rules(folders(folder))
    return [each.sentence for each in found if each.file.name == name]
