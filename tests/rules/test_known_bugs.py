"""Every known bug of others is guarded here, and each guard is one: the bug, put in, fails it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ALERTS, CASES = ROOT / "alerts", ROOT / "tests" / "alerts"
BUGS: dict[int, list[dict[str, str]]] = yaml.safe_load(
    (ROOT / "tests" / "rules" / "known_bugs.yml").read_text()
)
BY_CASE = [(bug, guard) for bug, guards in BUGS.items() for guard in guards if "case" in guard]
TESTS = sorted({guard["test"] for guards in BUGS.values() for guard in guards if "test" in guard})
COLLECTED = 41


def test_every_bug_is_accounted_for() -> None:
    assert sorted(BUGS) == list(range(1, COLLECTED + 1))
    assert all(BUGS.values())


@pytest.mark.parametrize("file", sorted(CASES.glob("*.test.yml")), ids=lambda file: file.name)
def test_the_bugs_that_a_file_of_cases_names_are_those_it_guards_against(file: Path) -> None:
    lists = re.findall(r"\bbugs? (\d+(?:(?:, | and )\d+)*)", file.read_text())
    named = {int(number) for numbers in lists for number in re.findall(r"\d+", numbers)}
    assert named == {bug for bug, guard in BY_CASE if f"{guard['file']}.test.yml" == file.name}


@pytest.mark.parametrize("test", TESTS)
def test_every_test_of_the_exporter_exists(test: str) -> None:
    file, name = test.split("::")
    assert re.search(rf"^ *def {name}\(", (ROOT / file).read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("bug", "guard"), BY_CASE, ids=lambda each: f"bug {each}" if isinstance(each, int) else ""
)
def test_a_rule_with_the_bug_fails_its_case(
    tmp_path: Path, bug: int, guard: dict[str, str]
) -> None:
    lay_out(tmp_path, guard)
    done = subprocess.run(
        ["promtool", "test", "rules", "one.test.yml"],
        cwd=tmp_path / "tests" / "alerts",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1, f"bug {bug} passes {guard['case']!r}: it tests something else"
    assert re.search(r"\bexp: ?", said), said  # an answer that is wrong, not a query that is


def lay_out(folder: Path, guard: dict[str, str]) -> None:
    """The one case, beside the rules as they are but for the one that is wrong."""
    (folder / "alerts").mkdir()
    for file in ALERTS.glob("*.rules.yml"):
        text = file.read_text()
        wrong = re.search(rf"- (alert|record): {guard['rule']}\n", text) is not None
        (folder / "alerts" / file.name).write_text(with_bug(text, guard) if wrong else text)
    head, *cases = re.split(
        r"^(?=  - name: )", (CASES / f"{guard['file']}.test.yml").read_text(), flags=re.MULTILINE
    )
    (case,) = (each for each in cases if f"{guard['case']}" in each.partition("\n")[0])
    (folder / "tests" / "alerts").mkdir(parents=True)
    (folder / "tests" / "alerts" / "one.test.yml").write_text(head + case)


def with_bug(text: str, guard: dict[str, str]) -> str:
    document = yaml.load(text, Loader=yaml.CSafeLoader)
    for rule in (rule for group in document["groups"] for rule in group["rules"]):
        if guard["rule"] in (rule.get("alert"), rule.get("record")):
            rule["expr"] = guard["wrong"].replace("RIGHT", f"({rule['expr']})")
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False)
