"""How single columns, cells and texts of a panel differ from the rest of it."""

from collections.abc import Mapping, Sequence

from seedance_obs.dashboards import theme
from seedance_obs.dashboards.theme import Json, JsonObject, Look, steps


def column(name: str, **properties: Json) -> JsonObject:
    """The field that is called `name`; properties by their Grafana ids."""
    values: Sequence[Json] = [{"id": key, "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": values}


def linked(name: str, *links: JsonObject) -> JsonObject:
    """A column whose cells lead on."""
    return column(name, links=links)


def cells(name: str, look: Look, kind: str, thresholds: JsonObject | None = None) -> JsonObject:
    """A column as cells of a kind: `auto`, `gauge`, `color-text`, `color-background`."""
    return column(
        name,
        unit=look.unit,
        min=look.low,
        max=look.high,
        decimals=look.decimals,
        thresholds=thresholds or steps(look.color),
        **{"custom.cellOptions": {"type": kind}},
    )


def colored(name: str, color: str) -> JsonObject:
    """A series, by its legend, in a colour of its own."""
    return column(name, color={"fixedColor": color, "mode": "fixed"})


def texts(mapping: Mapping[str, tuple[str, str]]) -> tuple[JsonObject, ...]:
    """Values by what is shown for them and in which colour."""
    options: JsonObject = {
        value: {"color": color, "index": place, "text": text}
        for place, (value, (text, color)) in enumerate(mapping.items())
    }
    return ({"options": options, "type": "value"},)


def patterns(mapping: Mapping[str, str]) -> tuple[JsonObject, ...]:
    """Texts, by a pattern that they match, in a colour; the first that matches."""
    return tuple(
        {
            "options": {"pattern": f"/^{pattern}$/", "result": {"color": color, "index": place}},
            "type": "regex",
        }
        for place, (pattern, color) in enumerate(mapping.items())
    )


# Series by the state of GPU time and by the component of energy, each by its name.
STATES = (
    colored("active", theme.BUSY),
    colored("reserved", theme.HELD_IDLE),
    colored("unallocated", theme.IDLE),
    colored("unobserved", theme.UNKNOWN),
)
COMPONENTS = (
    colored("active", theme.BUSY),
    colored("reserved_idle", theme.HELD_IDLE),
    colored("unallocated", theme.IDLE),
    colored("unobserved", theme.UNKNOWN),
    colored("hosts", theme.OLIVE),
)
