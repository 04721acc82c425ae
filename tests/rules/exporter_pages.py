"""What the exporter of a simulated node would be scraped for, scrape by scrape."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from tests.attribution.simulated_node import SimulatedNode, simulated_node
from tests.rules.fault_scenarios import PASS_S, Node, Scenario

Pages = list[bytes | None]  # None: nobody answers


def pages(node: Node, lasts_s: float) -> Pages:
    """A page for each PASS_S from 0 on."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "sampler_interval_seconds": node.pass_s,
            "sampler_stale_after_seconds": 2 * node.pass_s,
            "bandwidth_enabled": node.fast_s is not None,
            "bandwidth_interval_seconds": node.fast_s or 1.0,
        }
        with simulated_node(node.machine, Path(folder), **settings) as simulated:
            return list(_scrapes(node, simulated, lasts_s))


def _scrapes(node: Node, simulated: SimulatedNode, lasts_s: float) -> Iterator[bytes | None]:
    registry = CollectorRegistry(auto_describe=False)
    settings = NodeSettings(bandwidth_enabled=node.fast_s is not None)
    registry.register(
        CollectorSet(
            lambda: simulated.node.view,
            settings,
            monotonic=lambda: simulated.now,
            timer=lambda: 0.0,
        )
    )
    for number in range(int(lasts_s / PASS_S)):
        if node.killed_s is not None and number * PASS_S >= node.killed_s:
            yield None
            continue
        for t, whole in _times(node, number):
            if whole:
                simulated.step(t)
                simulated.node.probe()
            else:
                simulated.tick(t)
        yield generate_latest(registry)


def _times(node: Node, number: int) -> Iterator[tuple[float, bool]]:
    """When to look up to a scrape: with all sources, or with the fast loops alone."""
    if number == 0:
        yield 0.0, True
        return
    step = node.fast_s or node.pass_s
    for each in range(1, round(PASS_S / step) + 1):
        since = each * step
        yield (number - 1) * PASS_S + since, since % node.pass_s == 0


def all_pages(scenarios: tuple[Scenario, ...]) -> dict[tuple[str, str], Pages]:
    """The pages of every node, by scenario and node; on two processors."""
    nodes = [(each.name, node, each.lasts_s) for each in scenarios for node in each.nodes]
    nodes.sort(key=lambda each: -each[2] / each[1].pass_s * len(each[1].machine.gpus))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        made = pool.map(pages, *zip(*((node, lasts) for _, node, lasts in nodes), strict=True))
        return {
            (scenario, node.machine.name): found
            for (scenario, node, _), found in zip(nodes, made, strict=True)
        }
