"""The wires of a live host with what each can carry: PCIe from the host down, NVLink, C2C."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from seedance_obs.topology.bandwidth import pcie_bytes_per_second
from seedance_obs.topology.model import (
    UNKNOWN,
    Absent,
    Device,
    Edge,
    Kind,
    NvLinkPort,
    PcieLink,
    all_known,
)
from seedance_obs.topology.nvlinks import HIDDEN_SWITCH
from seedance_obs.topology.pcie_tree import HOST, pcie_tree


def wire(
    ends: Sequence[Device], links: Mapping[str, PcieLink]
) -> tuple[tuple[Device, ...], tuple[Edge, ...]]:
    """The end devices of a host with all that lies between them, and the edges of both.

    `links` has the PCIe link above each switch, by the address of its upstream port. Whatever an
    edge names is among the devices. An edge between two GPUs is there once, although both report
    it.
    """
    above, wires = pcie_tree(ends)
    devices = {
        device.name: replace(device, pcie=links.get(device.name, device.pcie))
        for device in (*above, *ends)
    }
    edges = {(wire.source, wire.target): _with_bandwidth(wire, devices) for wire in wires}
    found = list(edges.values())
    nvlinks: dict[tuple[str, str], Edge] = {}
    for end in ends:
        for edge in _nvlinks(devices, end):
            nvlinks.setdefault((edge.source, edge.target), edge)
        found.extend(_c2c(end))
    return tuple(devices.values()), (*found, *nvlinks.values())


def _with_bandwidth(edge: Edge, devices: Mapping[str, Device]) -> Edge:
    below = devices[edge.target]
    link = below.pcie
    current = _bandwidth(link.generation, link.width) if below.present else UNKNOWN
    return replace(edge, nominal=_bandwidth(link.generation_max, link.width_max), current=current)


def _bandwidth(generation: int | Absent, width: int | Absent) -> float | Absent:
    if isinstance(generation, Absent) or isinstance(width, Absent):
        return UNKNOWN
    return pcie_bytes_per_second(generation, width)


def _c2c(end: Device) -> Iterator[Edge]:
    if isinstance(end.c2c_links, int) and end.c2c_links > 0:
        links, now = (end.c2c_links, end.c2c_mb_per_second) if end.present else (0, UNKNOWN)
        best = end.c2c_mb_per_second_max
        best = now if isinstance(best, Absent) else best
        yield Edge(HOST, end.name, "c2c", links, nominal=_mega(best), current=_mega(now))


def _nvlinks(devices: dict[str, Device], end: Device) -> Iterator[Edge]:
    bundles: dict[str, list[NvLinkPort]] = {}
    for port in () if isinstance(end.nvlinks, Absent) else end.nvlinks:
        far_end = _far_end(port)
        if far_end is not None:
            bundles.setdefault(far_end, []).append(port)
    for far, ports in bundles.items():
        devices.setdefault(far, _beyond(far, ports[0].remote_kind))
        source, target = end.name, far
        if devices[far].kind is Kind.GPU:
            source, target = sorted((end.name, far))
        is_lost = not devices[far].present and devices[far].uuid is not UNKNOWN
        active = [port for port in ports if port.active is True and not is_lost]
        yield Edge(source, target, "nvlink", len(active), _sum(ports), _sum(active))


def _far_end(port: NvLinkPort) -> str | None:
    """Where a port leads, or once led; None for a GPU that nobody names.

    A port that is down and of which nothing more is known may never have been wired.
    """
    if isinstance(port.remote, str):
        return port.remote
    if port.remote_kind in (Kind.GPU, Kind.NPU):
        return None
    was_up = not isinstance(port.mb_per_second, Absent)
    return HIDDEN_SWITCH if port.active is True or was_up else None


def _mega(mb_per_second: float | Absent) -> float | Absent:
    return mb_per_second if isinstance(mb_per_second, Absent) else mb_per_second * 1e6


def _beyond(name: str, kind: Kind | Absent) -> Device:
    """What a link leads to and no other source lists; a GPU there is not for this host to use."""
    if name == HIDDEN_SWITCH:
        return Device(name, Kind.NVLINK_FABRIC)
    if isinstance(kind, Absent):
        return Device(name, Kind.UNKNOWN)
    return Device(name, kind, present=kind is not Kind.GPU)


def _sum(ports: Iterable[NvLinkPort]) -> float | Absent:
    rates = all_known(port.mb_per_second for port in ports)
    return rates if isinstance(rates, Absent) else sum(rates) * 1e6
