"""The page in a browser, over a real Prometheus with a day of a hand-made fleet."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import hand_made_fleet
import pytest
from hand_made_prometheus import Exposition
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright
from werkzeug.serving import make_server

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.promql.client import Prometheus, Sample, Series
from seedance_obs.web.app import create_app
from seedance_obs.web.numerals import decimals_for, fixed
from seedance_obs.web.usage import QueryEngine, Window, read_usage

pytestmark = pytest.mark.long
NOW = hand_made_fleet.NOW
expect.set_options(timeout=20_000)  # a busy machine is not a broken page
TOP_ENERGY = ".tenants .ag-center-cols-container [row-index='0'] [col-id=energy]"
Serve = Callable[[QueryEngine], str]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Switchable:
    """A query engine that can be cut off, and that counts what it is asked."""

    def __init__(self, engine: QueryEngine) -> None:
        self.engine, self.url, self.reachable, self.asked = engine, engine.url, True, 0

    def instant(self, expr: str, at: float | None = None) -> list[Sample]:
        self._pass()
        return self.engine.instant(expr, at)

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        self._pass()
        return self.engine.range(expr, start, end, step)

    def _pass(self) -> None:
        self.asked += 1
        if not self.reachable:
            raise SourceUnavailableError(
                "Prometheus at http://nowhere does not answer: is it running?"
            )


@contextmanager
def served(source: QueryEngine) -> Iterator[str]:
    app = create_app(source, clock=lambda: NOW)
    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def prometheus(prometheus_of: Callable[[Exposition], str]) -> Prometheus:
    return Prometheus(prometheus_of(hand_made_fleet.fleet()))


@pytest.fixture(scope="module")
def address(prometheus: Prometheus) -> Iterator[str]:
    with served(prometheus) as found:
        yield found


@pytest.fixture(scope="module")
def browsing() -> Iterator[BrowserContext]:
    """One browser for all, so that it keeps the app's scripts; pages are fresh."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
        chromium.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """The address of an app over the given engine, up until the page is closed."""
    with ExitStack() as stack:
        yield lambda source: stack.enter_context(served(source))


@pytest.fixture
def page(browsing: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page in which any error or warning on the console, or any request elsewhere, fails."""
    request.getfixturevalue("serve")  # what is asked for first ends last: the page may still ask it
    page = browsing.new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: complaints.append(request.url) if _elsewhere(request.url) else None,
    )
    yield page
    page.evaluate("localStorage.clear()")
    page.close()
    assert complaints == []


def _elsewhere(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "data:", "blob:"))


def card(page: Page, title: str) -> str:
    return (
        page.locator(".card", has=page.get_by_role("heading", name=title))
        .locator(".value")
        .inner_text()
    )


def cells(page: Page, column: str) -> list[str]:
    return page.locator(f".tenants [role=gridcell][col-id={column}]").all_inner_texts()


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_page_shows_the_totals_of_the_query(
    page: Page, address: str, prometheus: Prometheus
) -> None:
    frame = read_usage(prometheus, Window(NOW - 86_400, NOW)).by_tenant
    hours, kwh = frame["gpu_seconds"].sum() / 3600, frame["energy_joules"].sum() / 3.6e6
    assert hours == pytest.approx(24 * 24)
    page.goto(f"{address}?range=24h")
    expect(page.locator(".card .value").first).to_have_text(fixed(hours, decimals_for(hours)))
    assert card(page, "Energy") == f"{fixed(kwh, decimals_for(kwh))} kWh"
    assert card(page, "Tenants") == "5"
    expect(page.locator("#chart .bars .point").first).to_be_attached()


def test_cells_add_up_to_the_fleet_and_unallocated_stays_last(page: Page, address: str) -> None:
    page.goto(f"{address}?range=24h")
    expect(page.locator(".tenants")).to_contain_text("Fleet")
    assert cells(page, "tenant")[-2:] == ["unallocated", "Fleet"]
    for column in ("gpu_hours", "energy", "share", "gpus"):
        *parts, total = map(number, cells(page, column))
        assert sum(parts) == pytest.approx(total)
    page.get_by_role("columnheader", name="kWh").click()
    expect(page.locator(TOP_ENERGY)).to_have_text("19.4")
    assert cells(page, "tenant")[-2:] == ["unallocated", "Fleet"]


def test_a_sort_survives_a_refresh(page: Page, address: str) -> None:
    page.goto(f"{address}?range=24h")
    page.get_by_role("columnheader", name="kWh").click()
    first = page.locator(TOP_ENERGY)
    expect(first).to_have_text("19.4")
    with page.expect_response(lambda answer: "_dash-update-component" in answer.url):
        page.get_by_role("button", name="Read again").click()
    expect(page.locator("main")).not_to_have_class("reading")
    expect(first).to_have_text("19.4")


def test_a_range_is_a_link_and_back_undoes_it(page: Page, address: str) -> None:
    page.goto(f"{address}?range=24h")
    hours = page.locator(".card .value").first
    expect(hours).to_have_text("576.0")
    page.get_by_role("link", name="1h", exact=True).click()
    expect(hours).to_have_text("24.00")
    assert page.url.endswith("?range=1h")
    expect(page.locator("#range [aria-current]")).to_have_text("1h")
    page.go_back()
    expect(hours).to_have_text("576.0")
    expect(page.locator("#range [aria-current]")).to_have_text("24h")


def test_a_custom_window_is_chosen_with_the_keyboard_alone(page: Page, address: str) -> None:
    page.goto(f"{address}?tz=Europe/Berlin")
    expect(page.locator("#when")).to_contain_text("Europe/Berlin")
    page.locator("#when").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("From")).to_be_focused()
    expect(page.get_by_label("From")).to_have_value("2025-11-04 03:45")
    for text in ("2025-11-03 10:00", "2025-11-03 13:00"):
        page.keyboard.press("Control+a")
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".card .value").first).to_have_text("72.00")
    expect(page.locator("#when")).to_contain_text("Nov 3, 10:00 – 13:00")  # noqa: RUF001 - the page's dash
    expect(page.get_by_label("From")).to_be_hidden()
    assert "from=2025-11-03T09:00:00Z&to=2025-11-03T12:00:00Z" in page.url


def test_a_window_that_cannot_be_says_why_where_it_was_typed(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".card .value").first).to_have_text("6.000")
    page.locator("#when").click()
    page.get_by_label("To", exact=True).fill("2025-11-01 00:00")
    page.get_by_role("button", name="Show this window").click()
    expect(page.locator("#form-error")).to_contain_text("ends before it starts")
    expect(page.locator(".card .value").first).to_have_text("6.000")


def test_a_time_zone_moves_the_clock_and_not_the_window(page: Page, address: str) -> None:
    page.goto(f"{address}?range=6h")
    expect(page.locator("#when")).to_contain_text("Nov 3, 21:00")
    page.locator("#when").click()
    zone = page.get_by_role("textbox", name="Time zone")
    zone.click()
    zone.fill("Kolkata")
    page.get_by_role("option", name="Asia/Kolkata").click()
    expect(page.locator("#when")).to_contain_text("Nov 4, 02:30 – 08:30 Asia/Kolkata")  # noqa: RUF001 - the page's dash
    assert page.url.endswith("?range=6h&tz=Asia/Kolkata")


def test_dark_and_light_are_one_click_apart_and_remembered(page: Page, address: str) -> None:
    page.goto(address)
    body = page.locator("body")
    expect(body).to_have_css("background-color", "rgb(245, 246, 248)")
    page.get_by_role("button", name="Light or dark").click()
    expect(body).to_have_css("background-color", "rgb(16, 19, 24)")
    expect(page.locator(".tenants .ag-root-wrapper")).to_have_css(
        "background-color", "rgb(26, 29, 37)"
    )
    page.reload()
    expect(body).to_have_css("background-color", "rgb(16, 19, 24)")


def test_the_chart_has_its_table_one_click_away(page: Page, address: str) -> None:
    page.goto(f"{address}?range=1h&show=gpus")
    expect(page.locator("#chart .bars .point").first).to_be_attached()
    page.get_by_role("link", name="Table", exact=True).focus()
    page.keyboard.press("Enter")
    first = page.locator(".steps .ag-center-cols-container [row-index='0']")
    expect(first.locator("[col-id=total]")).to_have_text("24.00")
    expect(page.locator(".steps")).to_contain_text("Nov 4, 03:00")
    assert page.url.endswith("?range=1h&show=gpus&as=table")
    page.go_back()
    expect(page.locator("#chart .bars .point").first).to_be_attached()


def test_hovering_a_step_tells_every_tenant_and_the_total(page: Page, address: str) -> None:
    page.goto(f"{address}?range=24h&show=gpus")
    expect(page.locator("#chart .bars .point").first).to_be_attached()
    box = page.locator("#chart .plot-container").bounding_box()
    assert box is not None
    for share in (0.90, 0.95):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2, steps=4)
    expect(page.locator(".hoverlayer")).to_contain_text("total : 24")
    expect(page.locator(".hoverlayer")).to_contain_text("research : 3")


def test_a_deep_link_reads_once(page: Page, prometheus: Prometheus, serve: Serve) -> None:
    source = Switchable(prometheus)
    page.goto(f"{serve(source)}?range=6h")
    expect(page.locator(".card .value").first).to_have_text("144.0")
    page.wait_for_load_state("networkidle")
    assert source.asked == 5


def test_a_silent_prometheus_is_a_sentence(
    page: Page, prometheus: Prometheus, serve: Serve
) -> None:
    source = Switchable(prometheus)
    source.reachable = False
    page.goto(serve(source))
    expect(page.get_by_role("alert").first).to_contain_text("is it running?")
    expect(page.locator("#status")).to_contain_text("silent")
    expect(page.locator("#cards")).to_be_hidden()


def test_the_last_good_page_stays_with_its_age(
    page: Page, prometheus: Prometheus, serve: Serve
) -> None:
    source = Switchable(prometheus)
    page.goto(serve(source))
    hours = page.locator(".card .value").first
    expect(hours).to_have_text("6.000")
    source.reachable = False
    page.get_by_role("button", name="Read again").click()
    expect(page.locator(".notice")).to_contain_text("this is what was known at 03:00:00")
    expect(hours).to_have_text("6.000")
    page.get_by_role("link", name="1h", exact=True).click()
    expect(page.locator("#cards")).to_be_hidden()
    source.reachable = True
    page.get_by_role("button", name="Read again").click()
    expect(hours).to_have_text("24.00")
    expect(page.locator(".notice")).to_have_count(0)


def test_an_empty_window_says_what_to_do(page: Page, address: str) -> None:
    page.goto(f"{address}?from=2024-01-01T00:00Z&to=2024-01-02T00:00Z")
    expect(page.locator(".notice")).to_contain_text("Choose another window")


def test_an_address_it_does_not_understand_offers_a_way_out(page: Page, address: str) -> None:
    page.goto(f"{address}?range=2h")
    expect(page.locator(".notice")).to_contain_text("use one of 15m, 1h")
    page.get_by_role("link", name="Show the last 15 minutes.").click()
    expect(page.locator(".card .value").first).to_have_text("6.000")


@pytest.mark.parametrize("form", ["chart", "table"])
def test_a_phone_shows_the_page_without_scrolling_sideways(
    page: Page, address: str, form: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}?range=24h&as={form}")
    expect(page.locator(".tenants")).to_contain_text("Fleet")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    grid = page.locator(".tenants").bounding_box()
    energy = page.locator(".tenants [role=gridcell][col-id=energy]").first.bounding_box()
    assert grid is not None
    assert energy is not None
    assert energy["x"] + energy["width"] <= grid["x"] + grid["width"] + 1
