"""A Prometheus that scraped recorded machines, and one with the history of simulated fleets."""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from loopback_prometheus import Prometheus, running_prometheus

from seedance_obs.dashboards.build import dashboards
from tests.dashboards.every_panel import Drawn, Key, by_fleet, every_panel
from tests.dashboards.history import History, simulated_history


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with running_prometheus(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    with simulated_history(tmp_path_factory.mktemp("history")) as simulated:
        yield simulated


@pytest.fixture(scope="session")
def drawn_panels(history: History) -> dict[Key, list[Drawn]]:
    return by_fleet(every_panel(dashboards(), history))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many panels of each dashboard were drawn as they should be, fleet by fleet."""
    passed: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            if drawn := dict(report.user_properties).get("drawn"):
                file, _, fleet = drawn
                passed[file, fleet].append(outcome == "passed")
    if passed:
        terminalreporter.section("panels drawn, by dashboard and fleet")
        for line in _as_table(passed):
            terminalreporter.write_line(line)


def _as_table(passed: dict[tuple[str, str], list[bool]]) -> Iterator[str]:
    fleets = list(dict.fromkeys(fleet for _, fleet in passed))
    files = list(dict.fromkeys(file for file, _ in passed))
    width = max(map(len, files))
    yield " ".join([" " * width, *(f"{fleet:>9}" for fleet in fleets)])
    for file in files:
        cells = [passed.get((file, fleet), []) for fleet in fleets]
        yield " ".join([f"{file:{width}}", *(f"{sum(c)}/{len(c)}".rjust(9) for c in cells)])
