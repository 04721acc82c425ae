"""That rules in a faster time are the shipped ones: by what changes in them, and by their tests."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.rules.faster_time import Pace, tokens, unit_test, write_rules
from tests.rules.watched_clusters import ALERTS, FACTOR

# Those on the exporter take promtool ten seconds, and have nothing of time that others lack.
TESTS = sorted(
    file
    for file in (Path(__file__).parents[1] / "alerts").glob("*.test.yml")
    if file.name != "exporter.test.yml"
)
PACE = Pace(FACTOR)


@pytest.mark.parametrize(
    ("shipped", "faster"),
    [
        ("x[10m]", "x[5000ms]"),
        ("x offset 1h30m", "x offset 45000ms"),
        ("max_over_time(x[1h:10m])", "max_over_time(x[30000ms:5000ms])"),
        ("increase(x[5m]) > 5", "increase(x[2500ms]) > 5"),
        ("rate(x[5m]) > 5", "(rate(x[2500ms]) / 120) > 5"),
        ("sum by (a) (rate(b:rate5m[5m]))", "sum by (a) ((rate(b:rate5m[2500ms]) / 120))"),
        ("time() - started < 600", "(120 * time() + 0.0) - started < 600"),
        ("timestamp(x) - age", "(120 * timestamp(x) + 0.0) - age"),
        ('{of="rate(x[5m])"} > 5e3', '{of="rate(x[5m])"} > 5e3'),
    ],
)
def test_a_second_is_shorter_and_nothing_else_changes(shipped: str, faster: str) -> None:
    assert PACE.expression(shipped) == faster


def test_a_function_of_time_that_is_not_understood_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="predict_linear"):
        PACE.expression("predict_linear(x[1h], 3600)")


def test_in_the_same_time_rules_are_as_shipped() -> None:
    """Token by token but for the durations, which are written in milliseconds, and the units."""
    same = Pace(1)
    for file in ALERTS.glob("*.rules.yml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                expression = str(rule["expr"])
                told = same.expression(expression).replace(" / 1)", ")")
                told = told.replace("(1 * time", "(time").replace(" + 0.0)", ")")
                assert _bare(told) == _bare(expression)


def _bare(expression: str) -> list[str]:
    return [
        text
        for kind, text in tokens(expression)
        if kind != "duration" and text.strip() and text not in "()"
    ]


@pytest.fixture(scope="module")
def faster_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    write_rules(ALERTS, folder, PACE)
    return folder


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_unit_tests_of_the_rules_hold_in_the_faster_time(faster_rules: Path, file: Path) -> None:
    """What fires after ten minutes of a series fires after ten minutes of a faster one."""
    path = faster_rules / file.name
    path.write_text(unit_test(file.read_text(), PACE, faster_rules))
    done = subprocess.run(
        ["promtool", "test", "rules", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
