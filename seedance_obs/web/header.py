"""The header, which holds the whole state of the page: every choice in it is an address."""

from dataclasses import replace
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from seedance_obs.web import clockface
from seedance_obs.web.view import RANGES, View, zone_names, zone_of


def named(words: str) -> dict[str, Any]:
    """The attribute that tells a screen reader what an element is."""
    return {"aria-label": words}


def header() -> Component:
    """The header without state: callbacks fill `ranges`, `when`, `window-form` and `status`."""
    return html.Header(
        [
            html.H1("Seedance cost"),
            html.Nav(
                dcc.Link("Usage", href="/", className="on"),
                className="pages",
                **named("Pages"),
            ),
            html.Div(id="ranges"),
            _window_chooser(),
            html.Div(id="status", className="chip status", role="status"),
            html.Button("↻", id="refresh", className="chip icon", **named("Read again")),
            _theme_toggle(),
        ]
    )


def choices(
    identity: str, title: str, words: dict[str, str], view: View, *, name: str
) -> Component:
    """Links to the same page with one field of its state replaced."""
    items = [
        html.Li(
            dcc.Link(text, href=replace(view, **_choice(name, value)).search()),
            **_current(view, name, value),
        )
        for value, text in words.items()
    ]
    return html.Ul(items, id=identity, className="choices", **named(title))


def range_choices(view: View) -> Component:
    """The links to the windows that end now."""
    return choices("range", "Range", {name: name for name in RANGES}, view, name="span")


def when_words(view: View, now: float) -> list[Component | str]:
    """The window and its time zone, as the button of the chooser says it."""
    window = clockface.span(view.window(now), zone_of(view.zone), now=now)
    return [f"{window} ", html.B(view.zone)]


def window_form(view: View, now: float) -> Component:
    """The fields of the chooser, filled with the window that is shown."""
    window, zone = view.window(now), zone_of(view.zone)
    start, end = (f"{clockface.at(at, zone):%Y-%m-%d %H:%M}" for at in (window.start, window.end))
    return html.Div(
        [
            _moment_field("from", "From", start),
            _moment_field("to", "To", end),
            html.P(id="form-error", className="form-error", role="alert"),
            html.Button("Show this window", id="apply", className="primary"),
            dmc.Select(
                id="zone",
                label="Time zone",
                data=zone_names(),
                value=view.zone,
                searchable=True,
                openOnFocus=False,
                allowDeselect=False,
                limit=60,
                comboboxProps={"withinPortal": False},
            ),
        ],
        className="window-form",
    )


def _moment_field(name: str, label: str, value: str) -> Component:
    field: Component = dmc.TextInput(
        id=name, label=label, value=value, debounce=True, placeholder="2025-11-03 14:00"
    )
    return field


def _window_chooser() -> Component:
    button = html.Button(id="when", className="chip when", **named("Choose the window and zone"))
    chooser: Component = dmc.Popover(
        [
            dmc.PopoverTarget(button, boxWrapperProps={"className": "when-box"}),
            dmc.PopoverDropdown(html.Div(id="window-form")),
        ],
        id="chooser",
        position="bottom-end",
        width=300,
        trapFocus=True,
        returnFocus=True,
        keepMounted=False,
        shadow="md",
    )
    return chooser


def _theme_toggle() -> Component:
    toggle: Component = dmc.ColorSchemeToggle(
        lightIcon="◐",
        darkIcon="◑",
        variant="default",
        className="chip icon",
        **named("Light or dark"),
    )
    return toggle


def _choice(name: str, value: str) -> dict[str, Any]:
    return {name: value, "between": None} if name == "span" else {name: value}


def _current(view: View, name: str, value: str) -> dict[str, Any]:
    chosen = getattr(view, name) == value and not (name == "span" and view.between)
    return {"aria-current": "true"} if chosen else {}
