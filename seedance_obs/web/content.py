"""The body of the Usage page: five figures, one chart with its table, one table by tenant."""

from typing import Any

import pandas as pd
from dash import dcc, html
from dash.development.base_component import Component

from seedance_obs.web.figures import fold_small, stacked_bars
from seedance_obs.web.header import choices, named
from seedance_obs.web.numerals import (
    decimals_for,
    duration,
    energy_unit,
    fixed,
    percent,
    power_unit,
    significant,
)
from seedance_obs.web.palette import OTHERS, tenant_colours
from seedance_obs.web.tables import empty_grid, steps_table, tenants_table
from seedance_obs.web.usage import NOT_TENANTS, UNALLOCATED, Usage
from seedance_obs.web.view import FORMS, MEASURES, View, zone_of

_CHART_OPTIONS: dcc.Graph.Config = {"displayModeBar": False, "responsive": True}


def empty_page() -> list[Component]:
    """The page before its first reading: shapes of its size, and the parts that readings fill."""
    bones = [html.Div(className="card bone") for _ in range(5)]
    return [
        html.Section(bones, className="cards bones"),
        html.Div(className="panel bone bones chart-bone"),
        html.Div(className="panel bone bones table-bone"),
        html.Section(id="cards", className="cards", **named("Totals")),
        _chart_panel(),
        _tenants_panel(),
    ]


def page_parts(usage: Usage, rates: pd.DataFrame, view: View, now: float) -> dict[str, Any]:
    """What a window in which some tenant was seen puts into each part of the page."""
    colours, zone = tenant_colours(usage.by_tenant["tenant"]), zone_of(view.zone)
    wide, unit = _in_unit(fold_small(rates), view)
    step = usage.window.step
    figure = stacked_bars(wide, colours, window=usage.window, zone=zone, unit=unit)
    return {
        "cards": _cards(usage, now),
        "chart_head": _chart_head(view, unit=unit, step=step),
        "chart": figure,
        "legend": _legend(list(wide.columns), colours),
        "steps": steps_table(wide, zone, name=view.zone, step=step),
        "tenants": tenants_table(usage, colours),
    }


def _in_unit(wide: pd.DataFrame, view: View) -> tuple[pd.DataFrame, str]:
    """The values of a chart in the unit that its largest step calls for; GPUs have none."""
    if view.measure != "energy":
        return wide, ""
    unit, size = power_unit(float(wide.sum(axis=1).max()) if len(wide) else 0.0)
    return wide / size, unit


def _chart_panel() -> Component:
    words = "Bars for each step, stacked by tenant; Table shows the same numbers"
    graph = dcc.Graph(id="chart", config=_CHART_OPTIONS, style={"height": "270px"})
    return html.Section(
        [
            html.Div(id="chart-head", className="panel-head"),
            html.Div(graph, role="img", className="as-chart", **named(words)),
            html.Ul(id="legend", className="legend as-chart"),
            html.Div(empty_grid("steps"), className="as-table"),
        ],
        className="panel",
        **named("By tenant over time"),
    )


def _chart_head(view: View, *, unit: str, step: int) -> list[Component]:
    what = f"mean {unit}" if unit else "mean number held"
    return [
        html.H2(f"{MEASURES[view.measure]} by tenant"),
        html.P(f"{what} in steps of {duration(step)}", className="note"),
        choices("measure", "Quantity", MEASURES, view, name="measure"),
        choices("form", "Form", FORMS, view, name="form"),
    ]


def _tenants_panel() -> Component:
    note = "cells add up to the fleet's row; point at one for its exact value"
    return html.Section(
        [
            html.Div([html.H2("Tenants"), html.P(note, className="note")], className="panel-head"),
            empty_grid("tenants"),
        ],
        className="panel",
        **named("Usage by tenant"),
    )


def _legend(names: list[str], colours: dict[str, str]) -> list[Component]:
    return [
        html.Li(
            [html.Span(className="swatch", style={"background": colours.get(name, OTHERS)}), name]
        )
        for name in names
    ]


def _cards(usage: Usage, now: float) -> list[Component]:
    frame, seconds = usage.by_tenant, usage.window.seconds
    gpu_seconds = float(frame["gpu_seconds"].sum())
    free, observed = usage.held(UNALLOCATED), usage.observed_gpu_seconds
    hours = gpu_seconds / 3600
    return [
        _card(
            "GPU-hours",
            fixed(hours, decimals_for(hours)),
            f"mean {significant(gpu_seconds / seconds)} GPUs",
        ),
        _energy_card(usage),
        _tenants_card(frame),
        _card(
            "Allocated",
            percent(1 - free / observed if observed else None),
            f"unallocated {fixed(free / 3600, decimals_for(hours))} GPU-hours",
        ),
        _card("Observed GPU time", percent(usage.coverage), _age_words(usage, now)),
    ]


def _energy_card(usage: Usage) -> Component:
    known = usage.by_tenant["energy_joules"].dropna()
    if known.empty:
        return _card("Energy", percent(None), "no GPU reports an energy counter")
    joules = float(known.sum())
    unit, size = energy_unit(joules)
    watts = joules / usage.window.seconds
    power, watts_in_one = power_unit(watts)
    return _card(
        "Energy",
        f"{fixed(joules / size, decimals_for(joules / size))} {unit}",
        f"mean {significant(watts / watts_in_one)} {power}",
    )


def _tenants_card(frame: pd.DataFrame) -> Component:
    tenants = frame[~frame["tenant"].isin(NOT_TENANTS)]
    if tenants.empty:
        return _card("Tenants", "0", "nobody held a GPU")
    largest = tenants.iloc[0]
    share = percent(largest["gpu_seconds"] / frame["gpu_seconds"].sum())
    return _card("Tenants", str(len(tenants)), f"largest {largest['tenant']}, {share} of GPU time")


def _age_words(usage: Usage, now: float) -> str:
    if usage.newest_at is None:
        return "the age of the newest sample is unknown"
    if usage.window.end >= int(now):
        return f"newest sample {duration(max(0, round(now - usage.newest_at)))} old"
    return f"last sample {duration(round(usage.window.end - usage.newest_at))} before the end"


def _card(title: str, value: str, note: str) -> Component:
    return html.Div(
        [
            html.H2(title),
            html.P(value, className="value"),
            html.P(note, className="note"),
        ],
        className="card",
    )
