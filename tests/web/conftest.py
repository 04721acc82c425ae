from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hand_made_prometheus import Exposition, running_prometheus, write_blocks


@pytest.fixture(scope="session")
def prometheus_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[Exposition], str]]:
    """The address of a Prometheus that holds the given samples."""
    with ExitStack() as stack:

        def start(exposition: Exposition) -> str:
            folder = tmp_path_factory.mktemp("prometheus")
            blocks = write_blocks(folder, exposition)
            return stack.enter_context(running_prometheus(folder, blocks))

        yield start
