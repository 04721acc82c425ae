"""Topologies made by hand, for what reads a topology rather than makes one."""

from collections.abc import Callable
from itertools import combinations

from seedance_obs.topology.model import (
    UNSUPPORTED,
    Device,
    FabricMembership,
    Kind,
    NvLinkKind,
    NvLinkPort,
    Path,
    PcieLevel,
    PcieLink,
    Topology,
)

H100 = "NVIDIA H100 80GB HBM3"
CLUSTER = "0f0e0d0c0b0a09080706050403020100"


def address(number: int) -> str:
    return f"0000:{0x1A + 8 * number:02x}:00.0"


def hgx_gpu(number: int, *, down: frozenset[int] = frozenset()) -> Device:
    """A GPU of an HGX H100; the NVLink ports in `down` are inactive."""
    ports = tuple(
        NvLinkPort(port, port not in down, 26562.0, f"0000:0{5 + port % 4}:00.0", Kind.NVSWITCH)
        for port in range(18)
    )
    return Device(
        name=address(number),
        kind=Kind.GPU,
        index=number,
        uuid=f"GPU-{number:08x}-0000-0000-0000-000000000000",
        bus_id=address(number),
        model=H100,
        numa=frozenset({number // 4}),
        pcie_root=f"pci0000:{0x15 + 8 * number:02x}",
        pcie_switch=f"0000:{0x18 + 8 * number:02x}:00.0",
        pcie=PcieLink(5, 16, 5, 16),
        nvlinks=ports,
        fabric=FabricMembership(3, 0, "0" * 32, 0),
    )


def hgx_nic(number: int) -> Device:
    return Device(
        name=f"0000:{0x1B + 8 * number:02x}:00.0",
        kind=Kind.NIC,
        label=f"mlx5_{number}",
        bus_id=f"0000:{0x1B + 8 * number:02x}:00.0",
        numa=frozenset({number // 4}),
        pcie_root=f"pci0000:{0x15 + 8 * number:02x}",
        pcie_switch=f"0000:{0x18 + 8 * number:02x}:00.0",
        pcie=PcieLink(5, 16, 5, 16),
    )


def hgx(*, gpus: int = 8, nics: int = 8, host: str = "gpu-7", lost_links: int = 0) -> Topology:
    """An HGX H100; GPU0 has `lost_links` of its eighteen NVLinks down."""
    boards = [
        hgx_gpu(number, down=frozenset(range(lost_links if number == 0 else 0)))
        for number in range(gpus)
    ]
    ports = [hgx_nic(number) for number in range(nics)]
    links = {board.name: 18 - (lost_links if board.index == 0 else 0) for board in boards}
    paths = [
        Path(
            one.name,
            other.name,
            PcieLevel.NODE if one.numa == other.numa else PcieLevel.SYS,
            min(links[one.name], links[other.name]),
            NvLinkKind.SWITCH,
        )
        for one, other in combinations(boards, 2)
    ]
    for board in boards:
        for port in ports:
            level = PcieLevel.NODE if board.numa == port.numa else PcieLevel.SYS
            level = PcieLevel.PIX if board.pcie_root == port.pcie_root else level
            paths.append(Path(board.name, port.name, level, UNSUPPORTED))
    domain = f"{host}.0000-1a-00.0"
    return Topology(
        (Device("host", Kind.HOST), *boards, *ports),
        tuple(paths),
        domains={board.name: domain for board in boards},
        host=host,
    )


def matrix(
    gpus: int,
    link: Callable[[int, int], int | PcieLevel | None],
    *,
    nics: int = 0,
    numa: Callable[[int], int] | None = None,
) -> Topology:
    """What a text matrix says: `link` gives a pair's NVLinks, its PCIe level, or nothing."""
    boards = [
        Device(f"GPU{i}", Kind.GPU, i, numa=frozenset({numa(i)}))
        if numa
        else Device(f"GPU{i}", Kind.GPU, i)
        for i in range(gpus)
    ]
    ports = [Device(f"NIC{i}", Kind.NIC, i, label=f"mlx5_{i}") for i in range(nics)]
    paths = []
    for one, other in combinations(range(gpus), 2):
        found = link(one, other)
        if isinstance(found, PcieLevel):
            paths.append(Path(f"GPU{one}", f"GPU{other}", found, 0))
        elif found is not None:
            paths.append(Path(f"GPU{one}", f"GPU{other}", nvlinks=found))
    paths += [
        Path(gpu.name, nic.name, PcieLevel.SYS, UNSUPPORTED) for gpu in boards for nic in ports
    ]
    return Topology((*boards, *ports), tuple(paths))
