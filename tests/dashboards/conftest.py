"""One Prometheus for all tests of this folder."""

from collections.abc import Iterator

import pytest
from loopback_prometheus import Prometheus, running_prometheus


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with running_prometheus(tmp_path_factory.mktemp("prometheus")) as running:
        yield running
