"""Clusters of simulated nodes, and what a Prometheus would have scraped of them.

A cluster is told from the others by the target label `cluster`. Time in them begins at the start
of the history; nothing in them is random.
"""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.sources.sim.machine import Machine
from tests.attribution.simulated_node import simulated_node
from tests.dashboards.remote_write import Encoded, Samples, Target
from tests.rules.fault_scenarios import job, machine

SCRAPE_S = 15.0  # and as often a pass
LASTS_S = 720.0


@dataclass(frozen=True)
class Node:
    """A machine and until when its exporter answers."""

    machine: Machine
    down_from_s: float = float("inf")


@dataclass(frozen=True)
class Cluster:
    """Nodes that are told apart from others by the name of their cluster."""

    name: str
    nodes: tuple[Node, ...]


ONE = Cluster("one", (Node(machine("one-gpu", 1, workloads=[job("train", "research", (0,))])),))
CLUSTERS = (ONE,)


def encoded_history(start_unix: float) -> Iterator[Encoded]:
    """What was scraped of each node from a Unix time on; worked out on two processors."""
    nodes = [(cluster.name, node) for cluster in CLUSTERS for node in cluster.nodes]
    nodes.sort(key=lambda each: -len(each[1].machine.gpus))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield from pool.map(scraped, *zip(*nodes, strict=True), [start_unix] * len(nodes))


def scraped(cluster: str, node: Node, start_unix: float) -> Encoded:
    """What was scraped of one node."""
    settings = {
        "sampler_interval_seconds": SCRAPE_S,
        "sampler_stale_after_seconds": 3 * SCRAPE_S,
        "bandwidth_interval_seconds": SCRAPE_S,
        "bandwidth_window_seconds": 3 * SCRAPE_S,
    }
    samples = Samples()
    target = Target(samples, job="gpu", instance=node.machine.name, cluster=cluster)
    with (
        tempfile.TemporaryDirectory() as folder,
        simulated_node(node.machine, Path(folder), epoch_unix=start_unix, **settings) as simulated,
    ):
        collectors = CollectorSet(
            lambda: simulated.node.view,
            NodeSettings(),
            monotonic=lambda: simulated.now,
            timer=lambda: 0.0,
        )
        for number in range(int(LASTS_S / SCRAPE_S) + 1):
            t = number * SCRAPE_S
            at_ms = round((start_unix + t) * 1000)
            if t >= node.down_from_s:
                target.failed(at_ms)
                continue
            simulated.step(t)
            simulated.node.probe()
            target.scraped(collectors.collect(), at_ms)
    return {series: bytes(encoded) for series, encoded in samples.encoded.items()}
