"""Links between GPUs and workloads on them, as scraped, beside numbers worked out by hand."""

import dataclasses
from itertools import combinations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.machine import Held
from tests.attribution.simulated_node import simulated_node
from tests.machine import HOSTS

PATHS = "seedance_topology_path_bandwidth_bytes_per_second"
CLASSES = "seedance_topology_link_class_bandwidth_bytes_per_second"
REGRET = "seedance_workload_placement_regret_ratio"
BANDWIDTH = "seedance_workload_placement_bandwidth_bytes_per_second"

V100 = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]
V100_LINKS = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
V100_LINK = 25.781e9
L40S = [f"0000:{bus}:00.0" for bus in ("01", "21", "81", "a1")]
GEN3_X16, GEN4_X16 = (rate * 128 / 130 * 16 / 8 for rate in (8e9, 16e9))
HOST_BRIDGE, GEN3_SOCKETS, GEN4_SOCKETS = 5 / 6, 6e9, 10e9


def scraped(page: str, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """The samples of a page by some labels."""
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name
    }


def machine_page(name: str) -> str:
    return (HOSTS / name / "expected.prom").read_text()


def test_paths_of_a_cube_mesh():
    expected = {
        (V100[one], V100[other]): V100_LINKS.get((one, other), 0) * V100_LINK or GEN3_SOCKETS
        for one, other in combinations(range(8), 2)
    }
    found = scraped(machine_page("8x-v100-cube-mesh"), PATHS, "source", "target")
    assert found == pytest.approx(expected)
    assert len(found) == 28


def test_paths_of_gpus_without_nvlink():
    inside, across = GEN4_X16 * HOST_BRIDGE, GEN4_SOCKETS
    expected = {
        (L40S[one], L40S[other]): inside if one // 2 == other // 2 else across
        for one, other in combinations(range(4), 2)
    }
    found = scraped(machine_page("4x-l40s"), PATHS, "source", "target")
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (
            "8x-v100-cube-mesh",
            {
                ("NV2", "NV1"): 2 * V100_LINK,
                ("NV1", "PIX"): V100_LINK,
                ("PIX", "PHB"): GEN3_X16,
                ("PHB", "SYS"): GEN3_X16 * HOST_BRIDGE,
                ("SYS", ""): GEN3_SOCKETS,
            },
        ),
        (
            "4x-l40s",
            {
                ("PHB", "NODE"): GEN4_X16 * HOST_BRIDGE,
                ("NODE", "SYS"): GEN4_X16 * HOST_BRIDGE,
                ("SYS", ""): GEN4_SOCKETS,
            },
        ),
    ],
)
def test_a_class_of_link_leads_to_the_next_further_one(machine, expected):
    found = scraped(machine_page(machine), CLASSES, "link_class", "next_class")
    assert found == pytest.approx(expected)
    assert [*found] == [*expected]


def test_a_node_without_gpus_has_no_links():
    page = machine_page("no-gpu")
    assert not scraped(page, PATHS)
    assert not scraped(page, CLASSES)


def test_processes_that_nobody_could_look_up_are_no_workload():
    assert not scraped(machine_page("8x-v100-cube-mesh"), REGRET, "workload")


def test_regret_of_workloads_on_a_cube_mesh(tmp_path):
    """The best pair has two links, the best three GPUs five; one GPU has no pair."""
    links = {"research": (1, 2), "risk": (4 / 3, 5 / 3)}
    page = _page_of_placed(tmp_path, research=(0, 1), risk=(4, 5, 6), vision=(7,), speech=(2,))
    rates = scraped(page, BANDWIDTH, "tenant", "of")
    assert rates == pytest.approx(
        {
            (tenant, of): count * V100_LINK
            for tenant, counts in links.items()
            for of, count in zip(("actual", "best"), counts, strict=True)
        }
    )
    regret = scraped(page, REGRET, "tenant")
    assert regret == pytest.approx({("research",): 1 / 2, ("risk",): 1 / 5})


def test_of_too_many_workloads_none_is_shown(tmp_path):
    page = _page_of_placed(tmp_path, limit=1, research=(0, 1), risk=(4, 5), vision=(7,))
    assert len(scraped(page, REGRET, "tenant")) == 1


def _page_of_placed(folder, *, limit: int = 1000, **gpus: tuple[int, ...]) -> str:
    """A cube mesh a few seconds after its tenants' workloads were put on these GPUs."""
    machine = load_machine("v100-cubemesh")
    workloads = tuple(
        dataclasses.replace(
            each, devices=tuple(Held(gpu) for gpu in gpus[each.tenant]), start_s=0, duration_s=None
        )
        for each in machine.workloads
        if each.tenant in gpus
    )
    machine = dataclasses.replace(machine, workloads=workloads)
    with simulated_node(machine, folder, attribution_workload_limit=limit) as node:
        for second in range(3):
            node.step(float(second))
        view, registry = node.node.view, CollectorRegistry(auto_describe=False)
        registry.register(CollectorSet(lambda: view, NodeSettings()))
        node.node.close()
    return generate_latest(registry).decode()
