"""One reading of the page: what Prometheus said, or a sentence on why there is nothing to show."""

from typing import Any

from dash import Output, dcc, html, no_update
from dash.development.base_component import Component

from seedance_obs.errors import SourceUnavailableError, UsageError
from seedance_obs.web import clockface
from seedance_obs.web.content import page_parts
from seedance_obs.web.usage import (
    ENERGY_JOULES,
    GPU_SECONDS,
    QueryEngine,
    Window,
    read_rates,
    read_usage,
)
from seedance_obs.web.view import View, parse_view, zone_of

_COUNTERS = {"energy": ENERGY_JOULES, "gpus": GPU_SECONDS}
_GRID_FIELDS = ("columnDefs", "rowData", "dashGridOptions", "style")
_BLANK = "blank"

PARTS: dict[str, Any] = {
    "page": Output("page", "className"),
    "notice": Output("notice", "children"),
    "status": Output("status", "children"),
    "shown": Output("shown", "data"),
    "fixed": Output("live", "disabled"),
    "cards": Output("cards", "children"),
    "chart_head": Output("chart-head", "children"),
    "chart": Output("chart", "figure"),
    "legend": Output("legend", "children"),
    "steps": {field: Output("steps", field) for field in _GRID_FIELDS},
    "tenants": {field: Output("tenants", field) for field in _GRID_FIELDS},
}
_UNCHANGED: dict[str, Any] = {
    name: dict.fromkeys(part, no_update) if isinstance(part, dict) else no_update
    for name, part in PARTS.items()
}


def answer(
    source: QueryEngine, search: str | None, *, now: float, shown: dict[str, str] | None
) -> dict[str, Any]:
    """A value for each of PARTS at an address; `shown` tells which address is on the page now."""
    try:
        view = parse_view(search)
    except UsageError as error:
        notice = _notice("This address is not understood", str(error), offer_default=True)
        return _UNCHANGED | {"page": _BLANK, "notice": notice, "shown": None, "fixed": True}
    try:
        return _UNCHANGED | _read(source, view, now)
    except SourceUnavailableError as error:
        failure = _failure(str(error), view, shown)
        return _UNCHANGED | failure | {"status": _status(source, view, now, ok=False)}


def _read(source: QueryEngine, view: View, now: float) -> dict[str, Any]:
    window = view.window(now)
    usage = read_usage(source, window)
    rates = read_rates(source, _COUNTERS[view.measure], window)
    always = {"status": _status(source, view, now, ok=True), "fixed": view.between is not None}
    if usage.by_tenant.empty:
        notice = _notice("No usage in this window", _nothing(window, view, now))
        return always | {"page": _BLANK, "notice": notice, "shown": None}
    shown = {"search": view.search(), "at": _clock(view, now)}
    parts = page_parts(usage, rates, view, now)
    return always | parts | {"page": f"full {view.form}", "notice": [], "shown": shown}


def _failure(reason: str, view: View, shown: dict[str, str] | None) -> dict[str, Any]:
    """A notice; the last good reading stays below it if it is of the same address."""
    if shown and shown["search"] == view.search():
        words = f"{reason} Until then, this is what was known at {shown['at']}."
        return {"notice": _notice("Prometheus gives no answer", words, failed=True)}
    notice = _notice("Prometheus gives no answer", reason, failed=True)
    return {"page": _BLANK, "notice": notice, "shown": None, "fixed": False}


def _nothing(window: Window, view: View, now: float) -> str:
    span = clockface.span(window, zone_of(view.zone), now=now)
    return (
        f"Prometheus knows of no tenant in {span} {view.zone}. Choose another window, or check "
        "that a scrape job named gpu reads the node exporters and that its targets are up."
    )


def _notice(
    title: str, words: str, *, failed: bool = False, offer_default: bool = False
) -> Component:
    way_out = dcc.Link("Show the last 15 minutes.", href="?") if offer_default else None
    return html.Div(
        [html.H2(title), html.P([words, " ", way_out])],
        className="notice failed" if failed else "notice",
        role="alert" if failed else "status",
    )


def _status(source: QueryEngine, view: View, now: float, *, ok: bool) -> Component:
    words = f"Prometheus {'read' if ok else 'silent'} {_clock(view, now)}"
    dot = html.Span(className="dot ok" if ok else "dot bad")
    return html.Span([dot, words], title=source.url)


def _clock(view: View, now: float) -> str:
    return f"{clockface.at(now, zone_of(view.zone)):%H:%M:%S}"
