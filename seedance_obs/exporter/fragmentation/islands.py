"""On which islands the free GPUs of a node are: NVLink domains, PCIe switches and NUMA nodes."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from seedance_obs.topology.domains import domain_is_known
from seedance_obs.topology.model import UNSUPPORTED, Device, Topology, known
from seedance_obs.topology.naming import number_list

Island = str | None  # None where it cannot be told


def free_by_island(
    topology: Topology, free: Collection[Device], gpus: Collection[Device]
) -> Mapping[str, Counter[str]]:
    """How many free GPUs each island has, by level.

    A GPU without an NVLink domain or PCIe switch is an island of its own. A level is left out
    where none of the node's `gpus` has an island of it, and where that of a free one is not known.
    """
    found = {}
    for level, name_of in _LEVELS.items():
        islands = [name_of(topology, gpu) for gpu in free]
        there = any(name_of(topology, gpu) not in (None, gpu.name) for gpu in gpus)
        if there and None not in islands:
            found[level] = Counter(island for island in islands if island is not None)
    return found


def _nvlink_domain(topology: Topology, gpu: Device) -> Island:
    alone = gpu.name if domain_is_known(topology, gpu) else None
    return topology.domains.get(gpu.name, alone)


def _pcie_switch(_topology: Topology, gpu: Device) -> Island:
    return gpu.name if gpu.pcie_switch is UNSUPPORTED else known(gpu.pcie_switch)


def _numa_node(_topology: Topology, gpu: Device) -> Island:
    return number_list(gpu.numa)


_LEVELS: Mapping[str, Callable[[Topology, Device], Island]] = {
    "nvlink_domain": _nvlink_domain,
    "pcie_switch": _pcie_switch,
    "numa_node": _numa_node,
}
