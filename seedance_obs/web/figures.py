"""Figures from frames: no queries, no page."""

from collections.abc import Sequence
from datetime import tzinfo
from itertools import pairwise

import pandas as pd
import plotly.graph_objects as go

from seedance_obs.web import clockface
from seedance_obs.web.palette import OTHERS
from seedance_obs.web.usage import UNALLOCATED, Window

MOST_TENANTS = 7


def fold_small(rates: pd.DataFrame, *, keep: int = MOST_TENANTS) -> pd.DataFrame:
    """The largest tenants as columns, the rest as one column of theirs, `unallocated` last.

    Rows are the steps (index `at`); a step in which a tenant had no sample is NaN.
    """
    wide = rates.pivot_table(index="at", columns="tenant", values="value", aggfunc="sum")
    named = wide.drop(columns=UNALLOCATED, errors="ignore")
    order = named.sum().sort_values(ascending=False, kind="stable").index
    folded = named[order[:keep]]
    small = order[keep:]
    if len(small):
        others = named[small].sum(axis=1, min_count=1)
        folded = folded.assign(**{f"{len(small)} others": others})
    if UNALLOCATED in wide:
        folded = folded.assign(**{UNALLOCATED: wide[UNALLOCATED]})
    return folded


def stacked_bars(
    wide: pd.DataFrame, colours: dict[str, str], *, window: Window, zone: tzinfo, unit: str
) -> go.Figure:
    """One bar a step, stacked by tenant; a step nobody reported stays empty."""
    steps = _step_words(window, zone)
    places = [steps[window.step_ends.index(at)] for at in wide.index]
    if wide.empty:
        return _too_young()
    suffix = f" {unit}" if unit else ""
    figure = go.Figure(layout=_layout(window, zone, steps=steps, suffix=suffix))
    for tenant in wide.columns:
        figure.add_bar(
            name=tenant,
            x=places,
            y=_known(wide[tenant]),
            marker={"color": colours.get(tenant, OTHERS), "line": {"width": 0}},
            hovertemplate="%{y:,.3~r}" + suffix,
        )
    figure.add_scatter(
        name="total",
        x=places,
        y=_known(wide.sum(axis=1, min_count=1)),
        mode="markers",
        marker={"color": "rgba(0,0,0,0)"},
        hovertemplate="<b>%{y:,.3~r}" + suffix + "</b>",
    )
    return figure


def _too_young() -> go.Figure:
    figure = go.Figure(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": {"visible": False},
            "yaxis": {"visible": False},
        }
    )
    words = "A rate needs two samples: the chart begins with the next scrape."
    figure.add_annotation(text=words, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure


def _layout(window: Window, zone: tzinfo, *, steps: list[str], suffix: str) -> go.Layout:
    clear_of_the_axis = window.start + window.seconds / 50
    marks = [mark for mark in clockface.marks(window, zone) if mark[0] >= clear_of_the_axis]
    half_a_step = 0.5  # a category sits at its middle
    return go.Layout(
        barmode="stack",
        bargap=0.14,
        showlegend=False,
        hovermode="x unified",
        hoversort="value descending",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "inherit", "size": 12},
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        xaxis={
            "type": "category",
            "categoryarray": steps,
            "range": [-half_a_step, len(steps) - half_a_step],
            "tickvals": [(at - window.step_ends[0]) / window.step + half_a_step for at, _ in marks],
            "ticktext": [words for _, words in marks],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "automargin": True,
            "showspikes": False,
        },
        yaxis={
            "rangemode": "tozero",
            "nticks": 5,
            "tickformat": ",.3~r",
            "ticksuffix": suffix,
            "zeroline": False,
            "fixedrange": True,
            "automargin": True,
        },
    )


def _step_words(window: Window, zone: tzinfo) -> list[str]:
    """Every step of the window in words, told apart when the clocks change in it."""
    clock = "%H:%M:%S" if window.step < 60 else "%H:%M"
    first = window.step_ends[0] - window.step
    moments = [clockface.at(end, zone) for end in (first, *window.step_ends)]
    if moments[0].utcoffset() != moments[-1].utcoffset():
        clock += " %Z"
    return [
        f"{clockface.day(start)}, {start:{clock}} to {end:{clock}}"
        for start, end in pairwise(moments)
    ]


def _known(column: pd.Series) -> Sequence[float | None]:
    return [None if pd.isna(value) else float(value) for value in column]
