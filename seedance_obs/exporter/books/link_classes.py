"""Which class of link a workload's traffic takes, from the GPUs it holds."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from seedance_obs.exporter.books.residency import Occupancy
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.topology.distance import worst_class
from seedance_obs.topology.model import Absent, Topology

TO_THE_HOST = "PHB"  # a GPU reaches its CPU's memory over its root complex


def link_classes(topology: Topology, gpus: Sequence[str]) -> Mapping[str, str]:
    """The class that NVLink and PCIe traffic of a workload on these devices is booked under.

    NVLink: the worst NVLink class among its pairs. PCIe: the worst class of the pairs that have no
    NVLink, since they talk over PCIe; else what a GPU has to its host.
    """
    paths = [topology.path(one, other) for one, other in combinations(gpus, 2)]
    linked = [path for path in paths if not isinstance(path.nvlinks, Absent) and path.nvlinks]
    others = [path for path in paths if path not in linked]
    pcie = worst_class(path.pcie_class for path in others if path.pcie_class)
    nvlink = worst_class(path.link_class for path in linked if path.link_class)
    found = {"pcie": TO_THE_HOST if isinstance(pcie, Absent) else pcie}
    if not isinstance(nvlink, Absent):
        found["nvlink"] = nvlink
    return found


def links_by_workload(
    found: Sequence[tuple[LocatedGpu, Occupancy | None]], topology: Topology
) -> dict[str, Mapping[str, str]]:
    """The link classes of the traffic of each workload, by its key, from the GPUs it is on."""
    held: dict[str, tuple[str, ...]] = {}
    for gpu, occupied in found:
        for resident in () if occupied is None else occupied.residents():
            devices = held.get(resident.workload.key, ())
            if gpu.device.name not in devices:
                held[resident.workload.key] = (*devices, gpu.device.name)
    classes = {devices: link_classes(topology, devices) for devices in set(held.values())}
    return {workload: classes[devices] for workload, devices in held.items()}
