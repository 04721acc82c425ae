"""What Prometheus' own promtool says of rule files and of their tests, as findings."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.rules.finding import Finding

PATIENCE_SECONDS = 300
_PLACE = re.compile(
    r"^(?:(?P<line>\d+):\d+: )?(?:group \"[^\"]*\", rule \d+, \"(?P<rule>[^\"]*)\": )?"
)
_UNMET = re.compile(
    r"(?:^ *name: (?P<test>.*),\n)?^ *(?:alertname: (?P<alert>.+?)|expr: \"(?P<expr>.*)\"), "
    r"time: (?P<time>[^,\n]+),",
    re.MULTILINE,
)
_YAML_LINE = re.compile(r"\bline (\d+): ")


def promtool_findings(files: Iterable[Path], program: str = "promtool") -> list[Finding]:
    """Its complaints about each file; a rule that is there twice is one.

    Raises:
        SourceUnavailableError: it is not installed, or does not come to an end.
    """
    path = _path_of(program)
    return [finding for file in files for finding in _of_file(path, file)]


def promtool_test_findings(files: Iterable[Path], program: str = "promtool") -> list[Finding]:
    """What is otherwise than the tests in the files expect.

    Raises:
        SourceUnavailableError: it is not installed, or does not come to an end.
    """
    path = _path_of(program)
    return [finding for file in files for finding in _of_tests(path, file)]


def _path_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SourceUnavailableError(
            f"{program} is not installed, and what it checks was left out: on Debian or Ubuntu, "
            "`sudo apt-get install prometheus`"
        )
    return path


def _said(*command: str | Path) -> str | None:
    """What it says after FAILED; None where it is content."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceUnavailableError(
            f"{command[0]} cannot be asked about {command[-1]}: {error}"
        ) from error
    if done.returncode == 0:
        return None
    said = f"{done.stdout}\n{done.stderr}"
    return said.partition("FAILED:")[2] or done.stderr


def _of_file(program: str, file: Path) -> list[Finding]:
    said = _said(program, "check", "rules", "--lint-fatal", file)
    if said is None:
        return []
    # It begins each complaint with the file; what follows on other lines belongs to it.
    begins, said = f"{file}: ", said.strip()
    complaints = f"\n{said}".split(f"\n{begins}") if begins in said else ["", said]
    findings = {_finding(file, text) for text in complaints[1:]}
    return sorted(findings) or [Finding(file, 1, "", "promtool: it fails and does not say why")]


def _of_tests(program: str, file: Path) -> list[Finding]:
    said = _said(program, "test", "rules", file)
    if said is None:
        return []
    text = file.read_text("utf-8", errors="replace").splitlines()
    findings = []
    for each in _UNMET.finditer(said):
        name, what = each["test"], each["alert"] or each["expr"]
        line = next((number for number, of in enumerate(text, 1) if name and name in of), 1)
        sentence = f"promtool: at {each['time']} it is not what the test expects"
        findings.append(Finding(file, line, what, sentence))
    return findings or [Finding(file, 1, "", "promtool: " + " ".join(said.split()))]


def _finding(file: Path, text: str) -> Finding:
    text = " ".join(text.split())
    place = _PLACE.match(text)
    line, rule = (place["line"], place["rule"]) if place else (None, None)
    if line is None and (in_yaml := _YAML_LINE.search(text)):
        line = in_yaml[1]
    rest = text[place.end() :] if place else text
    return Finding(file, int(line or _line_of(file, rule)), rule or "", f"promtool: {rest}")


def _line_of(file: Path, rule: str | None) -> int:
    """Where a rule begins that promtool names without its place."""
    begins = re.compile(rf"[\s-]*(?:alert|record):\s*['\"]?{re.escape(rule or '')}['\"]?\s*$")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if rule else []
    return next((number for number, text in enumerate(lines, 1) if begins.match(text)), 1)
