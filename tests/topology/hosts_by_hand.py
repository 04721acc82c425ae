"""Hosts that a person can draw: GPUs, the PCIe level and the NVLinks of every pair."""

from collections.abc import Callable, Mapping
from itertools import combinations

from seedance_obs.topology.model import (
    UNKNOWN,
    Absent,
    Device,
    Kind,
    NvLinkKind,
    NvLinkPort,
    Path,
    PcieLevel,
    PcieLink,
    Topology,
)

GEN3 = PcieLink(generation_max=3, width_max=16)
GEN4 = PcieLink(generation_max=4, width_max=16)
GEN5 = PcieLink(generation_max=5, width_max=16)

# The hybrid cube mesh of a DGX-1 with V100.
DGX1_LINKS = {
    (0, 1): 1, (0, 2): 1, (1, 3): 1, (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (5, 7): 1,
    (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 5): 2, (2, 3): 2, (4, 7): 2, (5, 6): 2, (6, 7): 2,
}  # fmt: skip


def gpu(index: int, *, numa: int | None = None, pcie: PcieLink = GEN3, **more) -> Device:
    near = UNKNOWN if numa is None else frozenset({numa})
    return Device(f"GPU{index}", Kind.GPU, index=index, numa=near, pcie=pcie, **more)


def ports(count: int, mb_per_second: float | Absent) -> tuple[NvLinkPort, ...]:
    return tuple(
        NvLinkPort(port, active=True, mb_per_second=mb_per_second) for port in range(count)
    )


def host(
    gpus: list[Device],
    level: Callable[[int, int], PcieLevel | Absent],
    links: Callable[[int, int], int | Absent] = lambda _one, _other: 0,
    *,
    link_kind: NvLinkKind | Absent = NvLinkKind.DIRECT,
    domains: Mapping[str, str] | None = None,
    others: tuple[Device, ...] = (),
    more_paths: tuple[Path, ...] = (),
) -> Topology:
    paths = tuple(
        Path(
            gpus[one].name,
            gpus[other].name,
            level(one, other),
            links(one, other),
            link_kind if links(one, other) else UNKNOWN,
        )
        for one, other in combinations(range(len(gpus)), 2)
    )
    return Topology((*gpus, *others), paths + more_paths, domains=domains or {})


def two_sockets(half: int, inside: PcieLevel = PcieLevel.NODE) -> Callable[[int, int], PcieLevel]:
    return lambda one, other: inside if one // half == other // half else PcieLevel.SYS


def dgx1_level(one: int, other: int) -> PcieLevel:
    if one // 2 == other // 2:
        return PcieLevel.PIX
    return PcieLevel.PHB if one // 4 == other // 4 else PcieLevel.SYS


def dgx1() -> Topology:
    gpus = [gpu(i, numa=i // 4, nvlinks=ports(6, 25_000)) for i in range(8)]
    domains = {device.name: "host.GPU0" for device in gpus}
    return host(gpus, dgx1_level, lambda i, j: DGX1_LINKS.get((i, j), 0), domains=domains)


def nvswitch(count: int = 8, links: int = 18, mb_per_second: float = 26_562) -> Topology:
    half = count // 2
    gpus = [
        gpu(i, numa=i // half, pcie=GEN5, nvlinks=ports(links, mb_per_second), model="H100")
        for i in range(count)
    ]
    return host(
        gpus,
        two_sockets(half),
        lambda _one, _other: links,
        link_kind=NvLinkKind.SWITCH,
        domains={device.name: "host.GPU0" for device in gpus},
    )


def bridged_pairs() -> Topology:
    gpus = [gpu(i, numa=i // 2, pcie=GEN4, nvlinks=ports(4, 14_062)) for i in range(4)]
    return host(
        gpus,
        two_sockets(2, PcieLevel.PHB),
        lambda one, other: 4 if one // 2 == other // 2 else 0,
        domains={device.name: f"host.GPU{i // 2 * 2}" for i, device in enumerate(gpus)},
    )


def pcie_box(count: int = 8) -> Topology:
    """Pairs of GPUs below a switch, two sockets, no NVLink."""
    gpus = [gpu(i, numa=i // (count // 2), pcie=GEN4) for i in range(count)]

    def level(one: int, other: int) -> PcieLevel:
        if one // 2 == other // 2:
            return PcieLevel.PIX
        return two_sockets(count // 2)(one, other)

    return host(gpus, level)
