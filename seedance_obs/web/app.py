"""The Dash app: addresses in, pages out; it keeps nothing between requests."""

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import dash_mantine_components as dmc
import waitress
from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component
from flask import Response
from waitress.server import BaseWSGIServer

from seedance_obs.errors import UsageError
from seedance_obs.promql.client import Prometheus
from seedance_obs.web.answer import PARTS, answer
from seedance_obs.web.content import empty_page
from seedance_obs.web.header import header, range_choices, when_words, window_form
from seedance_obs.web.usage import QueryEngine
from seedance_obs.web.view import View, between, parse_view

log = logging.getLogger(__name__)

Clock = Callable[[], float]

_REFRESH_MS = 15_000
_LOCAL_ONLY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'"
)


def create_app(source: QueryEngine, *, clock: Clock = time.time) -> Dash:
    """The cost app over a Prometheus; `clock` gives the present in seconds since the epoch."""
    app = Dash(
        __name__,
        title="Seedance cost",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        enable_mcp=False,
    )
    app.layout = _layout
    _follow_the_address(app, clock)
    _read_on_change(app, source, clock)
    _choose_a_window(app)
    _answer_plainly(app)
    return app


def serve(
    prometheus_url: str,
    address: str,
    *,
    timeout_seconds: float = 10.0,
    announce: Callable[[str], object] = log.info,
) -> None:
    """Serve the app at HOST:PORT until interrupted; `announce` is told where it is.

    Raises:
        UsageError: an address cannot be used as it stands, or the port is taken.
    """
    server = open_server(Prometheus(prometheus_url, timeout_seconds), address)
    announce(f"cost app at http://{server.effective_host}:{server.effective_port}/")
    try:
        server.run()
    finally:
        server.close()


def open_server(source: QueryEngine, address: str) -> BaseWSGIServer:
    """A server that already listens at HOST:PORT (port 0: any free one) but does not run yet.

    Raises:
        UsageError: the address is no HOST:PORT, is not this machine's, or is taken.
    """
    host, port = _host_and_port(address)
    # A browser's burst of requests for a page's own files is no reason to warn.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {address} ({error}): stop what holds it, or choose another --listen"
        ) from error
    server = create_app(source).server
    return waitress.create_server(server, sockets=[listener], threads=8, ident=None)


def _host_and_port(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{address}")
        if parts.hostname and parts.port is not None:
            return parts.hostname, parts.port
    except ValueError:  # a port that is no number, or out of range
        pass
    raise UsageError(f"{address!r} is no address to listen at: want HOST:PORT")


def _layout() -> Component:
    page = [
        dcc.Location(id="url", refresh="callback-nav"),
        dcc.Interval(id="live", interval=_REFRESH_MS),
        dcc.Store(id="shown"),
        header(),
        html.Main(
            [html.Div(id="notice"), html.Div(empty_page(), id="page", className="waiting")],
            id="main",
        ),
    ]
    provider: Component = dmc.MantineProvider(page, defaultColorScheme="auto")
    return provider


def _follow_the_address(app: Dash, clock: Clock) -> None:
    """Fill the header from the address, close the chooser when it changes, and keep the time."""

    @app.callback(
        Output("ranges", "children"),
        Output("window-form", "children"),
        Output("chooser", "opened"),
        Input("url", "search"),
    )
    def fill(search: str | None) -> tuple[Any, ...]:
        view = _lenient(search)
        return range_choices(view), window_form(view, clock()), False

    @app.callback(Output("when", "children"), Input("url", "search"), Input("live", "n_intervals"))
    def tell_when(search: str | None, _beats: int | None) -> list[Component | str]:
        return when_words(_lenient(search), clock())


def _choose_a_window(app: Dash) -> None:
    """Turn the chooser's fields into an address."""

    @app.callback(
        Output("url", "search", allow_duplicate=True),
        Output("form-error", "children"),
        Input("apply", "n_clicks"),
        Input("from", "n_submit"),
        Input("to", "n_submit"),
        State("from", "value"),
        State("to", "value"),
        State("url", "search"),
        prevent_initial_call=True,
    )
    def apply(*given: Any) -> tuple[Any, Any]:
        *pressed, start, end, search = given
        if not any(pressed):
            return no_update, no_update
        try:
            return between(_lenient(search), start, end).search(), ""
        except UsageError as error:
            return no_update, str(error)

    @app.callback(
        Output("url", "search", allow_duplicate=True),
        Input("zone", "value"),
        State("url", "search"),
        prevent_initial_call=True,
    )
    def change_zone(zone: str, search: str | None) -> Any:
        view = _lenient(search)
        return no_update if zone == view.zone else replace(view, zone=zone).search()


def _read_on_change(app: Dash, source: QueryEngine, clock: Clock) -> None:
    """Read the window again when the address changes, on a beat, and when asked to."""

    @app.callback(
        PARTS,
        Input("url", "search"),
        Input("live", "n_intervals"),
        Input("refresh", "n_clicks"),
        State("shown", "data"),
        running=[(Output("main", "className"), "reading", "")],
    )
    def read(
        search: str | None, _beats: int | None, _clicks: int | None, shown: dict[str, str] | None
    ) -> dict[str, Any]:
        return answer(source, search, now=clock(), shown=shown)


def _lenient(search: str | None) -> View:
    try:
        return parse_view(search)
    except UsageError:
        return View()


def _answer_plainly(app: Dash) -> None:
    """A health address, and headers that keep the page to what this server gives."""

    def healthy() -> Response:
        return Response("The cost app is healthy.\n", mimetype="text/plain")

    def keep_local(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _LOCAL_ONLY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    app.server.add_url_rule("/-/healthy", "healthy", healthy)
    app.server.after_request(keep_local)
