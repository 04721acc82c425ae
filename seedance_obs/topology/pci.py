"""What PCI's own numbers mean: classes, root complexes, chains of ports, switches in disguise."""

from collections.abc import Mapping, Sequence

from seedance_obs.pcie import PciId
from seedance_obs.topology.model import UNKNOWN, Absent, Kind

NVIDIA = 0x10DE
PCI_BRIDGE = "0604"
HOST_BRIDGE = "0600"

_BROADCOM = 0x1000
_FIRST_DOMAIN_OF_LINUX = 0x10000  # above it are domains that Linux makes up, for VMD


def kind_of_class(pci_class: str, vendor: int | None) -> Kind | None:
    """The kind behind a class of four hex digits (`0302`); None for what topology leaves out."""
    if pci_class in ("0300", "0302"):
        return Kind.GPU if vendor == NVIDIA else None
    if pci_class == "0680":
        return Kind.NVSWITCH if vendor == NVIDIA else None
    if pci_class == "0108":
        return Kind.NVME
    return Kind.NIC if pci_class.startswith("02") else None


def root_complex(domain: int, bus: int) -> str | Absent:
    """`pci0000:40`; UNKNOWN for a tree of a volume management device (VMD).

    Such a tree has a domain of its own and hangs inside another root complex, which only the
    kernel's path names.
    """
    return UNKNOWN if domain >= _FIRST_DOMAIN_OF_LINUX else f"pci{domain:04x}:{bus:02x}"


def switches(ports: Sequence[str]) -> tuple[str, ...]:
    """The upstream ports of the switches on a chain of ports, from the root port down.

    A switch is an upstream port with a downstream port below it; a bridge alone is none.
    """
    return tuple(ports[1:-1:2])


def same_switch(above: PciId | None, below: PciId | None) -> bool:
    """Whether two upstream ports, one right below the other, are one Broadcom PEX switch.

    PEX88000 (Gen4) and PEX89000 (Gen5) in base mode show up as a switch below a switch, though
    every port runs at full rate: NCCL treats them as one, and so does this package.
    """
    if above is None or below is None or above[:3] != below[:3]:
        return False
    levels = above.subsystem_device >> 12, below.subsystem_device >> 12
    if above[:3] == (_BROADCOM, 0xC010, _BROADCOM):
        return levels == (0xA, 0xA)
    return above[:3] == (_BROADCOM, 0xC030, _BROADCOM) and levels == (0, 1)


def without_inner_levels(ports: Sequence[str], ids: Mapping[str, PciId]) -> tuple[str, ...]:
    """A chain of ports in which a two-level Broadcom switch is one: see `same_switch`."""
    left: list[str] = list(ports[:2])
    above = ids.get(ports[1]) if len(ports) > 1 else None
    for place in range(2, len(ports), 2):
        pair = ports[place : place + 2]
        below = ids.get(pair[1]) if len(pair) > 1 else None
        if same_switch(above, below):
            above = None  # one inner level, no more
            continue
        left += pair
        above = below
    return tuple(left)
