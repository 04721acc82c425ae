"""The body of the Usage page: five figures, one chart with its table, one table by tenant."""

from datetime import tzinfo

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
from seedance_obs.web.tables import step_rows, steps_grid, tenant_rows, tenants_grid
from seedance_obs.web.usage import UNALLOCATED, Usage
from seedance_obs.web.view import FORMS, MEASURES, View, zone_of

_CHART_OPTIONS: dcc.Graph.Config = {"displayModeBar": False, "responsive": True}


def usage_page(usage: Usage, rates: pd.DataFrame, view: View, now: float) -> list[Component]:
    """Everything below the header for a window in which some tenant was seen."""
    colours = tenant_colours(usage.by_tenant["tenant"])
    return [
        html.Section(_cards(usage, now), className="cards", **named("Totals")),
        _chart_panel(usage, rates, view, colours),
        _tenants_panel(usage, colours),
    ]


def waiting_page() -> list[Component]:
    """Shapes of the same size as the page that is being read."""
    cards = [html.Div(className="card bone") for _ in range(5)]
    return [
        html.Section(cards, className="cards"),
        html.Section(className="panel bone chart-bone"),
        html.Section(className="panel bone table-bone"),
    ]


def _cards(usage: Usage, now: float) -> list[Component]:
    frame, seconds = usage.by_tenant, usage.window.seconds
    gpu_seconds = float(frame["gpu_seconds"].sum())
    free = float(frame.loc[frame["tenant"] == UNALLOCATED, "gpu_seconds"].sum())
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
            percent(1 - free / gpu_seconds if gpu_seconds else None),
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
    tenants = frame[frame["tenant"] != UNALLOCATED]
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


def _chart_panel(
    usage: Usage, rates: pd.DataFrame, view: View, colours: dict[str, str]
) -> Component:
    wide = fold_small(rates)
    unit = ""
    if view.measure == "energy":
        unit, size = power_unit(float(wide.sum(axis=1).max()) if len(wide) else 0.0)
        wide = wide / size
    what = f"mean {unit}" if unit else "mean number held"
    return html.Section(
        [
            html.Div(
                [
                    html.H2(f"{MEASURES[view.measure]} by tenant"),
                    html.P(f"{what} in steps of {duration(usage.window.step)}", className="note"),
                    choices("measure", "Quantity", MEASURES, view, name="measure"),
                    choices("form", "Form", FORMS, view, name="form"),
                ],
                className="panel-head",
            ),
            *_chart_or_table(usage, wide, view, colours, unit=unit),
        ],
        className="panel",
        **named(f"{MEASURES[view.measure]} by tenant over time"),
    )


def _chart_or_table(
    usage: Usage, wide: pd.DataFrame, view: View, colours: dict[str, str], *, unit: str
) -> list[Component]:
    zone = zone_of(view.zone)
    if wide.empty:
        note = "A rate needs two samples: the chart begins with the next scrape."
        return [html.P(note, className="blank")]
    if view.form == "table":
        rows = step_rows(wide, zone, seconds=usage.window.step < 60)
        return [steps_grid(wide, rows, zone=view.zone)]
    return [_chart(usage, wide, zone, colours, unit=unit), _legend(list(wide.columns), colours)]


def _chart(
    usage: Usage, wide: pd.DataFrame, zone: tzinfo, colours: dict[str, str], *, unit: str
) -> Component:
    figure = stacked_bars(wide, colours, window=usage.window, zone=zone, unit=unit)
    words = "Bars for each step, stacked by tenant; Table shows the same numbers"
    graph = dcc.Graph(
        id="chart",
        figure=figure,
        config=_CHART_OPTIONS,
        style={"height": "270px"},
    )
    return html.Div(graph, role="img", **named(words))


def _legend(names: list[str], colours: dict[str, str]) -> Component:
    items = [
        html.Li(
            [html.Span(className="swatch", style={"background": colours.get(name, OTHERS)}), name]
        )
        for name in names
    ]
    return html.Ul(items, className="legend")


def _tenants_panel(usage: Usage, colours: dict[str, str]) -> Component:
    unit = energy_unit(float(usage.by_tenant["energy_joules"].sum()))[0]
    note = "cells add up to the fleet's row; point at one for its exact value"
    return html.Section(
        [
            html.Div([html.H2("Tenants"), html.P(note, className="note")], className="panel-head"),
            tenants_grid(tenant_rows(usage, colours), energy=unit),
        ],
        className="panel",
        **named("Usage by tenant"),
    )
