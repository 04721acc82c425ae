"""The rules as the real programs read them; what they say is held by `rules check`."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RULE_FILES = sorted((ROOT / "alerts").glob("*.rules.yml"))
RULE_TESTS = sorted((ROOT / "tests" / "alerts").glob("*.test.yml"))


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_nothing_to_say_about_the_rules() -> None:
    said = run("promtool", "check", "rules", "--lint-fatal", *RULE_FILES)
    assert said.count("SUCCESS") == len(RULE_FILES) > 0


@pytest.mark.parametrize("path", RULE_TESTS, ids=lambda path: path.name)
def test_rules_fire_and_stay_silent_as_promised(path: Path) -> None:
    assert "SUCCESS" in run("promtool", "test", "rules", path)
