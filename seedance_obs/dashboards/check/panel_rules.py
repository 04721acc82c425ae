"""dashboard-linter's rules on panels, and what it does not ask: real units, text for no value."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from seedance_obs.dashboards.check.json_values import at, mappings, text
from seedance_obs.dashboards.check.model import Panel
from seedance_obs.dashboards.check.rule import of_panel

# Of those dashboard-linter asks for a title, a unit, queries; everything else shows what it likes.
COMMON = frozenset({"gauge", "graph", "singlestat", "stat", "table", "timeseries"})
FROM_DATASOURCE = frozenset({"graph", "singlestat", "table", "timeseries"})
CUSTOM_UNIT = re.compile("(?:si|suffix|prefix|currency|count|bool|time):.+", re.DOTALL)
IDS = Path(__file__).parent / "grafana_ids.json"


@cache
def grafana_ids(kind: str) -> frozenset[str]:
    """The ids of all `units` or `transformers` of the Grafana that the file names."""
    return frozenset(json.loads(IDS.read_text(encoding="utf-8"))[kind])


@of_panel("panel-datasource-rule", "panels take their data from the chosen source")
def datasource(panel: Panel) -> Iterator[str]:
    """That of a variable."""
    if panel.kind not in FROM_DATASOURCE:
        return
    source = panel.raw.get("datasource")
    uid = text(source) or text(at(source, "uid"))
    sources = [each.name for each in panel.dashboard.variables if each.kind == "datasource"]
    if uid not in {form for name in sources for form in (f"${name}", f"${{{name}}}")}:
        yield f"its data source is {uid!r}: name the variable, as in ${{datasource}}"


@of_panel("panel-title-description-rule", "panels have a title and a description")
def title_and_description(panel: Panel) -> Iterator[str]:
    """What it is, and what to do where it is bad."""
    if panel.kind not in COMMON:
        return
    for name in ("title", "description"):
        if not text(panel.raw.get(name)).strip():
            yield f"it has no {name}: write one"


@of_panel("panel-units-rule", "panels have a unit, unless they show texts")
def units(panel: Panel) -> Iterator[str]:
    """Of the panel, or of one of its columns."""
    if panel.kind not in COMMON or _shows_texts(panel) or _old_units(panel):
        return
    if not text(panel.defaults.get("unit")) and not any(panel.overridden("unit")):
        yield "it has no unit: choose one, or none where things are counted"


@of_panel("panel-no-targets-rule", "panels ask something")
def no_targets(panel: Panel) -> Iterator[str]:
    """A panel without a query stays empty."""
    if panel.kind in COMMON and not panel.targets:
        yield "it has no query: add one, or make it a text panel"


@of_panel("unit-known-rule", "units are ids that Grafana has, or custom ones")
def unit_known(panel: Panel) -> Iterator[str]:
    """Grafana writes an id that it does not know behind the number, and scales nothing."""
    used = [panel.defaults.get("unit"), *panel.overridden("unit"), *_old_units(panel)]
    for unit in dict.fromkeys(text(each) for each in used):
        if unit and unit not in grafana_ids("units") and not CUSTOM_UNIT.fullmatch(unit):
            yield f"Grafana has no unit {unit!r}: choose its id, or write suffix:{unit}"


@of_panel("panel-no-value-rule", "panels say why nothing may be there")
def no_value(panel: Panel) -> Iterator[str]:
    """`No data` is what a broken query shows, too."""
    if panel.asks and panel.targets and not text(panel.defaults.get("noValue")).strip():
        yield "it does not say why it may be empty: set noValue to a reason"


@of_panel("thresholds-rule", "thresholds ascend from one without a value")
def thresholds(panel: Panel) -> Iterator[str]:
    """The first colour has none, for it holds for whatever is below."""
    for each in (panel.defaults.get("thresholds"), *panel.overridden("thresholds")):
        steps = [step.get("value") for step in mappings(at(each, "steps"))]
        if not steps:
            continue
        if steps[0] is not None:
            yield f"its first threshold is {steps[0]!r}: make it null"
        above = [step for step in steps[1:] if isinstance(step, int | float)]
        if len(above) < len(steps) - 1 or above != sorted(above):
            yield f"its thresholds are {steps[1:]}: order them from low to high"


def _shows_texts(panel: Panel) -> bool:
    if mappings(panel.defaults.get("mappings")):
        return True
    return panel.kind == "stat" and bool(at(panel.raw, "options", "reduceOptions", "fields"))


def _old_units(panel: Panel) -> list[object]:
    """Where panels before Grafana 7 have their unit."""
    axes = [each.get("format") for each in mappings(panel.raw.get("yaxes"))]
    return [each for each in (panel.raw.get("format"), *axes[:1]) if text(each)]
