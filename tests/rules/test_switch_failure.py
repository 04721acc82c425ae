"""An NVSwitch that fails in a simulated machine, as the exporter tells of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attribution.simulated_node import SimulatedNode, simulated_node
from tests.rules.fault_scenarios import FAULT_S, NVSWITCH

MACHINE = NVSWITCH.nodes[0].machine
SOON_S = 0.75  # between two passes; the default is a second
LINKS_LEFT, LINKS = 8, 18


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with simulated_node(MACHINE, tmp_path, bandwidth_enabled=False) as simulated:
        yield simulated


def groups(node: SimulatedNode) -> list[set[int]]:
    """The GPUs of each NVLink domain, by their labels."""
    domains: dict[str, set[int]] = {}
    for gpu in node.node.view.gpus:
        domains.setdefault(gpu.labels[-1], set()).add(int(gpu.labels[0]))
    return sorted(domains.values(), key=min)


def links_up(node: SimulatedNode) -> list[int]:
    return [sum(bool(port.active) for port in gpu.device.nvlinks) for gpu in node.node.view.gpus]


def test_the_first_pass_after_it_shows_the_domain_split_and_the_first_after_recovery_whole(
    node: SimulatedNode,
) -> None:
    """A pass each 750 ms, and the worst moment to fail: right after one."""
    recovered = MACHINE.faults[0].until_s
    assert recovered is not None
    for t in (0.0, FAULT_S - SOON_S, FAULT_S - 0.01):
        node.step(t)
    assert (groups(node), links_up(node)) == ([{0, 1, 2, 3}], [LINKS] * 4)

    node.step(FAULT_S - 0.01 + SOON_S)
    assert (groups(node), links_up(node)) == ([{0, 1}, {2, 3}], [LINKS_LEFT] * 4)
    taken_at = node.node.view.sources["nvml"].taken_at
    assert taken_at is not None
    assert 0 < taken_at - FAULT_S < 0.8

    for t in (recovered - 0.01, recovered - 0.01 + SOON_S):
        node.step(t)
    assert (groups(node), links_up(node)) == ([{0, 1, 2, 3}], [LINKS] * 4)
