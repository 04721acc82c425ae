"""What a Prometheus would have scraped of simulated nodes, as samples to be written to one."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.sources.sim.adapter_files import write_nics
from tests.attribution.simulated_node import SimulatedNode, simulated_node
from tests.dashboards.fleets import LASTS_S, SCRAPE_S, SELDOM_S, Cluster, Node
from tests.dashboards.remote_write import Encoded, Samples, Target

SETTINGS = {
    "sampler_interval_seconds": SCRAPE_S,
    "sampler_stale_after_seconds": 3 * SCRAPE_S,
    "bandwidth_interval_seconds": SCRAPE_S,
    "bandwidth_window_seconds": 3 * SCRAPE_S,
}


def encoded_history(clusters: Iterable[Cluster], start_unix: float) -> Iterator[Encoded]:
    """What was scraped of each node from a Unix time on; worked out on up to four processors."""
    nodes = [(cluster.name, node) for cluster in clusters for node in cluster.nodes]
    nodes.sort(key=lambda each: (-each[1].before_s, -len(each[1].machine.gpus)))
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        yield from pool.map(scraped, *zip(*nodes, strict=True), [start_unix] * len(nodes))


def scraped(cluster: str, node: Node, start_unix: float) -> Encoded:
    """What was scraped of one node."""
    samples = Samples()
    target = Target(samples, job="gpu", instance=node.name, cluster=cluster)
    epoch_unix = start_unix - node.before_s
    with tempfile.TemporaryDirectory() as folder, _running(node, Path(folder), epoch_unix) as one:
        collectors = _collectors(one)
        for t in _moments(node.before_s):
            at_ms = round((epoch_unix + t) * 1000)
            if node.down_at_s is not None and t >= node.down_at_s:
                target.failed(at_ms)
                continue
            _pass(one, t)
            target.scraped(collectors.collect(), at_ms)
    return {series: bytes(encoded) for series, encoded in samples.encoded.items()}


def _moments(before_s: float) -> Iterator[float]:
    """When a node is scraped, in its own time."""
    yield from (number * SELDOM_S for number in range(round(before_s / SELDOM_S)))
    yield from (before_s + number * SCRAPE_S for number in range(round(LASTS_S / SCRAPE_S) + 1))


@contextmanager
def _running(node: Node, folder: Path, epoch_unix: float) -> Iterator[SimulatedNode]:
    settings = {**SETTINGS, **node.settings}
    with simulated_node(node.machine, folder, epoch_unix=epoch_unix, **settings) as running:
        driver = running.node.sources["nvml"]
        vars(driver).update(restarts=0, abandoned=0)  # what the driver's own process would count
        yield running
        running.node.close()


def _pass(running: SimulatedNode, t: float) -> None:
    write_nics(running.machine, running.root, t)
    running.now = t
    running.node.read_fast()
    running.step(t)
    running.node.probe()


def _collectors(running: SimulatedNode) -> CollectorSet:
    return CollectorSet(
        lambda: running.node.view,
        NodeSettings(),
        monotonic=lambda: running.now,
        timer=lambda: 0.0,
    )
