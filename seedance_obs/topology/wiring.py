"""The wires of a host: what hangs on what over PCIe, and which NVLinks run where.

Host, root complexes, PCIe switches, end devices, NVSwitches: from the left to the right of a
picture and along every edge from source to target. Whatever an edge names is among the devices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from seedance_obs.topology.bandwidth import pcie_bytes_per_second
from seedance_obs.topology.domains import HIDDEN_SWITCH
from seedance_obs.topology.model import (
    UNKNOWN,
    UNSUPPORTED,
    Absent,
    Device,
    Edge,
    Kind,
    NvLinkPort,
    PcieLink,
)

HOST = "host"
MEGA = 1_000_000


def wire(
    ends: Sequence[Device], links: Mapping[str, PcieLink]
) -> tuple[tuple[Device, ...], tuple[Edge, ...]]:
    """The end devices of a host with all that lies between them, and the edges of both.

    `links` has the PCIe link above each switch, by the address of its upstream port. An end whose
    switch or root is not known hangs on the next device above that is. An edge between two GPUs
    is there once, although both report it.
    """
    devices = {HOST: Device(HOST, Kind.HOST)}
    edges: dict[tuple[str, str, str], Edge] = {}
    devices.update((end.name, end) for end in ends)
    for end in ends:
        for edge in (*_pcie(devices, end, links), *_c2c(end), *_nvlinks(devices, end)):
            edges.setdefault((edge.source, edge.target, edge.kind), edge)
    return tuple(devices.values()), tuple(edges.values())


def switches(ports: Sequence[str]) -> tuple[str, ...]:
    """The upstream ports of the switches above a device, top down; `ports` as in `Device`."""
    return tuple(ports[-2:0:-2])[::-1]


def _pcie(
    devices: dict[str, Device], end: Device, links: Mapping[str, PcieLink]
) -> Iterable[Edge]:
    above = HOST
    if isinstance(end.pcie_root, str):
        devices.setdefault(end.pcie_root, Device(end.pcie_root, Kind.PCIE_ROOT, numa=end.numa))
        yield Edge(HOST, end.pcie_root, "pcie")
        above = end.pcie_root
    for name in () if isinstance(end.ports, Absent) else switches(end.ports):
        link = links.get(name, PcieLink())
        devices.setdefault(name, Device(name, Kind.PCIE_SWITCH, numa=end.numa, pcie=link))
        yield _pcie_edge(above, name, link)
        above = name
    yield _pcie_edge(above, end.name, end.pcie)


def _pcie_edge(source: str, target: str, link: PcieLink) -> Edge:
    return Edge(
        source,
        target,
        "pcie",
        nominal=_bandwidth(link.generation_max, link.width_max),
        current=_bandwidth(link.generation, link.width),
    )


def _bandwidth(generation: int | Absent, width: int | Absent) -> float | Absent:
    if isinstance(generation, Absent) or isinstance(width, Absent):
        return UNKNOWN
    return pcie_bytes_per_second(generation, width)


def _c2c(end: Device) -> Iterable[Edge]:
    if isinstance(end.c2c_links, int) and end.c2c_links > 0:
        rate = end.c2c_mb_per_second
        total = UNKNOWN if isinstance(rate, Absent) else end.c2c_links * rate * MEGA
        yield Edge(HOST, end.name, "c2c", links=end.c2c_links, nominal=total, current=total)


def _nvlinks(devices: dict[str, Device], end: Device) -> Iterable[Edge]:
    bundles: dict[str, list[NvLinkPort]] = {}
    for port in () if isinstance(end.nvlinks, Absent) else end.nvlinks:
        # A port that is down and names no far end may never have been wired.
        if isinstance(port.remote, str) or port.active is True:
            far = HIDDEN_SWITCH if isinstance(port.remote, Absent) else port.remote
            bundles.setdefault(far, []).append(port)
    for far, ports in bundles.items():
        _meet(devices, far, ports[0].remote_kind)
        source, target = end.name, far
        if devices[far].kind is Kind.GPU:
            source, target = sorted((end.name, far))
        active = [port for port in ports if port.active is True]
        yield Edge(source, target, "nvlink", len(active), _sum(ports), _sum(active))


def _meet(devices: dict[str, Device], name: str, kind: Kind | Absent) -> None:
    if name == HIDDEN_SWITCH:
        kind = Kind.NVLINK_FABRIC
    elif isinstance(kind, Absent):
        kind = Kind.UNKNOWN
    # What a link leads to and no source lists is there, but not for this host to use.
    away = Device(name, kind, present=kind is not Kind.GPU)
    known = devices.setdefault(name, away)
    if known.kind is Kind.UNKNOWN:
        devices[name] = replace(known, kind=kind)


def _sum(ports: Iterable[NvLinkPort]) -> float | Absent:
    rates = [port.mb_per_second for port in ports]
    if any(isinstance(rate, Absent) for rate in rates):
        return UNSUPPORTED if UNSUPPORTED in rates else UNKNOWN
    return MEGA * sum(rate for rate in rates if not isinstance(rate, Absent))
