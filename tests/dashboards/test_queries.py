"""What can be said of the panels' queries without asking them."""

from collections.abc import Iterator
from typing import Any

import pytest

from seedance_obs.dashboards.build import dashboards
from seedance_obs.rules.expression import Call, Node, Selector, parse, selectors, walk
from tests.dashboards.every_panel import panels_of
from tests.dashboards.expectations import OF_ALL_CLUSTERS
from tests.dashboards.grafana_variables import interpolated

RATE_INTERVAL_S, RANGE_S = 4321, 54321  # that nobody would write
PANELS = [(file, panel) for file, each in dashboards().items() for panel in panels_of(each)]
every = pytest.mark.parametrize(
    ("file", "panel"), PANELS, ids=lambda value: value["title"] if isinstance(value, dict) else None
)


class _Texts:
    """Every variable by its own name; the intervals by lengths that are found again."""

    def __getitem__(self, name: str, /) -> str:
        intervals = {"__rate_interval": f"{RATE_INTERVAL_S}s", "__range": f"{RANGE_S}s"}
        return intervals.get(name, f"${name}")


def _queries(panel: dict[str, Any]) -> Iterator[Node]:
    for target in panel["targets"]:
        yield parse(interpolated(target["expr"], _Texts()))


def _selectors(panel: dict[str, Any]) -> list[Selector]:
    return [each for query in _queries(panel) for each in selectors(query)]


@every
def test_a_query_asks_for_the_chosen_clusters(file: str, panel: dict[str, Any]) -> None:
    chosen = ("cluster", "=~", "$cluster")
    of_all = [each.name for each in _selectors(panel) if chosen not in each.matchers]
    assert bool(of_all) == ((file, panel["title"]) in OF_ALL_CLUSTERS), of_all


@every
def test_a_query_for_scraped_series_names_their_job(file: str, panel: dict[str, Any]) -> None:
    for each in _selectors(panel):
        if not (":" in each.name or each.name.startswith("ALERTS")):
            assert {"job"} & {label for label, _, _ in each.matchers}, (file, each.name)


@every
def test_a_rate_looks_back_over_the_rate_interval(file: str, panel: dict[str, Any]) -> None:
    calls = [n for query in _queries(panel) for n in walk(query) if isinstance(n, Call)]
    for call in calls:
        ranges = [
            each.range for each in call.arguments if isinstance(each, Selector) and each.range
        ]
        allowed = {RATE_INTERVAL_S} if "rate" in call.function else {RATE_INTERVAL_S, RANGE_S}
        assert set(ranges) <= allowed, (file, call.function)


@every
def test_no_query_and_no_line_bridges_a_gap(file: str, panel: dict[str, Any]) -> None:
    for query in _queries(panel):
        functions = {node.function for node in walk(query) if isinstance(node, Call)}
        assert not functions & {"last_over_time", "present_over_time"}, file
    assert not panel["fieldConfig"]["defaults"].get("custom", {}).get("spanNulls")
