"""`seedance-obs dashboards check` as somebody runs it: output, exit codes, exclusions, any JSON."""

import contextlib
import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from seedance_obs.cli import main
from seedance_obs.dashboards.check.check import WANTED, check
from seedance_obs.dashboards.check.files import read_dashboards
from seedance_obs.dashboards.check.queries import tree
from seedance_obs.errors import UsageError
from tests.dashboards_check.small_dashboards import fine, old

NOT_JOB = {"rule": "target-job-rule", "reason": "one job"}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Rules and a contract that take no time to read."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "x.rules.yml").write_text("groups: []")
    (folder / "x.prom").write_text("some_heat_celsius 1\n")
    return folder


def run(rules: Path, *arguments: str | Path, given: str = "") -> Result:
    options = ["--rules", str(rules), "--contract", str(rules / "x.prom")]
    command = ["dashboards", "check", *options, *map(str, arguments)]
    return CliRunner().invoke(main, command, input=given)


def written(folder: Path, dashboard: Any, name: str = "d.json") -> Path:
    (folder / name).write_text(json.dumps(dashboard))
    return folder / name


def without_job() -> dict[str, Any]:
    made = fine()
    made["panels"][0]["targets"][0]["expr"] = 'some_heat_celsius{instance=~"$instance"}'
    return made


def test_nothing_is_printed_where_all_is_well(tmp_path: Path, rules: Path) -> None:
    done = run(rules, written(tmp_path, fine()))
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize("name", ["dashboard", "spec"])
def test_what_is_wrapped_is_unwrapped(tmp_path: Path, rules: Path, name: str) -> None:
    done = run(rules, written(tmp_path, {name: fine(), "meta": {}, "apiVersion": "x/v1beta1"}))
    assert (done.exit_code, done.output) == (0, "")


def test_standard_input_and_json(rules: Path) -> None:
    done = run(rules, "--json", "-", given=json.dumps(without_job()))
    assert done.exit_code == 1
    (one,) = json.loads(done.output)
    assert one["file"] == "-"
    assert (one["rule"], one["panel_id"], one["target"]) == ("target-job-rule", 1, "A")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting"),
        ("[]", "no object"),
        ("{}", "no panels"),
        ('{"spec": {"elements": {}, "layout": {}}}', "v2 schema"),
        ('{"apiVersion": "dashboard.grafana.app/v2beta1", "spec": {"panels": []}}', "v2 schema"),
        ('{"panels":' + "[" * 100_000 + "]" * 100_000 + "}", "cannot be read"),
    ],
)
def test_what_is_no_dashboard_is_refused_in_a_sentence(rules: Path, text: str, says: str) -> None:
    done = run(rules, "-", given=text)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path, rules: Path) -> None:
    (tmp_path / "empty").mkdir()
    for each in ("gone.json", "empty"):
        assert run(rules, tmp_path / each).exit_code == 2


def test_all_rules_are_listed(rules: Path) -> None:
    listed = run(rules, "--list").output.splitlines()
    assert [each.split()[0] for each in listed] == list(WANTED)


@pytest.mark.parametrize(
    ("place", "left"),
    [
        ({}, []),
        ({"dashboard": "Fine", "panel": "1", "target": "A"}, []),
        ({"dashboard": "fine", "panel": "How hot are GPUs?"}, []),
        ({"panel": "2"}, ["target-job-rule", "exclusion-unused-rule"]),
        ({"dashboard": "Other"}, ["target-job-rule", "exclusion-unused-rule"]),
    ],
)
@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_exclusions(
    tmp_path: Path, rules: Path, place: dict[str, str], left: list[str], suffix: str
) -> None:
    file, one = tmp_path / f"lint.{suffix}", {**NOT_JOB, **place}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in one.items())
    file.write_text(f"[[exclude]]\n{lines}" if suffix == "toml" else json.dumps({"exclude": [one]}))
    done = run(rules, "--json", "--exclude", file, written(tmp_path, without_job()))
    assert [each["rule"] for each in json.loads(done.output)] == left
    assert done.exit_code == (1 if left else 0)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "exclude: 1",
        "[]",
        "exclude: [{rule: target-job-rule}]",
        "exclude: [{rule: no-such-rule, reason: x}]",
        "exclude: [{rule: target-job-rule, reason: x, pannel: y}]",
        "exclude: [1]",
        "exclude: []\nother: 1",
    ],
)
def test_exclusions_that_mean_nothing_are_refused(tmp_path: Path, rules: Path, text: str) -> None:
    (tmp_path / "lint.yaml").write_text(text)
    done = run(rules, "--exclude", tmp_path / "lint.yaml", written(tmp_path, fine()))
    assert done.exit_code == 2
    assert "lint.yaml" in done.stderr


def test_grafanalib_is_not_needed(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['grafanalib'] = None\n"
        "from seedance_obs.dashboards.check import check, files\n"
        "print(check.check(files.read_dashboards(sys.argv[1:])))"
    )
    command = [sys.executable, "-c", script, str(written(tmp_path, fine()))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in a value."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


USED = {key for each in (fine(), old()) for _, key in places(each) if isinstance(key, str)}
NAMES = sorted({*USED, "dashboard", "elements", "mappings", "properties", "renameByName", "spec"})
WORDS = ["row", "table", "stat", "nodeGraph", "loki", "prometheus", "query", "${x}", "[[", "/d/x?"]
QUERIES = ["x", "rate(x_total[$__interval])", "sum by (a) ({", '"', "x[", "{{a}}", "label_values("]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*WORDS, *QUERIES])
)
ANY = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(base=st.sampled_from([fine, old]), where=st.integers(0, 500), other=ANY)
@example(base=fine, where=0, other=None)
def test_no_json_makes_a_rule_fail(tmp_path: Path, base: Any, where: int, other: Any) -> None:
    """Whatever stands in the place of any part of a dashboard."""
    made = copy.deepcopy(base())
    every = list(places(made))
    container, key = every[where % len(every)]
    container[key] = other
    for each in (made, other, {"panels": other, "templating": other}):
        with contextlib.suppress(UsageError):
            check(read_dashboards([str(written(tmp_path, each))]))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*QUERIES, *"()[]{}$:,\"'` ", "$x", "offset ", "5m", "1e999"])))
def test_a_query_is_parsed_or_refused(parts: list[str]) -> None:
    with contextlib.suppress(ValueError):
        tree("".join(parts))


@pytest.mark.parametrize(
    "text", ["(" * 10**5, "-" * 10**5 + "1", "1" + "+1" * 10**5, "x or " * 9999]
)
def test_a_query_without_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|more than"):
        tree(text)
