"""A Prometheus that scraped recorded machines, and one with the history of simulated fleets."""

from collections.abc import Iterator

import pytest
from loopback_prometheus import Prometheus, running_prometheus

from tests.dashboards.history import History, simulated_history


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with running_prometheus(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    with simulated_history(tmp_path_factory.mktemp("history")) as simulated:
        yield simulated
