"""The library of each driver generation is compiled once; what a test starts it also ends."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.nvml_abi.child import BindingInChild
from tests.nvml_abi.stand_in import build, environment
from tests.nvml_abi.state_file import write_state


class StandInMachine:
    """A state file, the environment to read it by, and children that do."""

    def __init__(self, library: Path, state: Path, stack: ExitStack) -> None:
        self.environment = environment(library, state)
        self._state = state
        self._stack = stack

    def write(self, lines: Mapping[str, str]) -> None:
        write_state(self._state, lines)

    def binding(self, *, initialise: bool = True) -> BindingInChild:
        child = self._stack.enter_context(BindingInChild(self.environment))
        if initialise:
            child.call("nvmlInit")
        return child


@pytest.fixture(scope="session")
def library_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    built: dict[str, Path] = {}

    def library(driver: str) -> Path:
        if driver not in built:
            built[driver] = build(tmp_path_factory.mktemp(f"nvml{driver}"), driver=driver)
        return built[driver]

    return library


@pytest.fixture
def stand_in(
    library_of: Callable[[str], Path], tmp_path: Path
) -> Iterator[Callable[..., StandInMachine]]:
    """A function from lines (and a driver generation) to a machine that answers by them."""
    with ExitStack() as stack:

        def machine(lines: Mapping[str, str], *, driver: str = "") -> StandInMachine:
            made = StandInMachine(library_of(driver), tmp_path / "state", stack)
            made.write(lines)
            return made

        yield machine
