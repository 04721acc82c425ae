"""Findings that somebody has accepted, each with the reason."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from seedance_obs.dashboards.check.rule import WANTED, Finding
from seedance_obs.errors import UsageError

UNUSED = "exclusion-unused-rule"
WANTED[UNUSED] = "an exclusion excludes something"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A rule that is left out, everywhere or in one place.

    `dashboard` is a title or a uid, `panel` a title or an id, `target` a refId.
    """

    rule: str
    reason: str
    dashboard: str = ""
    panel: str = ""
    target: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether it is about the rule and the place of a finding."""
        return (
            self.rule == finding.rule
            and self.dashboard in ("", finding.dashboard, finding.uid)
            and self.panel in ("", finding.panel, str(finding.panel_id))
            and self.target in ("", finding.target)
        )


NAMES = tuple(each.name for each in fields(Exclusion))


def read_exclusions(file: Path) -> tuple[Exclusion, ...]:
    """The exclusions of a TOML file ([[exclude]]) or a YAML file (exclude: [...]).

    Raises:
        UsageError: it cannot be read, or an exclusion has no reason or is of no rule.
    """
    try:
        text = file.read_text(encoding="utf-8")
        raw = tomllib.loads(text) if file.suffix == ".toml" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    listed = raw.get("exclude") if isinstance(raw, dict) else None
    if not isinstance(listed, list) or set(raw) != {"exclude"}:
        raise UsageError(f"{file}: a list called exclude is wanted, and nothing else")
    return tuple(_exclusion(file, each) for each in listed)


def _exclusion(file: Path, raw: object) -> Exclusion:
    if not isinstance(raw, dict) or not set(raw) <= set(NAMES):
        raise UsageError(f"{file}: an exclusion has {', '.join(NAMES)}, but one is {raw}")
    values = {str(name): str(value).strip() for name, value in raw.items()}
    if values.get("rule") not in WANTED:
        raise UsageError(f"{file}: there is no rule {values.get('rule')!r}: see --list")
    if not values.get("reason"):
        raise UsageError(f"{file}: {values['rule']} is excluded without a reason: write it")
    return Exclusion(**values)


def without_excluded(
    found: Iterable[Finding], exclusions: Iterable[Exclusion], file: Path
) -> list[Finding]:
    """The findings that no exclusion covers, and one for each that covers none."""
    listed, every = list(exclusions), list(found)
    left = [each for each in every if not any(one.covers(each) for one in listed)]
    for one in listed:
        if not any(one.covers(each) for each in every):
            sentence = f"{one.rule} is excluded, and nothing is found there: remove it"
            left.append(
                Finding(str(file), one.dashboard, "", one.panel, None, one.target, UNUSED, sentence)
            )
    return left
