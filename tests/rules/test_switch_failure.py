"""An NVSwitch that fails in a simulated machine, as the exporter tells of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seedance_obs.sources.sim.machine import Machine
from tests.attribution.simulated_node import SimulatedNode, simulated_node
from tests.rules.fault_scenarios import FAULT_S, NVSWITCH, job, machine, switch

RECOVERED_S = 1800.0
PASS_S = 0.75  # the default is a second; what is not seen in the first pass takes two
TOGETHER = [{0, 1, 2, 3}]


@contextmanager
def node_of(machine: Machine, folder: Path) -> Iterator[SimulatedNode]:
    with simulated_node(machine, folder, bandwidth_enabled=False) as simulated:
        yield simulated


def fail(node: SimulatedNode, at: float = FAULT_S) -> float:
    """Go on past a moment at the worst of all: when a pass has just been; how old the news is."""
    for t in (at - PASS_S, at - 0.001, at - 0.001 + PASS_S):
        node.step(t)
    taken_at = node.node.view.sources["nvml"].taken_at
    assert taken_at is not None
    return taken_at - at


def reached(node: SimulatedNode) -> list[set[int]]:
    """The GPUs that reach each other over NVLink, group by group."""
    topology = node.node.view.topology
    groups: list[set[int]] = []
    for number, gpu in enumerate(topology.gpus):
        near = [
            group
            for group in groups
            if any(_links(node, gpu.name, topology.gpus[other].name) for other in group)
        ]
        rest = [group for group in groups if group not in near]
        groups = [*rest, {number}.union(*near)]
    return sorted(groups, key=min)


def _links(node: SimulatedNode, one: str, other: str) -> int:
    links = node.node.view.topology.path(one, other).nvlinks
    return links if isinstance(links, int) else 0


def pair_links(node: SimulatedNode) -> set[int]:
    names = [gpu.name for gpu in node.node.view.topology.gpus]
    return {_links(node, names[0], other) for other in names[1:]}


def links_up(node: SimulatedNode) -> list[Any]:
    return [node.node.view.links[gpu.merged.uuid].nvlinks_active for gpu in node.node.view.gpus]


def test_paths_have_fewer_links_in_the_first_pass_after_it_and_all_in_the_first_after_recovery(
    tmp_path: Path,
) -> None:
    with node_of(NVSWITCH.nodes[0].machine, tmp_path) as node:
        node.step(0.0)
        assert (reached(node), pair_links(node)) == (TOGETHER, {18})
        assert 0 < fail(node) < 0.8
        assert (reached(node), pair_links(node)) == (TOGETHER, {13})
        assert links_up(node) == [13] * 4
        assert 0 < fail(node, at=RECOVERED_S) < 0.8
        assert (reached(node), pair_links(node)) == (TOGETHER, {18})


def test_a_domain_splits_where_gpus_hang_on_one_switch_alone(tmp_path: Path) -> None:
    """Switches are one fabric, since their own links are not seen: those that lose it are alone."""
    described = machine(
        "split",
        4,
        nvswitches=[switch(0, 18, (0, 1)), switch(1, 18, (2, 3))],
        workloads=[job("train", "research", (0, 1, 2, 3))],
        faults=[{"at_s": FAULT_S, "nvswitch": 0, "until_s": RECOVERED_S}],
    )
    with node_of(described, tmp_path) as node:
        node.step(0.0)
        assert reached(node) == TOGETHER
        assert 0 < fail(node) < 0.8
        assert reached(node) == [{0}, {1}, {2, 3}]
        assert links_up(node) == [0, 0, 18, 18]
        assert 0 < fail(node, at=RECOVERED_S) < 0.8
        assert reached(node) == TOGETHER
