"""Inside the package, too, arrows point one way: what a topology is knows of no use of it."""

import ast
from pathlib import Path

import pytest

import seedance_obs.topology

TOPOLOGY = Path(seedance_obs.topology.__file__).parent
# What the modules of a room may import from other rooms; "." are those beside the rooms.
MAY_USE = {
    ".": set(),
    "readers": set(),
    "encoding": set(),
    "placement": {"encoding"},
    "declared": set(),
}


def rooms_used(file: Path) -> set[str]:
    modules = [
        node.module
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    ]
    steps = {module.split(".")[2] for module in modules if module.startswith("seedance_obs.top")}
    return steps & MAY_USE.keys()


def test_every_room_is_listed():
    rooms = {file.parent.name for file in TOPOLOGY.glob("*/__init__.py")}
    assert rooms == MAY_USE.keys() - {"."}


@pytest.mark.parametrize("room", MAY_USE)
def test_a_room_uses_only_what_lies_below_it(room):
    files = sorted((TOPOLOGY / room).glob("*.py"))
    assert files
    allowed = MAY_USE[room] | {room}
    wrong = {file.name: used for file in files if (used := rooms_used(file) - allowed)}
    assert wrong == {}
