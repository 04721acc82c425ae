"""What each channel of a node can carry at most, where that is known."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.flow import DIRECTIONS, Channel
from seedance_obs.topology.bandwidth import pcie_bytes_per_second, port_rate
from seedance_obs.topology.model import Absent, Device


def capacities(
    gpus: Sequence[LocatedGpu],
    nics: Sequence[Device],
    nic_capacity: Callable[[str], float | None],
) -> Mapping[Channel, float]:
    """Bytes per second one way, watts of `power`, and 1 of `hbm`; unknown ones are missing.

    A PCIe link counts at the best that GPU and slot allow, since an idle one sleeps. NVLinks count
    while they are up.
    """
    found: dict[Channel, float] = {}
    for gpu in gpus:
        uuid, device = gpu.merged.uuid, gpu.device
        found[Channel(uuid, "hbm")] = 1.0
        limit = gpu.merged.value("power_limit_watts")
        if limit:
            found[Channel(uuid, "power")] = limit
        found.update(_both_ways(uuid, "pcie", _pcie(device)))
        found.update(_both_ways(uuid, "nvlink", _nvlinks(device)))
    for nic in nics:
        found.update(_both_ways(nic.name, "network", nic_capacity(nic.name)))
    return found


def _both_ways(device: str, medium: str, capacity: float | None) -> Iterator[tuple[Channel, float]]:
    if capacity:
        for direction in DIRECTIONS:
            yield Channel(device, medium, direction), capacity


def _pcie(device: Device) -> float | None:
    link = device.pcie
    generation = link.generation if isinstance(link.generation_max, Absent) else link.generation_max
    width = link.width if isinstance(link.width_max, Absent) else link.width_max
    if isinstance(generation, Absent) or isinstance(width, Absent):
        return None
    carried = pcie_bytes_per_second(generation, width)
    return None if isinstance(carried, Absent) else carried


def _nvlinks(device: Device) -> float | None:
    if isinstance(device.nvlinks, Absent):
        return None
    up, rate = sum(port.active is True for port in device.nvlinks), port_rate(device)
    return None if isinstance(rate, Absent) else up * rate
