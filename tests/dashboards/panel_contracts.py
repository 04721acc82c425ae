"""What must hold for a panel of each kind, whatever it shows; else an AssertionError."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.dashboards.every_panel import Drawn, Field, Frame
from tests.dashboards.graph_contract import graph

MOST_QUERIES = 8
GPU = re.compile(r"(?i)(.*\b)?gpu \d+")
OWNERS = ("instance", "tenant", "workload")
NOT_TEXTS = ("undefined", "NaN", "null", "[object Object]")
SLACK = 1e-6
Contract = Callable[[Drawn], None]


def holds(drawn: Drawn) -> None:
    """The rules of all panels, and those of its kind."""
    _asks_little(drawn)
    _numbers_are_finite(drawn)
    _ratios_are_in_range(drawn)
    _texts_say_something(drawn)
    CONTRACTS[drawn.panel["type"]](drawn)


def _asks_little(drawn: Drawn) -> None:
    assert 1 <= len(drawn.queries) <= MOST_QUERIES


def _numbers_are_finite(drawn: Drawn) -> None:
    """Neither 0/0 nor x/0 comes out of a query: nothing is better than `NaN` in a panel."""
    for answer in drawn.answers:
        for series in answer:
            for _, text in series.get("values") or [series["value"]]:
                assert math.isfinite(float(text)), (text, series["metric"])


def _ratios_are_in_range(drawn: Drawn) -> None:
    """A quantity with a lowest or a highest value never leaves them."""
    if drawn.panel["type"] == "nodeGraph":  # applies no settings of fields
        return
    for field in drawn.fields("number"):
        low, high = field["settings"].get("min"), field["settings"].get("max")
        for value in _known(field):
            assert low is None or value >= low - SLACK, (value, field["display"])
            assert high is None or value <= high + SLACK, (value, field["display"])


def _texts_say_something(drawn: Drawn) -> None:
    for field in drawn.fields():
        for text in field.get("texts", ()):
            assert text not in NOT_TEXTS, field["display"]


def _known(field: Field) -> list[Any]:
    return [value for value in field["values"] if value is not None]


def series(drawn: Drawn) -> None:
    """Each series has a name of its own, which says whose it is; a row of a timeline, too."""
    shown = drawn.fields("number")
    _are_unique([field["display"] for field in shown])
    for field in shown:
        assert field["display"] not in {query.expr for query in drawn.queries}
        for owner in _owners(field.get("labels") or {}):
            assert owner in field["display"], (owner, field["display"])


def _owners(labels: Mapping[str, str]) -> list[str]:
    """What a legend has to name: the host, the GPU by its number or UUID, the tenant."""
    owners = [labels[name] for name in OWNERS if labels.get(name)]
    named_by_uuid = labels.get("gpu_uuid") and not labels.get("gpu")
    gpu = labels.get("gpu_uuid") if named_by_uuid else labels.get("gpu")
    return [*owners, gpu] if gpu else owners


def timeline(drawn: Drawn) -> None:
    """A row for each series, with no more points than there is room for."""
    series(drawn)
    room = drawn.panel.get("maxDataPoints")
    for frame in drawn.frames:
        for field in frame["fields"]:
            # Grafana rounds the distance of points, by which there may be twice as many.
            assert room is None or len(field["values"]) <= 2 * room


def heatmap(drawn: Drawn) -> None:
    """Rows are series of gauges: not the buckets of a histogram."""
    timeline(drawn)
    assert {target["format"] for target in drawn.panel["targets"]} == {"time_series"}
    assert not drawn.panel["options"]["calculate"]


def numbers(drawn: Drawn) -> None:
    """One number for each series, with its name where there are several; else the reason."""
    if drawn.empty:
        (nothing,) = drawn.numbers
        assert nothing["text"] == drawn.panel["fieldConfig"]["defaults"]["noValue"]
        return
    assert len(drawn.numbers) == sum(len(answer) for answer in drawn.answers)
    if len(drawn.numbers) > 1:
        titles = [number["title"] for number in drawn.numbers]
        _are_unique(titles)
        assert not {query.expr for query in drawn.queries} & set(titles)


def table(drawn: Drawn) -> None:
    """One frame of columns that somebody chose, numbers where a unit is set; or a matrix."""
    if drawn.empty:
        return
    (frame,) = _with_fields(drawn)
    shown = [field for field in frame["fields"] if not field.get("settings", {}).get("hidden")]
    _are_unique([field["display"] for field in shown])
    names = [field["display"] for field in shown]
    assert not {"Time", "Value", "stat", "__name__", "job"} & set(names), names
    if is_matrix(drawn.panel):
        _matrix(drawn.panel, frame)
        return
    _are_columns_by_choice(drawn.panel, names)
    for name in _columns_with_units(drawn.panel):
        assert {f["type"] for f in shown if f["name"] == name} <= {"number"}, name


def is_matrix(panel: Mapping[str, Any]) -> bool:
    return any(each["id"] == "groupingToMatrix" for each in panel.get("transformations", ()))


def _matrix(panel: Mapping[str, Any], frame: Frame) -> None:
    """Named `row\\column`, both in order; the same GPUs on both sides where both are GPUs."""
    corner, *cells = frame["fields"]
    assert re.fullmatch(r"\w+\\\w+", corner["name"]), corner["name"]
    rows, columns = corner["values"], [field["name"] for field in cells]
    _are_unique(rows)
    assert panel["options"].get("sortBy") or rows == sorted(rows)
    first = _chosen_order(panel)
    assert columns == sorted(columns, key=lambda name: (first.get(name, len(first)), name))
    if all(GPU.fullmatch(name) for name in [*rows, *columns]):
        assert rows == columns
    assert all(field["display"] == field["name"] for field in cells)
    # Numbers, or texts such as link classes, of which a mapping makes colours.
    kinds = {field["type"] for field in cells}
    by_text = {"regex", "value"} & {each["type"] for each in _mappings(panel)}
    assert kinds == {"number"} or (kinds == {"string"} and by_text)


def _mappings(panel: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(panel["fieldConfig"]["defaults"].get("mappings", ()))


def _are_columns_by_choice(panel: Mapping[str, Any], names: list[str]) -> None:
    organized = [t["options"] for t in panel["transformations"] if t["id"] == "organize"]
    renamed = {new for each in organized for new in each.get("renameByName", {}).values()}
    assert set(names) <= set(_chosen_order(panel)) | renamed


def _chosen_order(panel: Mapping[str, Any]) -> dict[str, int]:
    organized = [t["options"] for t in panel["transformations"] if t["id"] == "organize"]
    return dict(organized[-1]["indexByName"]) if organized else {}


def _columns_with_units(panel: Mapping[str, Any]) -> list[str]:
    return [
        each["matcher"]["options"]
        for each in panel["fieldConfig"]["overrides"]
        if each["matcher"]["id"] == "byName"
        and any(value["id"] == "unit" for value in each["properties"])
    ]


def _with_fields(drawn: Drawn) -> list[Frame]:
    return [frame for frame in drawn.frames if frame["fields"]]


def _are_unique(names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    assert not twice, f"more than once: {twice}"


CONTRACTS: Mapping[str, Contract] = {
    "bargauge": numbers,
    "heatmap": heatmap,
    "nodeGraph": graph,
    "stat": numbers,
    "state-timeline": timeline,
    "status-history": timeline,
    "table": table,
    "timeseries": series,
}
