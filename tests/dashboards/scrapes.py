"""What a Prometheus would have scraped of simulated nodes, as samples to be written to one."""

import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.registry import CollectorSet
from tests.attribution.simulated_node import SimulatedNode, simulated_node
from tests.dashboards.fleets import LASTS_S, SCRAPE_S, Cluster, Node
from tests.dashboards.remote_write import Encoded, Samples, Target

SETTINGS = {
    "sampler_interval_seconds": SCRAPE_S,
    "sampler_stale_after_seconds": 3 * SCRAPE_S,
    "bandwidth_interval_seconds": SCRAPE_S,
    "bandwidth_window_seconds": 3 * SCRAPE_S,
}


def encoded_history(clusters: Iterable[Cluster], start_unix: float) -> Iterator[Encoded]:
    """What was scraped of each node from a Unix time on; worked out on two processors."""
    nodes = [(cluster.name, node) for cluster in clusters for node in cluster.nodes]
    nodes.sort(key=lambda each: -len(each[1].machine.gpus))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield from pool.map(scraped, *zip(*nodes, strict=True), [start_unix] * len(nodes))


def scraped(cluster: str, node: Node, start_unix: float) -> Encoded:
    """What was scraped of one node."""
    samples = Samples()
    target = Target(samples, job="gpu", instance=node.name, cluster=cluster)
    settings = {**SETTINGS, **node.settings}
    with (
        tempfile.TemporaryDirectory() as folder,
        simulated_node(node.machine, Path(folder), epoch_unix=start_unix, **settings) as simulated,
    ):
        collectors = _collectors(simulated)
        for number in range(round(LASTS_S / SCRAPE_S) + 1):
            t = number * SCRAPE_S
            at_ms = round((start_unix + t) * 1000)
            if node.down_at_s is not None and t >= node.down_at_s:
                target.failed(at_ms)
                continue
            simulated.step(t)
            simulated.node.probe()
            target.scraped(collectors.collect(), at_ms)
        simulated.node.close()
    return {series: bytes(encoded) for series, encoded in samples.encoded.items()}


def _collectors(simulated: SimulatedNode) -> CollectorSet:
    return CollectorSet(
        lambda: simulated.node.view,
        NodeSettings(),
        monotonic=lambda: simulated.now,
        timer=lambda: 0.0,
    )
