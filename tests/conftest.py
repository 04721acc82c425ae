from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import settings

# An example may be slow where the machine is busy: only one that never seems to end is a fault.
settings.register_profile("seedance", settings(), deadline=timedelta(seconds=20))
settings.load_profile("seedance")

SHOWN = "shown"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the expected outputs; read the diff before you commit it",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several processes, none is left with a long file at the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for text in _shown(terminalreporter):
        terminalreporter.write_line(text)


def _shown(terminalreporter: pytest.TerminalReporter) -> Iterator[str]:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            yield from (text for name, text in report.user_properties if name == SHOWN)


class FakeClock:
    """A clock that moves when told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
