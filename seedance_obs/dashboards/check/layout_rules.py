"""What Grafana would lose, refuse or draw wrongly: ids, places, kinds and ages of a dashboard."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from seedance_obs.dashboards.check.json_values import JsonObject, at, texts_under, whole
from seedance_obs.dashboards.check.model import Dashboard, Panel
from seedance_obs.dashboards.check.rule import of_dashboard, of_panel

OLDEST_SCHEMA = 39
LONGEST_UID = 40
GRID_COLUMNS = 24
# What stands for panels that were written with AngularJS, which Grafana 12 has no more.
GONE = {
    "graph": "timeseries",
    "singlestat": "stat",
    "table-old": "table",
    "grafana-piechart-panel": "piechart",
    "grafana-worldmap-panel": "geomap",
    "grafana-singlestat-panel": "stat",
    "natel-discrete-panel": "state-timeline",
    "natel-plotly-panel": "xychart",
    "flant-statusmap-panel": "status-history",
    "jdbranham-diagram-panel": "canvas",
    "agenty-flowcharting-panel": "canvas",
    "michaeldmoore-multistat-panel": "bargauge",
    "vonage-status-panel": "stat",
    "briangann-gauge-panel": "gauge",
    "briangann-datatable-panel": "table",
}


@of_dashboard("schema-version-rule", f"the schema is of version {OLDEST_SCHEMA} or newer")
def schema_version(dashboard: Dashboard) -> Iterator[str]:
    """Each migration guesses; those from far back lose thresholds and units."""
    version = dashboard.raw.get("schemaVersion")
    if (whole(version) or 0) < OLDEST_SCHEMA:
        yield (
            f"schemaVersion is {version!r}, and Grafana guesses the rest in migrations: save it "
            f"in Grafana 11 or newer, for {OLDEST_SCHEMA} or more"
        )


@of_dashboard("uid-rule", f"a uid of at most {LONGEST_UID} letters, digits, - and _")
def uid(dashboard: Dashboard) -> Iterator[str]:
    """Links and provisioning need one that stays."""
    found = dashboard.raw.get("uid")
    if not dashboard.uid:
        yield f"the uid is {found!r}: give it one that stays, or links to it break"
    elif not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{LONGEST_UID}}}", dashboard.uid):
        yield (
            f"the uid {dashboard.uid!r} is too long or has other characters: take at most "
            f"{LONGEST_UID} letters, digits, - and _"
        )
    elif dashboard.site.uses.get(dashboard.uid, 0) > 1:
        yield f"the uid {dashboard.uid!r} is another file's too: one would replace the other"


@of_dashboard("panel-id-rule", "every panel has a number of its own")
def panel_ids(dashboard: Dashboard) -> Iterator[str]:
    """Panels without one get lost when Grafana migrates to its next schema."""
    uses = Counter(each.id for each in dashboard.panels)
    if without := uses.pop(None, 0):
        yield f"{without} panels have no id: number them"
    for number, used in sorted((each for each in uses.items() if each[0] is not None), key=str):
        if used > 1:
            yield f"{used} panels have the id {number}: number them anew"


@of_dashboard("grid-rule", f"panels fit {GRID_COLUMNS} columns, and none covers another")
def grid(dashboard: Dashboard) -> Iterator[str]:
    """Grafana moves what collides, and the page looks otherwise than it was made."""
    for group in dashboard.groups:
        placed = [(each, place) for each in group if (place := _place(each))]
        for panel, (x, y, w, h) in placed:
            if x < 0 or y < 0 or w < 1 or h < 1 or x + w > GRID_COLUMNS:
                yield f"{_name(panel)} is at x {x}, y {y}, {w} wide, {h} high: put it into the grid"
        for (one, first), (other, second) in combinations(placed, 2):
            if _collide(first, second):
                yield f"{_name(one)} and {_name(other)} cover each other: move one"


@of_dashboard("no-inputs-rule", "no ${DS_...}, which only the import dialog fills")
def inputs(dashboard: Dashboard) -> Iterator[str]:
    """A provisioned dashboard would look for a data source of that name."""
    found = {
        name for each in texts_under(dashboard.raw) for name in re.findall(r"\$\{DS_\w+\}", each)
    }
    declared = dashboard.raw.get("__inputs")
    if found or declared:
        used = ", ".join(sorted(found)) or "__inputs"
        yield f"{used} is filled by the import dialog alone: use a variable datasource"


@of_panel("panel-type-rule", "no kind of panel that Grafana gave up")
def kind(panel: Panel) -> Iterator[str]:
    """They are migrated by guesses, or not drawn."""
    gone = "table-old" if panel.kind == "table" and "styles" in panel.raw else panel.kind
    if gone in GONE:
        yield f"{gone} is of AngularJS, which Grafana gave up: make it {GONE[gone]}"
    elif gone.startswith("natel-"):
        yield f"{gone} is of AngularJS, which Grafana gave up: choose a kind of Grafana's own"


@of_panel("max-data-points-rule", "a status history says how many points it has room for")
def max_data_points(panel: Panel) -> Iterator[str]:
    """Where they are more than pixels, it draws nothing."""
    if panel.kind == "status-history" and not whole(panel.raw.get("maxDataPoints")):
        yield "too many points draw nothing: set maxDataPoints to a quarter of its pixels"


def _place(panel: JsonObject) -> tuple[int, int, int, int] | None:
    x, y, w, h = (whole(at(panel, "gridPos", name)) for name in "xywh")
    if x is None or y is None or w is None or h is None:
        return None
    return x, y, w, h


def _collide(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(
        one[axis] < other[axis] + other[axis + 2] and other[axis] < one[axis] + one[axis + 2]
        for axis in (0, 1)
    )


def _name(panel: JsonObject) -> str:
    return f"panel {panel.get('title')!r} (id {panel.get('id')})"
