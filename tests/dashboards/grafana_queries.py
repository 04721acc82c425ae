"""When Grafana asks for what: the window, the step and the rate interval of a panel's queries."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.dashboards.grafana_variables import Choice, interpolated

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SOURCE_INTERVAL_S = 15  # of a data source whose settings nobody has touched
GRID_PIXELS = 80  # a column of the grid on a wide screen, and a point for each pixel
INTERVALS_S = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800)


@dataclass(frozen=True)
class Window:
    """A time range in Unix seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Asked:
    """One query to Prometheus; an instant one is asked at the end."""

    expr: str
    instant: bool
    start: float
    end: float
    step_s: int


def seconds(duration: str) -> int:
    """A duration such as 30s or 1h."""
    found = re.fullmatch(r"(\d+)([smhd])", duration)
    assert found, duration
    return int(found[1]) * SECONDS[found[2]]


def shown_since(dashboard: Mapping[str, Any], end: float) -> Window:
    """The time range with which a dashboard opens."""
    return Window(end - seconds(dashboard["time"]["from"].removeprefix("now-")), end)


def points_of(panel: Mapping[str, Any]) -> int:
    """How many points a panel asks for at most."""
    return int(panel.get("maxDataPoints") or panel["gridPos"]["w"] * GRID_PIXELS)


def interval_s(panel: Mapping[str, Any], window: Window, least_s: int) -> int:
    """What a panel's points are apart: a round interval that is not below the least."""
    exact = window.seconds / points_of(panel)
    near = min(INTERVALS_S, key=lambda each: abs(each - exact))
    return max(near, least_s)


def asked(
    panel: Mapping[str, Any], target: Mapping[str, Any], choice: Choice, window: Window
) -> Asked:
    """A query as it is sent: variables filled, and the window rounded down to whole steps."""
    of_panel = seconds(panel.get("interval") or f"{SOURCE_INTERVAL_S}s")
    of_query = target.get("interval")
    between = interval_s(panel, window, of_panel)
    step = interval_s(panel, window, seconds(of_query)) if of_query else between
    scrape = seconds(of_query) if of_query else SOURCE_INTERVAL_S
    built_in = {
        "__interval": f"{step}s",
        "__range": f"{round(window.seconds)}s",
        "__rate_interval": f"{max(between + scrape, 4 * scrape)}s",
    }
    expr = interpolated(target["expr"], {**choice.texts, **built_in})
    start, end = (moment // step * step for moment in (window.start, window.end))
    return Asked(expr, bool(target["instant"]), start, end, step)
