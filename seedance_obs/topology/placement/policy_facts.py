"""The facts of a set of GPUs that a policy's constraints may ask for, as words."""

from collections.abc import Callable, Iterable, Mapping

from seedance_obs.topology.model import UNKNOWN, Absent, all_known
from seedance_obs.topology.placement.pair_matrix import Placement
from seedance_obs.topology.placement.policy_host import HostView

Fact = frozenset[str] | Absent


def gpu_count(_host: HostView, placement: Placement) -> Fact:
    """The number of GPUs."""
    return _one(len(placement.gpus))


def numa_nodes(_host: HostView, placement: Placement) -> Fact:
    """The number of NUMA nodes that the set needs."""
    return _one(placement.numa_spread)


def nvlink_domains(host: HostView, placement: Placement) -> Fact:
    """The number of groups that reach each other over NVLink; a GPU without NVLink is one."""
    if isinstance(host.groups, Absent):
        return host.groups
    return _one(len({host.groups[gpu] for gpu in placement.gpus}))


def pcie_roots(host: HostView, placement: Placement) -> Fact:
    """The number of PCIe root complexes that the GPUs hang on."""
    roots = _all(host.roots[gpu] for gpu in placement.gpus)
    return roots if isinstance(roots, Absent) else _one(len(roots))


def gpu_model(host: HostView, placement: Placement) -> Fact:
    """Every model in the set."""
    return _all(host.models[gpu] for gpu in placement.gpus)


def worst_link_class(_host: HostView, placement: Placement) -> Fact:
    """The slowest link class: `NV<n>`, C2C, PIX, PXB, PHB, NODE or SYS."""
    return _all([placement.worst_class])


def bottleneck_gbps(_host: HostView, placement: Placement) -> Fact:
    """The slowest pair's bandwidth one way in GB/s (10**9 bytes per second)."""
    return _gigabytes(placement.bottleneck)


def mean_gbps(_host: HostView, placement: Placement) -> Fact:
    """The mean pair's bandwidth one way in GB/s (10**9 bytes per second)."""
    return _gigabytes(placement.mean)


FACTS: Mapping[str, Callable[[HostView, Placement], Fact]] = {
    "gpu-count": gpu_count,
    "numa-nodes": numa_nodes,
    "nvlink-domains": nvlink_domains,
    "pcie-roots": pcie_roots,
    "gpu-model": gpu_model,
    "worst-link-class": worst_link_class,
    "bottleneck-gbps": bottleneck_gbps,
    "mean-gbps": mean_gbps,
}


def _one(number: int | Absent) -> Fact:
    return number if isinstance(number, Absent) else frozenset({str(number)})


def _gigabytes(bytes_per_second: float | Absent) -> Fact:
    if isinstance(bytes_per_second, Absent):
        return bytes_per_second
    return frozenset({f"{bytes_per_second / 1e9:.9g}"})


def _all(words: Iterable[str | Absent]) -> Fact:
    """All words, or why one of them is missing."""
    found = all_known(words)
    return found if isinstance(found, Absent) else frozenset(found) or UNKNOWN
