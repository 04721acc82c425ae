"""What Prometheus' own promtool says of rule files, as findings."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.rules.finding import Finding

PATIENCE_SECONDS = 60
_PLACE = re.compile(
    r"^(?:(?P<line>\d+):\d+: )?(?:group \"[^\"]*\", rule \d+, \"(?P<rule>[^\"]*)\": )?"
)
_YAML_LINE = re.compile(r"\bline (\d+): ")


def promtool_findings(files: Iterable[Path], program: str = "promtool") -> list[Finding]:
    """Its complaints about each file; a rule that is there twice is one.

    Raises:
        SourceUnavailableError: it is not installed, or does not come to an end.
    """
    path = shutil.which(program)
    if path is None:
        raise SourceUnavailableError(
            f"{program} is not installed, and what it checks was left out: on Debian or Ubuntu, "
            "`sudo apt-get install prometheus`"
        )
    return [finding for file in files for finding in _of_file(path, file)]


def _of_file(program: str, file: Path) -> list[Finding]:
    try:
        done = subprocess.run(
            [program, "check", "rules", "--lint-fatal", str(file)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceUnavailableError(f"{program} cannot be asked about {file}: {error}") from error
    if done.returncode == 0:
        return []
    said = f"{done.stdout}\n{done.stderr}".partition("FAILED:")[2].strip()
    # It begins each complaint with the file; what follows on other lines belongs to it.
    begins = f"{file}: "
    complaints = f"\n{said}".split(f"\n{begins}") if begins in said else ["", said]
    findings = {_finding(file, text) for text in complaints[1:]}
    return sorted(findings) or [Finding(file, 1, "", "promtool: it fails and does not say why")]


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
