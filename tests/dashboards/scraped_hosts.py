"""Pages of real exporters for Prometheus to scrape: every machine folder, and simulated machines.

The machine folders share GPU UUIDs, so whatever is joined must be joined node by node.
"""

import dataclasses
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.machine import Fault
from tests.conftest import FakeClock
from tests.machine import HOSTS, LibrarySource, machine

BUSY_AT_SECONDS = 600.0
BROKEN = {
    "mesh": ("v100-cubemesh", Fault(BUSY_AT_SECONDS - 1, gpu=2, xid=48)),
    "one-lost": ("h100-nvswitch", Fault(BUSY_AT_SECONDS - 1, gpu=5, lost=True)),
    "switch-down": ("h100-nvswitch", Fault(BUSY_AT_SECONDS - 1, nvswitch=0)),
}


@cache
def pages() -> dict[str, str]:
    """A whole scrape for each node name."""
    recorded = {path.parent.name: path.read_text() for path in HOSTS.glob("*/expected.prom")}
    return recorded | {name: _simulated(name, *what) for name, what in BROKEN.items()}


def _simulated(node: str, description: str, fault: Fault) -> str:
    """A machine that is seen whole, breaks, and is seen again."""
    clock = FakeClock(BUSY_AT_SECONDS - 2)
    broken = dataclasses.replace(load_machine(description), faults=(fault,))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_sysfs(broken, root)
        write_proc(broken, root, clock())
        found = machine([LibrarySource(SimNvml(broken, clock), clock)], clock, root=root, name=node)
        for _ in range(3):
            found.pass_once()
            clock.advance(1.0)
        page = found.scrape()
        found.node.close()
    return page


def samples(node: str, name: str, **labels: str) -> Iterator[Sample]:
    """The samples of a node's page that have this name and these labels."""
    for family in text_string_to_metric_families(pages()[node]):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                yield sample


def count(name: str, **labels: str) -> int:
    """How many such samples all pages have."""
    return sum(1 for node in pages() for _ in samples(node, name, **labels))
