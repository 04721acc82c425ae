"""How the answer of one query becomes a table or a graph: Grafana's transformations and columns.

Only transformations that npm's `@grafana/data` can run are used, so that tests can run them all.
"""

from seedance_obs.dashboards.panels import column
from seedance_obs.dashboards.theme import JsonObject, Look


def frame_of_rows(ref_id: str) -> tuple[JsonObject, JsonObject]:
    """Turns series that carry their column in `stat` into one frame, under real field names."""
    only: JsonObject = {"id": "byRefId", "options": ref_id}
    return (
        {
            "id": "labelsToFields",
            "filter": only,
            "options": {"mode": "columns", "valueLabel": "stat"},
        },
        {"id": "merge", "filter": only, "options": {}},
    )


def in_order(*names: str, hidden: tuple[str, ...]) -> JsonObject:
    """Puts the named columns first, in this order, and hides others."""
    return {
        "id": "organize",
        "options": {
            "excludeByName": dict.fromkeys(hidden, True),
            "indexByName": {name: place for place, name in enumerate(names)},
            "renameByName": {},
        },
    }


def gauge(name: str, look: Look) -> JsonObject:
    """Shows a column as bars over the range of its quantity."""
    return column(
        name,
        unit=look.unit,
        min=look.low,
        max=look.high,
        color={"mode": "fixed", "fixedColor": look.color},
        custom__cellOptions={"type": "gauge", "mode": "basic"},
    )
