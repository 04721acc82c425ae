"""A folder to put small rules into."""

import re
from pathlib import Path

import pytest

from tests.rules.small_rules import ROOT, RUNBOOK

NAMES = (
    *("gpu_energy_joules", "gpu_power_watts", "gpu_temperature", "gpu_xid_errors", "gpus_seen"),
    *("segment_capacity", "topology_device_info"),
)


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lines of the contract that tests need: to read all of it takes a tenth of a second."""
    names = "|".join(NAMES)
    text = (ROOT / "exporters" / "node.prom").read_text()
    kept = re.findall(rf"^(?:# \w+ )?seedance_(?:{names}).*\n", text, flags=re.MULTILINE)
    folder = tmp_path_factory.mktemp("exporters")
    (folder / "node.prom").write_text("".join(kept))
    return folder


@pytest.fixture
def folder(tmp_path: Path, contract: Path) -> Path:
    (tmp_path / "runbook.md").write_text(RUNBOOK)
    (tmp_path / "exporters").symlink_to(contract)
    return tmp_path
