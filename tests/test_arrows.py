"""Arrows point one way: what is pure stays pure, and a source knows nothing of what uses it."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "seedance_obs"

# What the modules of a folder may import of this package, besides their own folder and errors.
MAY_USE = {
    "topology": {"errors", "identity", "pcie"},
    "attribution": {"errors", "workload"},
    "leaks": {"errors", "process_tree"},
    "bandwidth": {"errors", "flow"},
    "fragmentation": {"errors"},
    "collectives": {"errors"},
    "sources": {
        "errors",
        "flow",
        "identity",
        "pcie",
        "process_tree",
        "processes",
        "quantities",
        "workload",
    },
    "promql": {"errors"},
    "rules": {"errors"},
    "dashboards": {"errors", "rules"},
    "web": {"errors", "promql", "attribution", "topology"},
    "exporter": {
        "attribution",
        "bandwidth",
        "config",
        "errors",
        "flow",
        "fragmentation",
        "layout",
        "leaks",
        "merge",
        "process_tree",
        "quantities",
        "sources",
        "topology",
        "tenant_file",
        "wiring_memory",
        "workload",
    },
}


def used(file: Path) -> set[str]:
    """The first names below `seedance_obs` that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("seedance_obs.")}
    return found - {"__version__"}


@pytest.mark.parametrize("folder", sorted(MAY_USE))
def test_a_folder_uses_only_what_lies_below_it(folder):
    files = sorted((PACKAGE / folder).rglob("*.py"))
    assert files
    wrong = {
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in files
        for name in used(file) - MAY_USE[folder] - {folder}
    }
    assert wrong == set()


def test_the_exporter_does_not_know_the_simulator():
    for file in (PACKAGE / "exporter").rglob("*.py"):
        assert "sources.sim" not in file.read_text()
