from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_sysfs
from tests.topology.command_line import CUT, NOTHING, P2P, PAIR, SEED_POLICY

EPOCH = 1_700_000_000


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, ...]]:
    """The options that make a simulated machine the host of a command, by its name."""

    @cache
    def options(name: str) -> tuple[str, ...]:
        root = tmp_path_factory.mktemp(name)
        write_sysfs(load_machine(name), root)
        library = ("--nvml-library", f"sim:{name}@{EPOCH}")
        return *library, "--node-root", str(root), "--node-name", "node-1"

    return options


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which holds texts to read."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"pair": PAIR, "cut": CUT, "p2p": P2P, "nothing": NOTHING}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "policy.yaml").write_text(SEED_POLICY)
    return tmp_path
