"""What one node of a large fleet shows, and how nodes differ: made from the contract's own scrape.

`exporters/node.prom` is a page with everything that the exporter can tell. Its free GPUs are taken
by a copy of what holds another, so that every GPU of the fleet is in use.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.assets import assets_folder
from seedance_obs.rules.expression import Selector
from seedance_obs.rules.series import BORN_BY_AN_EVENT

# Stand for the number of a node and of the group of tenants on it, and are as long as both, so that
# an encoded page becomes that of any node without being encoded again.
NODE, GROUP = "####", "@@"
TENANT_GROUPS = 50
FAULTY_EVERY = 10
FAULTS = frozenset(
    {
        "seedance_gpu_source_disagreement_ratio",
        "seedance_gpu_source_stuck",
        "seedance_gpu_xid_age_seconds",
        "seedance_gpu_xid_errors_total",
    }
)
TARGET = {"cluster": "cluster-1", "instance": f"node-{NODE}", "job": "gpu"}
PLACE = frozenset(
    {"gpu", "gpu_uuid", "numa_node", "nvlink_domain", "pci_bus_id", "pcie_root", "pcie_switch"}
)
READINGS = ("_watts", "_ratio", "_bytes", "_per_second")  # gauges that never stand still
# Demand, which is told by others: see FOREIGN in seedance_obs/rules/series.py.
DEMAND = f"""
kube_pod_container_resource_requests{{namespace="n",pod="p-{NODE}",resource="nvidia_com_gpu"}} 8
kube_pod_status_unschedulable{{namespace="n",pod="p-{NODE}"}} 0
kueue_pending_workloads{{cluster_queue="q-{NODE}",status="inadmissible"}} 0
"""
_NAMES = (
    (re.compile(r"^node-1\b"), f"node-{NODE}"),
    (re.compile(r"\b(GPU-[0-9a-f]{4}|pod-[0-9a-f]{4})[0-9a-f]{4}"), rf"\1{NODE}"),
)
_NOBODY = frozenset({"system", "unallocated", "unobserved"})


@dataclass(frozen=True, slots=True)
class PageSeries:
    """A series of every node: labels with NODE and GROUP in them, its value and how it moves."""

    name: str
    labels: Mapping[str, str]
    value: float
    per_second: float = 0.0
    moves: bool = False  # by a hundredth at most

    def on_node(self, number: int) -> bool:
        """Whether a node has it: leak suspects and faults only every tenth."""
        return number % FAULTY_EVERY == 0 or not (self.name in FAULTS or "suspect" in self.labels)

    def chosen_by(self, selector: Selector) -> bool:
        """Whether the matchers of a selector leave it in; its name is not looked at."""
        return all(
            (how in ("=", "=~")) == _matches(how, value, self.labels.get(label, ""))
            for label, how, value in selector.matchers
        )

    def values(self, seconds: Collection[float], random: Random) -> Iterator[float]:
        """Its values so many seconds after the fleet began."""
        for each in seconds:
            wobble = 1 - random.random() / 100 if self.moves else 1.0
            yield (self.value + self.per_second * each) * wobble


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a node with every fault shows, of how many nodes, and how often they are scraped."""

    page: Sequence[PageSeries]
    nodes: int
    scrape_seconds: int = 15

    def pages(self, encode: Callable[[PageSeries], bytes]) -> "EncodedPages":
        """The pages of all nodes, from each series encoded once."""
        healthy = [each for each in self.page if each.on_node(1)]
        faults = [each for each in self.page if not each.on_node(1)]
        return EncodedPages(*(b"".join(map(encode, part)) for part in (healthy, faults)))


@dataclass(frozen=True, slots=True)
class EncodedPages:
    """What every node shows, and what only those with faults do."""

    healthy: bytes
    faults: bytes

    def of_node(self, number: int) -> bytes:
        """The page of one node."""
        node, group = _marks(number)
        page = self.healthy if number % FAULTY_EVERY else self.healthy + self.faults
        return page.replace(NODE.encode(), node.encode()).replace(GROUP.encode(), group.encode())


def node_page() -> list[PageSeries]:
    """Every series that Prometheus has of one node and of the demand that falls on it."""
    scraped = list(_scraped((assets_folder("exporters") / "node.prom").read_text()))
    up = PageSeries("up", TARGET, 1.0)
    return [up, *_taken(scraped), *_demand()]


def labels_of_node(labels: Mapping[str, str], number: int) -> dict[str, str]:
    """Labels of the page as those of one node."""
    node, group = _marks(number)
    return {name: value.replace(NODE, node).replace(GROUP, group) for name, value in labels.items()}


def _marks(number: int) -> tuple[str, str]:
    """What stands for NODE and GROUP on a node."""
    return f"{number:0{len(NODE)}}", f"{number % TENANT_GROUPS:0{len(GROUP)}}"


def _matches(how: str, wanted: str, value: str) -> bool:
    return bool(re.fullmatch(wanted, value)) if "~" in how else wanted == value


def _scraped(text: str) -> Iterator[PageSeries]:
    families = list(text_string_to_metric_families(text))
    age_seconds = max(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "seedance_tenant_gpu_seconds_total"
    )
    for family in families:
        for sample in family.samples:
            grows = family.type in ("counter", "histogram") and sample.name not in BORN_BY_AN_EVENT
            yield PageSeries(
                sample.name,
                TARGET | {name: _named(name, value) for name, value in sample.labels.items()},
                sample.value,
                per_second=sample.value / age_seconds if grows else 0.0,
                moves=family.type == "gauge" and sample.name.endswith(READINGS),
            )


def _named(label: str, value: str) -> str:
    if label in ("tenant", "namespace") and value and value not in _NOBODY:
        return f"{value}-{GROUP}"
    for pattern, name in _NAMES:
        value = pattern.sub(name, value)
    return value


def _taken(page: list[PageSeries]) -> Iterator[PageSeries]:
    places = {
        each.labels["gpu_uuid"]: {name: each.labels[name] for name in PLACE}
        for each in page
        if each.name == "seedance_gpu_info"
    }
    share = {
        each.labels["gpu_uuid"]: each.value
        for each in page
        if each.name == "seedance_gpu_free_ratio"
    }
    free = [uuid for uuid, value in share.items() if value == 1]
    model = [uuid for uuid, value in share.items() if value == 0][-1]
    for each in page:
        wiring = each.name.startswith("seedance_topology_")  # whoever holds what
        if wiring or each.labels.get("gpu_uuid") not in free:
            yield each
        if each.labels.get("gpu_uuid") == model and "suspect" not in each.labels and not wiring:
            for uuid in free:
                labels = {n: places[uuid].get(n, v) for n, v in each.labels.items()}
                yield replace(each, labels=labels)


def _demand() -> Iterator[PageSeries]:
    others = {"cluster": TARGET["cluster"], "job": "demand"}
    for family in text_string_to_metric_families(DEMAND):
        for sample in family.samples:
            yield PageSeries(sample.name, others | sample.labels, sample.value)
